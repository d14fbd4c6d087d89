/**
 * BuildSteps: the running steps of `docker build`, as the listener knows askers. BuildKit in the Docker daemon gives each step a namespace and
 * a link on the default bridge. It sends no event, but Docker lists the step on that network, under an id that is no container's, with
 * its MAC and its addresses.
 *
 *   a port of the default bridge whose other end is in no container's namespace ---+
 *   Docker's list: this MAC and this address are a step's -------------------------+--> a step
 *
 * Both must say so. A container has its own link, whatever address it takes; the link of one that has just started is not in the list of
 * steps; and the other end's MAC is read from the kernel.
 */
import { setTimeout as sleep } from "node:timers/promises";

import { guard } from "../../base/lib/guard.ts";
import { LIMITS } from "../../base/limits.ts";
import { addressBytes } from "../../base/model/address.ts";
import type { BuildsReport } from "../../base/model/listener-report.ts";
import { type HostLink, HostLinkSocket } from "../../kernel/host-links.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { BUILDS_ID, type ContainerFact, type NetworkFact } from "../facts/fact.ts";
import type { ContainerLinks } from "../links/container-links.ts";
import type { Asker } from "../listener/asker.ts";
import type { HostGateway } from "../names/host-name/host-name.ts";
import type { EngineHost } from "../namespace/engine-host.ts";
import type { NamespaceRunner } from "../namespace/namespace-runner.ts";
import type { NetworkJson } from "../watch/engine-json.ts";
import { networkFact } from "../watch/translate.ts";
import { type BuildsPlace, buildsFact } from "./builds-fact.ts";

export interface BuildStepsParts {
  readonly runner: Pick<NamespaceRunner, "within">;
  readonly memory: NetlinkMemory;
  readonly host: () => Pick<EngineHost, "network">;
  readonly links: Pick<ContainerLinks, "strangersOn">;
  /** Asks Docker for the default bridge, and what is on it. */
  readonly bridge: () => Promise<{ readonly json: NetworkJson; readonly gateway: HostGateway } | undefined>;
  /** A network that containers have been on. */
  readonly networkNamed: (name: string) => NetworkFact | undefined;
  /** The default bridge is known, as Docker describes it. */
  readonly onBridge: (fact: NetworkFact) => void;
  /** Steps have begun or ended. */
  readonly onChange: () => void;
}

/** A step as Docker lists it. */
interface ListedStep {
  readonly mac: string;
  readonly addresses: readonly string[];
}

interface Step {
  readonly link: HostLink;
  readonly addresses: readonly string[];
}

/** Those of containers. A name with a prefix is an endpoint that nobody uses yet. */
const CONTAINER_ID = /^(?:[\da-f]{64}$|ep-)/;
/** Docker lists a step, and tells of a container, some milliseconds after its link is there. */
const LOOK_AGAIN_MS = [0, 20, 50, 100, 200, 400, 800];

export class BuildSteps {
  readonly #parts: BuildStepsParts;
  /** The network whose names steps resolve; undefined: they get no answers. */
  #network: string | undefined;
  #bridge: NetworkFact | undefined;
  #place: BuildsPlace | undefined;
  /** By the index of the link. */
  #steps = new Map<number, Step>();
  /** Links that are nobody's: no step's, and no container's. */
  readonly #nobodys = new Map<number, HostLink>();
  #isLooking = false;
  /** Links have changed since Docker was asked. */
  #isStale = false;

  constructor(parts: BuildStepsParts) {
    this.#parts = parts;
  }

  get isOn(): boolean {
    return this.#network !== undefined;
  }

