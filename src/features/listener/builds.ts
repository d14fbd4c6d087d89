/**
 * The steps of `docker build` that run, as the listener knows askers; what stands for them in reports; and what they resolve.
 *
 * BuildKit in the Docker daemon gives each step a namespace and a link on the default bridge. It sends no event, but Docker lists the
 * step on that network, under an id that is no container's, with its MAC and its addresses.
 *
 *   a port of the default bridge whose other end is in no container's namespace ---+
 *   Docker's list: this MAC and this address are a step's -------------------------+--> a step
 *
 * Both must say so. A container has its own link, whatever address it takes; the link of one that has just started is not in the list of
 * steps; and the other end's MAC is read from the kernel.
 */
import { setTimeout as sleep } from "node:timers/promises";

import type { BuildsReport } from "../../api/listener.ts";
import { guard } from "../../base/lib/guard.ts";
import { addressBytes } from "../../base/model/address.ts";
import { LISTENER_ADDRESSES } from "../../base/model/listener-addresses.ts";
import { LOCAL_SOURCE } from "../../base/model/local-source.ts";
import type { VisibleNames } from "../../base/model/visible-names.ts";
import type { Decision } from "../../container/attach/decision.ts";
import {
  type ContainerFact,
  DEFAULT_BRIDGE,
  type NetworkFact,
  outsiderEndpoint,
  outsiderFact,
} from "../../container/facts/fact.ts";
import type { ContainerLinks } from "../../container/links/container-links.ts";
import { DockerNames } from "../../container/names/docker/docker-names.ts";
import { NetworkNames } from "../../container/names/docker/network-names.ts";
import { visibleNetwork } from "../../container/names/docker/networks.ts";
import type { HostGateway } from "../../container/names/host-name/host-name.ts";
import type { NameSource, NamedContainer } from "../../container/names/source/name-source.ts";
import type { EngineHost } from "../../container/namespace/engine-host.ts";
import type { NamespaceRunner } from "../../container/namespace/namespace-runner.ts";
import type { NetworkJson } from "../../container/watch/engine-json.ts";
import { gatewayIn, networkFact } from "../../container/watch/translate.ts";
import { type HostLink, HostLinkSocket } from "../../kernel/host-links.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { LISTENER_LIMITS } from "./limits.ts";
import type { Asker } from "./listener-table.ts";

/** The name and id of what stands for all steps; Docker gives containers ids of 64 hexadecimal digits. */
export const BUILDS_ID = "builds";

export const BUILDS_DECISION: Decision = {
  kind: "skip",
  code: "default-network-only",
  reason: `the steps of docker build are not served in their namespaces; dns11 answers those that ask ${LISTENER_ADDRESSES.ipv4}`,
};

/** What Docker says of the default bridge, where steps are. */
interface BuildsPlace {
  readonly networkId: string;
  readonly ipv4Gateway: string | undefined;
  readonly ipv6Gateway: string | undefined;
}

/**
 * The steps as one more container, so that they have one view and one share of everything, and that status, tail and explain can name
 * them. `named`: the network whose names they resolve, as if they were on it.
 */
export function buildsFact(place: BuildsPlace | undefined, named: NetworkFact | undefined): ContainerFact {
  const onBridge = place === undefined ? [] : [outsiderEndpoint(BUILDS_ID, { ...place, networkName: DEFAULT_BRIDGE })];
  const onNamed =
    named === undefined || named.id === place?.networkId
      ? []
      : [
          outsiderEndpoint(BUILDS_ID, {
            networkId: named.id,
            networkName: named.name,
            ipv4Gateway: undefined,
            ipv6Gateway: undefined,
          }),
        ];
  return outsiderFact({ id: BUILDS_ID, networkMode: DEFAULT_BRIDGE, endpoints: [...onNamed, ...onBridge] });
}

interface BuildStepsParts {
  readonly runner: Pick<NamespaceRunner, "within">;
  readonly memory: NetlinkMemory;
  readonly host: () => Pick<EngineHost, "network">;
  readonly links: Pick<ContainerLinks, "strangersOn">;
  /** Asks Docker for the default bridge, and what is on it. */
  readonly bridge: () => Promise<NetworkJson | undefined>;
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
    return bridge === undefined ? [] : this.#parts.links.strangersOn(bridge).slice(0, LISTENER_LIMITS.buildLinks);
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
    const json = await this.#parts.bridge().catch(() => undefined);
    if (json === undefined) return false;
    this.#takeBridge(json, gatewayIn(json));
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

/**
 * What steps resolve: the names of one network, which the settings choose. Steps are on the default bridge, and Docker lets nothing pass
 * from there to another network. So a container that is on the default bridge as well has its address there, and only others have
 * the one on that network.
 */
export class BuildNames implements NameSource {
  readonly #network: string | undefined;
  readonly #names: NetworkNames;

  /** Undefined: none are built, or resolve the names of a network. */
  constructor(network: string | undefined) {
    this.#network = network;
    this.#names = new NetworkNames(network ?? "");
  }

  join({ fact, traits, project }: NamedContainer): void {
    const { id, endpoints, onDefaultBridge: reachable } = fact;
    const network = this.#network;
    const endpoint =
      network === DEFAULT_BRIDGE ? reachable : endpoints.find(({ networkName }) => networkName === network);
    if (endpoint === undefined) return this.#names.remove(id);
    const { ipv4, ipv6 } = reachable ?? endpoint;
    this.#names.put(id, { ...endpoint, ...traits, project, ipv4, ipv6 });
  }

  leave({ id }: ContainerFact): void {
    this.#names.remove(id);
  }

  namesFor({ id }: ContainerFact): VisibleNames | undefined {
    const name = this.#network;
    if (id !== BUILDS_ID || name === undefined) return undefined;
    return new DockerNames([visibleNetwork({ id: name, name }, this.#names)], undefined, LOCAL_SOURCE.network);
  }
}
