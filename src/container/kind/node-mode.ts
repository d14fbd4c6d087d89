/**
 * NodeMode: a KIND node's namespace. Beside Docker's own address, those are ours under which the node's pods ask, also
 * when they ask through the node; the node's resolv.conf tells them where. What this changes in the node stands in the
 * journal before it is done, and is taken back to the byte.
 */
import { isIPv6 } from "node:net";

import { LIMITS } from "../../base/limits.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { type InterfaceAddress, RouteSocket } from "../../kernel/rtnetlink.ts";
import { reasonOf } from "../../base/lib/fault.ts";
import { Retry } from "../../base/lib/retry.ts";
import { isSameAddress } from "../../base/model/address.ts";
import type { KindPolicy } from "../../base/model/kind-policy.ts";
import type { ReportEvent } from "../../base/model/event.ts";
import type { NodeReport } from "../../base/model/node-report.ts";
import type { Mode, Site } from "../attach/mode.ts";
import { type Capture, DOCKER_LEAD, DOCKER_RESOLVER, type Lead, USER_DEFINED_NETWORK } from "../capture/capture.ts";
import type { Bracket } from "../namespace/bracket.ts";
import type { Within } from "../rules/exchange.ts";
import { GuardCount } from "../rules/guard-count.ts";
import { type DockerResolver, dockerResolver, remedyFor, troubleWith } from "./docker-resolver.ts";
import type { Journal, NodeRecord } from "./journal.ts";
import { type Interfaces, LetIn } from "./let-in.ts";
import { canHoldIpv6, chooseDedicated, holdAddresses, oursToHold } from "./lo-addresses.ts";
import { type NodeFact, isRunning } from "./node-fact.ts";
import { isPodLink } from "./pod-namespace.ts";
import { PodProbe, probeAll } from "./pod-probe.ts";
import { whoHasPort } from "./port-holder.ts";
import { DEDICATED, type Published, publishedAddresses } from "./published.ts";
import type { NodeResolver } from "./node-resolver.ts";
import { undoIn } from "./undo.ts";

export interface NodeParts {
  readonly bracket: Bracket;
  readonly memory: NetlinkMemory;
  readonly journal: Journal;
  /** The node's resolv.conf. */
  readonly resolver: NodeResolver;
  /** Other addresses may be ours now. */
  readonly onChange: () => void;
  /** Something that a person may want to know. */
  readonly onNews: ReportEvent;
}

const NOTHING: Published = { told: [], captured: [], foreign: [] };

export class NodeMode implements Mode {
  readonly #parts: NodeParts;
  #policy: KindPolicy;
  #fact: NodeFact;
  #record: NodeRecord;
  #published = NOTHING;
  #targets: readonly string[] = [];
  #refusal: string | undefined;
  readonly #guards = new GuardCount();
  #site: Site | undefined;
  #isWithdrawn = false;
  #lastChangeMs = 0;
  readonly #podProbe: PodProbe;
  readonly #letIn: LetIn;
  /** Looks at the kernel's switches from time to time. */
  /** What a busy machine lost once is not to wait for the next routine verification. */
  readonly #retry = new Retry(() => this.#parts.onChange(), LIMITS.retryFirstMs, LIMITS.retryLastMs);
  #lookTimer: NodeJS.Timeout | undefined;
  /** Of those switches, and of queries that do not come through. */
  #shut: readonly string[] = [];
  #failures: readonly string[] = [];
  #told = "";