  /** What stands for all steps. */
  get fact(): ContainerFact {
    const named = this.#network === undefined ? undefined : this.#parts.networkNamed(this.#network);
    return buildsFact(this.#place, named);
  }

  get report(): BuildsReport | undefined {
    const network = this.#network;
    return network === undefined
      ? undefined
      : { network, isKnown: this.#parts.networkNamed(network) !== undefined, steps: this.#steps.size };
  }

  /** Links must be followed by then. */
  configure(network: string | undefined): void {
    this.#network = network;
    if (network === undefined) this.#steps = new Map();
    else this.#lookSoon();
    // What steps see may be another network's names.
    this.#parts.onChange();
  }

  close(): void {
    this.#network = undefined;
    this.#steps = new Map();
  }

  /** Links of the host, or containers, have changed. */
  refresh(): void {
    if (!this.isOn) return;
    const strangers = new Map(this.#strangers().map((link) => [link.index, link]));
    for (const [index, link] of this.#nobodys) if (!isSame(link, strangers.get(index))) this.#nobodys.delete(index);
    const remaining = [...this.#steps].filter(([index, { link }]) => isSame(link, strangers.get(index)));
    if (remaining.length < this.#steps.size) this.#replace(new Map(remaining));
    if (this.#unknown().length > 0) this.#lookSoon();
  }

  *askers(): Generator<Asker> {
    for (const { link, addresses } of this.#steps.values())
      for (const address of addresses) yield { containerId: BUILDS_ID, link: link.index, address };
  }

  /** The indexes of their links. */
  indexes(): Iterable<number> {
    return this.#steps.keys();
  }

  #strangers(): readonly HostLink[] {
    const bridge = this.#bridge?.bridge;
    return bridge === undefined ? [] : this.#parts.links.strangersOn(bridge).slice(0, LIMITS.buildLinks);
  }

  /** Whose links Docker has not been asked for. */
  #unknown(): readonly HostLink[] {
    return this.#strangers().filter(({ index }) => !this.#steps.has(index) && !this.#nobodys.has(index));
  }

  #lookSoon(): void {
    this.#isStale = true;
    if (this.#isLooking) return;
    this.#isLooking = true;
    void this.#look()
      .catch((error: unknown) => guard.report(error, "netlink"))
      .finally(() => (this.#isLooking = false));
  }

  async #look(): Promise<void> {
    while (this.#isStale && this.isOn) {
      this.#isStale = false;
      let isAnswered = false;
      for (const waitMs of LOOK_AGAIN_MS) {
        await sleep(waitMs, undefined, { ref: false });
        isAnswered = await this.#ask();
        if (this.#unknown().length === 0) break;
      }
      // Their next chance is that they change.
      if (isAnswered && !this.#isStale) for (const link of this.#unknown()) this.#nobodys.set(link.index, link);
    }
  }

  /** Returns whether Docker has answered: without it nothing is built. */
  async #ask(): Promise<boolean> {
    const bridge = await this.#parts.bridge().catch(() => undefined);
    if (bridge === undefined) return false;
    const { json, gateway } = bridge;
    this.#takeBridge(json, gateway);
    const listed = stepsIn(json);
    if (listed.length === 0 || this.#unknown().length === 0) return true;
    const found = await this.#matching(this.#strangers(), listed);
    // By now one may be gone, or a container's.
    const strangers = new Map(this.#strangers().map((link) => [link.index, link]));
    const begun = found.filter(({ link }) => !this.#steps.has(link.index) && isSame(link, strangers.get(link.index)));
    if (this.isOn && begun.length > 0)
      this.#replace(new Map([...this.#steps, ...begun.map((step) => [step.link.index, step] as const)]));
    return true;
  }

  #takeBridge(json: NetworkJson, { ipv4, ipv6 }: HostGateway): void {
    this.#place = { networkId: json.Id, ipv4Gateway: ipv4, ipv6Gateway: ipv6 };
    if (this.#bridge?.id === json.Id) return;
    this.#bridge = networkFact(json);
    this.#parts.onBridge(this.#bridge);
    this.#parts.onChange();
  }

  /** Of two links with the MAC of one step neither is its. */
  async #matching(links: readonly HostLink[], listed: readonly ListedStep[]): Promise<Step[]> {
    const { runner, host, memory } = this.#parts;
    const byMac = new Map<string, HostLink[]>();
    const socket = runner.within(host().network, () => new HostLinkSocket(memory));
    try {
      for (const link of links) {
        if (link.peer === undefined) continue;
        const inside = await socket.linkIn(link.peer.namespace, link.peer.index);
        const mac = inside?.mac === undefined ? "" : macText(inside.mac);
        byMac.set(mac, [...(byMac.get(mac) ?? []), link]);
      }
    } finally {
      socket.close();
    }
    return listed.flatMap(({ mac, addresses }): Step[] => {
      const [link, other] = byMac.get(mac) ?? [];
      return link === undefined || other !== undefined ? [] : [{ link, addresses }];
    });
  }

  #replace(steps: Map<number, Step>): void {
    this.#steps = steps;
    this.#parts.onChange();
  }
}

function stepsIn({ Containers: listed }: NetworkJson): ListedStep[] {
  return Object.entries(listed ?? {}).flatMap(([id, { MacAddress: mac, IPv4Address: ipv4, IPv6Address: ipv6 }]) => {
    if (CONTAINER_ID.test(id) || mac === undefined || mac === "") return [];
    // Each has the length of its network's prefix.
    const addresses = [ipv4, ipv6].flatMap((text) => text?.split("/")[0] ?? []);
    return [{ mac: mac.toLowerCase(), addresses: addresses.filter((each) => addressBytes(each) !== undefined) }];
  });
}

function isSame(one: HostLink, other: HostLink | undefined): boolean {
  return one.index === other?.index && one.peer?.namespace === other.peer?.namespace;
}

function macText(mac: Uint8Array): string {
  return [...mac].map((byte) => byte.toString(16).padStart(2, "0")).join(":");
}