  constructor(fact: NodeFact, policy: KindPolicy, parts: NodeParts) {
    this.#fact = fact;
    this.#policy = policy;
    this.#parts = parts;
    const { record, damaged } = parts.journal.read(fact.containerId);
    if (damaged !== undefined) this.#news({ reason: damaged }, "the journal of the node cannot be read");
    this.#record = record?.startedAt === fact.startedAt ? record : emptyRecord(fact, policy);
    this.#podProbe = new PodProbe(parts);
    this.#letIn = new LetIn({
      known: () => this.#record,
      keep: (localnet) => this.#keep({ ...this.#record, ...localnet }),
      onRepaired: (interfaces) =>
        this.#news({ interfaces }, "somebody switched route_localnet off; it is on again", "warn"),
    });
  }

  get fact(): NodeFact {
    return this.#fact;
  }

  /** Where the node stands by now, and what settings want of it; returns whether that may make other addresses ours. */
  update(fact: NodeFact, policy: KindPolicy): boolean {
    const before = JSON.stringify([placeOf(this.#fact), this.#policy]);
    this.#fact = fact;
    this.#policy = policy;
    return JSON.stringify([placeOf(fact), policy]) !== before;
  }

  capture(): Capture {
    const { memory } = this.#parts;
    const policy = this.#policy;
    this.#isWithdrawn = false;
    const route = new RouteSocket(memory);
    try {
      const held = route.addresses();
      const hasIpv6 = canHoldIpv6();
      this.#published = this.#choose(policy, hasIpv6);
      this.#refusal = this.#refusalOf(this.#published);
      if (this.#refusal !== undefined) {
        // What was told before goes on; without that, the node is a container as any other.
        if (this.#record.published.length === 0) {
          this.#published = NOTHING;
          return USER_DEFINED_NETWORK;
        }
        this.#published = this.#choose({ ...policy, address: this.#record.wish }, hasIpv6);
      }
      this.#remember(this.#refusal === undefined ? policy.address : this.#record.wish);
      const dockerDevices = this.#dockerDevices(held);
      const leads = this.#leads(route, held, hasIpv6);
      this.#targets = leads.map(({ bind }) => bind);
      if (policy.mode === "loopback") this.#letIn.open(this.#interfaces(route, held));
      this.#lastChangeMs = Date.now();
      this.#podProbe.expire();
      return {
        leads: [DOCKER_LEAD, ...leads],
        passedDevices: policy.isExposed ? [] : [...dockerDevices],
        guardsLoopback: policy.mode === "loopback",
      };
    } finally {
      route.close();
    }
  }

  async onVerified(site: Site): Promise<void> {
    this.#site = site;
    if (this.#published.told.length === 0) return;
    // Whoever has withdrawn meanwhile has put the file back; and the site's descriptor may be another's by now.
    const isCurrent = (): boolean => this.#site === site;
    const inside = await probeAll(site, { addresses: this.#published.captured, isCurrent }, "the node itself");
    if (!isCurrent()) return;
    if (inside.length === 0) this.publish();
    if (this.#policy.mode === "loopback") {
      this.#look();
      this.#lookTimer ??= setInterval(() => this.#look(), LIMITS.localnetLookMs).unref();
    }
    const pods = await this.#podProbe.ask(site, { addresses: this.#published.told, isCurrent });
    if (!isCurrent()) return;
    this.#failures = [...inside, ...pods];
    this.#retry.note(this.#failures.length > 0);
    this.#tell();
  }

  withdraw(within: Within): void {
    const wasServed = this.#site !== undefined;
    this.#site = undefined;
    clearInterval(this.#lookTimer);
    this.#lookTimer = undefined;
    this.#retry.close();
    if (this.#isWithdrawn) return;
    this.#isWithdrawn = true;
    this.#parts.resolver.close();
    const docker = this.#dockerResolver(within);
    const trouble = docker && troubleWith(docker);
    // Docker's resolver ends before a container that is stopped, and then nobody is left to ask.
    if (trouble !== undefined && wasServed && isRunning(this.#fact, within))
      this.#news({ reason: trouble }, `nobody answers pods of the node now: ${remedyFor(this.#fact.name)}`, "warn");
    const { resolvConf, ...rest } = this.#record;
    if (resolvConf === undefined) return;
    try {
      const outcome = this.#parts.resolver.restore(resolvConf, this.#fact.search, docker?.answering ?? []);
      if (outcome === "changed")
        this.#news({}, "resolv.conf of the node is not as dns11 wrote it; it is left as it is");
      this.#keep(rest);
    } catch (error) {
      this.#news({ reason: reasonOf(error) }, "resolv.conf of the node could not be put back");
    }
  }

  undo(): void {
    try {
      this.#podProbe.clear();
      undoIn(this.#record, this.#parts.memory);
      this.#parts.journal.remove(this.#fact.containerId);
      this.#record = { ...emptyRecord(this.#fact, this.#policy), published: this.#record.published };
    } catch (error) {
      this.#news({ reason: reasonOf(error) }, "the node could not be put back as it was; dns11 cleanup tries again");
    }
  }

  report(): NodeReport {
    const reasons = this.#reasons();
    return {
      state: this.#state(reasons),
      published: this.#published.told,
      captured: this.#published.captured,
      target: this.#targets,
      families: [...new Set(this.#targets.map((address) => (isIPv6(address) ? "ipv6" : "ipv4")))],
      way: this.#policy.mode,
      resolvConf: this.#parts.resolver.state,
      lastChange: this.#lastChangeMs === 0 ? null : new Date(this.#lastChangeMs).toISOString(),
      lastProbe: this.#podProbe.lastMs === 0 ? null : new Date(this.#podProbe.lastMs).toISOString(),
      dropped: this.#guards.count(this.#site?.within, this.#parts.memory),
      reasons,
      warnings: this.#warnings(),
    };
  }

  #state(reasons: readonly string[]): NodeReport["state"] {
    if (this.#refusal !== undefined) return "refused";
    if (this.#podProbe.lastMs === 0 || this.#site === undefined) return "starting";
    return reasons.length === 0 ? "working" : "degraded";
  }

  #reasons(): string[] {
    const { foreign } = this.#published;
    const named = foreign.length === 0 ? [] : [`its resolv.conf names ${foreign.join(", ")}, which is not ours`];
    return [...(this.#refusal === undefined ? [] : [this.#refusal]), ...this.#troubles(), ...named];
  }

  #troubles(): string[] {
    return [...this.#shut, ...this.#failures];
  }

  #warnings(): string[] {
    const docker = this.#site && this.#dockerResolver(this.#site.within);
    const trouble = docker && troubleWith(docker);
    return trouble === undefined ? [] : [`when dns11 ends: ${trouble}; ${remedyFor(this.#fact.name)}`];
  }

  /** undefined where it cannot be looked for. */
  #dockerResolver(within: Within): DockerResolver | undefined {
    try {
      return within(() => dockerResolver(this.#parts.memory));
    } catch {
      return undefined;
    }
  }

  #choose(policy: KindPolicy, hasIpv6: boolean): Published {
    const { resolver } = this.#parts;
    return publishedAddresses({
      policy,
      fact: this.#fact,
      hasIpv6,
      named: resolver.named(),
      before: this.#record.published,
      byEntrypoint: resolver.namedByEntrypoint(),
      isWishNew: this.#record.wish !== policy.address,
    });
  }

  /** Pods may have it from now on. */
  #remember(wish: string): void {
    const published = [...new Set([...this.#record.published, ...this.#published.told])];
    this.#record = { ...this.#record, wish, published };
  }

  #refusalOf({ captured }: Published): string | undefined {
    if (this.#policy.isForced) return undefined;
    const own = captured.filter((address) => this.#fact.addresses.some((each) => isSameAddress(each, address)));
    return whoHasPort(own, this.#parts.memory);
  }

  #leads(route: RouteSocket, held: readonly InterfaceAddress[], hasIpv6: boolean): Lead[] {
    const { captured, told } = this.#published;
    const dedicated = chooseDedicated(held);
    const isLoopback = this.#policy.mode === "loopback";
    const binds = [isLoopback ? DOCKER_RESOLVER : dedicated, ...(hasIpv6 ? [DEDICATED.ipv6] : [])];
    const local = [...(isLoopback ? [] : [dedicated]), ...(hasIpv6 ? [DEDICATED.ipv6] : [])];
    // An address that no route leads to is never sent to, so the rules would not see it.
    const unrouted = captured.filter((address) => !local.includes(address) && !route.hasRouteTo(address));
    this.#hold(route, held, [...local, ...unrouted]);
    return binds.map((bind): Lead => {
      const ofFamily = captured.filter((address) => isIPv6(address) === isIPv6(bind));
      const repliesAs = told.find((address) => isIPv6(address) === isIPv6(bind)) ?? ofFamily[0];
      return { bind, fromInside: ofFamily, fromPods: ofFamily, ...(repliesAs !== undefined && { repliesAs }) };
    });
  }

  /** Has lo hold these addresses, and remembers which of them it holds for us. */
  #hold(route: RouteSocket, held: readonly InterfaceAddress[], wanted: readonly string[]): void {
    const ours = oursToHold(wanted, held, this.#record.addresses);
    const merged = new Map([...this.#record.addresses, ...ours].map((each) => [each.address, each]));
    this.#keep({ ...this.#record, addresses: [...merged.values()] });
    holdAddresses(route, held, ours);
  }

  /** Where pods' queries would be dropped at a switch of the kernel's, it is switched. */
  #look(): void {
    const site = this.#site;
    if (site === undefined) return;
    try {
      const contested = site.within(() => this.#letIn.repair(this.#interfacesNow()));
      const why = "somebody switched it off once more after dns11 had switched it on";
      const what = `route_localnet is off on ${contested.join(", ")}: queries of its pods are dropped; ${why}`;
      this.#shut = contested.length === 0 ? [] : [what];
    } catch (error) {
      this.#shut = [`route_localnet cannot be switched on: ${reasonOf(error)}`];
    }
    this.#tell();
  }

  /** Each pod may bring one, and take it along. */
  #interfacesNow(): Interfaces {
    const route = new RouteSocket(this.#parts.memory);
    try {
      return this.#interfaces(route, route.addresses());
    } finally {
      route.close();
    }
  }

  #interfaces(route: RouteSocket, held: readonly InterfaceAddress[]): Interfaces {
    const all = route.links();
    const passed = this.#policy.isExposed ? new Set<number>() : this.#dockerDevices(held);
    // A pod that was made to ask from is to be let in as a new one is, and no better.
    const ofAskers = all.filter((link) => !link.isLoopback && !passed.has(link.index) && !isPodLink(link));
    return { all, ofAskers, scope: this.#policy.routeLocalnet };
  }

  #dockerDevices(held: readonly InterfaceAddress[]): Set<number> {
    const docker = held.filter(({ address }) => this.#fact.addresses.some((own) => isSameAddress(own, address)));
    return new Set(docker.map(({ index }) => index));
  }

  /** Has the node's resolv.conf say where pods are to ask. */
  publish(): void {
    const { resolver } = this.#parts;
    const news = resolver.publish({
      addresses: this.#published.told,
      ours: this.#policy.families === "auto" ? undefined : this.#published.captured,
      search: this.#fact.search,
      record: this.#record.resolvConf,
      keep: (resolvConf) => this.#keep({ ...this.#record, resolvConf }),
      onRewritten: () => this.#parts.onChange(),
    });
    if (news !== undefined) this.#news({ resolvConf: news }, "resolv.conf of the node");
  }

  #tell(): void {
    const troubles = this.#troubles();
    const now = troubles.join("; ");
    if (now === this.#told) return;
    this.#told = now;
    if (now === "") this.#news({}, "pods of the node resolve again");
    else this.#news({ reasons: troubles }, "pods of the node may not resolve");
  }

  #keep(record: NodeRecord): void {
    this.#record = record;
    this.#parts.journal.write(record);
  }

  #news(about: Readonly<Record<string, unknown>>, text: string, level?: "warn"): void {
    this.#parts.onNews({ node: this.#fact.name, ...about }, text, level);
  }
}

function emptyRecord(fact: NodeFact, { address }: KindPolicy): NodeRecord {
  const { containerId, name, startedAt, sandboxKey, pid } = fact;
  return {
    version: 1,
    containerId,
    name,
    startedAt,
    sandboxKey,
    pid,
    wish: address,
    addresses: [],
    routeLocalnet: {},
    published: [],
  };
}

function placeOf({ gateway, own, addresses, hostGateway }: NodeFact): unknown {
  return [gateway, own, addresses, hostGateway];
}
