/**
 * NodeMode: attaches to a KIND node. It captures 127.0.0.11 and also the addresses that the node's pods query, and advertises
 * those in the node's resolv.conf. Every change to the node is in the journal before it happens, and is undone to the byte.
 */
import { isIPv6 } from "node:net";
import { isDeepStrictEqual } from "node:util";
import { LIMITS } from "../../base/limits.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { type InterfaceAddress, type Link, RouteSocket } from "../../kernel/rtnetlink.ts";
import { reasonOf } from "../../base/lib/fault.ts";
import { Retry } from "../../base/lib/retry.ts";
import { isSameAddress } from "../../base/model/address.ts";
import type { NodeReport } from "../../base/model/node-report.ts";
import type { KindPolicy } from "./feature.ts";
import type { ReportEvent } from "../../base/log/log.ts";
import type { Within } from "../../kernel/net-namespace.ts";
import { deleteConversations } from "../../kernel/conntrack.ts";
import type { AttachMode, ServedNamespace } from "../../container/attach/attach-mode.ts";
import {
  type Capture,
  DOCKER_REDIRECT,
  DOCKER_RESOLVER,
  type Redirect,
  CONTAINER_CAPTURE,
} from "../../container/capture/capture.ts";
import { isIpv6Enabled } from "../../container/namespace/ipv6.ts";
import type { NamespaceRunner } from "../../container/namespace/namespace-runner.ts";
import { GuardCount } from "../../container/rules/drop-counters.ts";
import {
  type DockerResolver,
  findDockerResolver,
  restartCommand,
  problemWith,
} from "../../container/namespace/docker-resolver.ts";
import { type Journal, type ChangeRecord, newRecord } from "../../container/files/journal.ts";
import { RouteLocalnetGuard } from "./route-localnet-guard.ts";
import { chooseListenAddress, addLoAddresses, ownLoAddresses } from "./lo-addresses.ts";
import { type NodeFact, isNodeRunning } from "./node-fact.ts";
import { isPodLink, type PodNamespace, conversationsOf, openPodNamespace, removePodLink } from "./pod-namespace.ts";
import { DEDICATED, type AdvertisedAddresses, advertisedAddresses } from "./advertised-addresses.ts";
import { restoreNamespace } from "../../container/files/restore.ts";
import type { WrittenResolvConf } from "../../container/files/written-resolv-conf.ts";
import { guard } from "../../base/lib/guard.ts";
import { allChainsRedirecting, firstChainsRedirecting } from "../../container/rules/port-redirects.ts";
import { listenersAt } from "../../container/namespace/listeners.ts";

/** How often a probe pod sends a query in a node while nothing is wrong: each creates and removes a link there. */
const POD_PROBE_EVERY_MS = 300_000;
/** The conntrack zone of packets that no rule assigns to another one. */
const DEFAULT_ZONE = 0;

interface ProbeTargets {
  readonly addresses: readonly string[];
  /** Whether the namespace is still served; otherwise its descriptor may have been reused. */
  readonly isCurrent: () => boolean;
}

export interface NodeParts {
  readonly runner: NamespaceRunner;
  readonly memory: NetlinkMemory;
  readonly journal: Journal;
  /** The node's resolv.conf. */
  readonly resolvConf: WrittenResolvConf;
  /** The captured addresses may have changed. */
  readonly onChange: () => void;
  readonly onEvent: ReportEvent;
}

const NO_ADDRESSES: AdvertisedAddresses = { advertised: [], captured: [], foreign: [] };

export class NodeMode implements AttachMode {
  readonly keepsSearchList = "a KIND node has that of KIND_DNS_SEARCH";
  readonly #parts: NodeParts;
  #policy: KindPolicy;
  #fact: NodeFact;
  #record: ChangeRecord;
  /** What the journal has. */
  #saved = "";
  #addresses = NO_ADDRESSES;
  #targets: readonly string[] = [];
  #refusal: string | undefined;
  readonly #guards = new GuardCount();
  /** As it was read last. */
  #docker: DockerResolver | undefined;
  #isLooking = false;
  #served: ServedNamespace | undefined;
  #isWithdrawn = false;
  #lastChangeMs = 0;
  readonly conflicts: PortConflicts;
  readonly #podProbe: PodProbe;
  readonly #localnet: RouteLocalnetGuard;
  /** A probe lost on a busy machine is retried soon, not at the next routine verification. */
  readonly #retry = new Retry(() => this.#parts.onChange(), LIMITS.retryFirstMs, LIMITS.retryLastMs);
  /** Probes that failed. */
  #probeFailures: readonly string[] = [];
  #lastReported = "";
  /** The addresses that were last offered to resolv.conf. */
  #written: readonly string[] = [];

  constructor(fact: NodeFact, policy: KindPolicy, parts: NodeParts) {
    this.#fact = fact;
    this.#policy = policy;
    this.#parts = parts;
    const { record, damaged } = parts.journal.read(fact.containerId);
    if (damaged !== undefined) this.#emit({ reason: damaged }, "the journal record of the node is damaged");
    this.#record =
      record?.startedAt === fact.startedAt ? record : newRecord({ id: fact.containerId, ...fact }, policy.address);
    this.conflicts = new PortConflicts(parts.memory, () => this.#parts.onChange());
    this.#podProbe = new PodProbe(parts);
    this.#localnet = new RouteLocalnetGuard({
      memory: parts.memory,
      facingPods: (links, addresses) => this.#facingPods(links, addresses),
      record: () => this.#record,
      save: (localnet) => this.#save({ ...this.#record, ...localnet }),
      onRepaired: (interfaces) =>
        this.#emit({ interfaces }, "another program switched route_localnet off; switched it on again", "warn"),
      onChecked: () => this.#reportFailures(),
    });
  }

  get fact(): NodeFact {
    return this.#fact;
  }

  /** Takes new facts and settings. Returns whether the captured addresses may change. */
  update(fact: NodeFact, policy: KindPolicy): boolean {
    const before = JSON.stringify([captureFacts(this.#fact), this.#policy]);
    this.#fact = fact;
    this.#policy = policy;
    return JSON.stringify([captureFacts(fact), policy]) !== before;
  }

  capture(): Capture {
    const { memory } = this.#parts;
    const policy = this.#policy;
    this.#isWithdrawn = false;
    const wasPublished = this.#record.published.length > 0;
    const route = new RouteSocket(memory);
    try {
      const hasIpv6 = isIpv6Enabled();
      this.#addresses = this.#choose(policy, hasIpv6);
      const conflict = this.#conflictOf(this.#addresses);
      const isFree = conflict === "none";
      this.#refusal = isFree || conflict === "unknown" ? undefined : conflict;
      if (!isFree) {
        // Addresses advertised before stay captured. Without any, the node is served like any other container.
        if (this.#record.published.length === 0) {
          this.#addresses = NO_ADDRESSES;
          return CONTAINER_CAPTURE;
        }
        this.#addresses = this.#choose({ ...policy, address: this.#record.wish }, hasIpv6);
      }
      this.#recordAddresses(isFree ? policy.address : this.#record.wish);
      const existing = route.addresses();
      const dockerDevices = this.#dockerDevices(existing);
      const redirects = this.#redirects(route, existing, hasIpv6);
      this.#targets = redirects.map(({ bind }) => bind);
      this.#localnet.forgive();
      // Otherwise there is time until it is advertised.
      if (policy.mode === "loopback" && wasPublished) this.#localnet.enableAtOnce();
      this.#lastChangeMs = Date.now();
      this.#podProbe.expire();
      return {
        redirects: [DOCKER_REDIRECT, ...redirects],
        bypassInterfaces: policy.isExposed ? [] : [...dockerDevices],
        guardsLoopback: policy.mode === "loopback",
      };
    } finally {
      route.close();
    }
  }

  async onVerified(served: ServedNamespace): Promise<void> {
    this.#served = served;
    await this.#look(served);
    if (this.#served !== served || this.#addresses.advertised.length === 0) return;
    // After a withdrawal the file is restored, and the namespace's descriptor may have been reused.
    const isCurrent = (): boolean => this.#served === served;
    const fromNode = await probeAll(served, { addresses: this.#addresses.captured, isCurrent }, "the node");
    if (!isCurrent()) return;
    const isLetIn = await this.letPodsIn(served.within);
    if (!isCurrent()) return;
    if (fromNode.length === 0 && isLetIn) this.advertise();
    const fromPod = await this.#podProbe.probe(served, { addresses: this.#addresses.advertised, isCurrent });
    if (!isCurrent()) return;
    this.#probeFailures = [...fromNode, ...fromPod];
    this.#retry.note(this.#probeFailures.length > 0 || !isLetIn);
    this.#reportFailures();
  }

  /** Resolves to false if the kernel would drop the queries of pods. */
  async letPodsIn(within: Within): Promise<boolean> {
    return this.#policy.mode !== "loopback" || (await this.#localnet.start(within));
  }

  async withdraw(within: Within): Promise<void> {
    const wasServed = this.#served !== undefined;
    this.#served = undefined;
    this.#localnet.stop();
    this.#retry.close();
    if (this.#isWithdrawn) return;
    this.#isWithdrawn = true;
    this.#parts.resolvConf.close();
    await this.#readDocker(within);
    const docker = this.#docker;
    const problem = docker && problemWith(docker);
    // When a container stops, Docker's resolver ends first; that is not worth a warning.
    if (problem !== undefined && wasServed && isNodeRunning(this.#fact, within))
      this.#emit(
        { reason: problem },
        `pods of the node have no DNS now; to restore it, run: ${restartCommand(this.#fact.name)}`,
        "warn",
      );
    const { resolvConf, ...rest } = this.#record;
    if (resolvConf === undefined) return;
    try {
      const outcome = this.#parts.resolvConf.restore(resolvConf, this.#fact.search, docker?.reachableAt ?? []);
      if (outcome === "changed") this.#emit({}, "resolv.conf of the node was changed by another program; not restored");
      this.#save(rest);
    } catch (error) {
      this.#emit({ reason: reasonOf(error) }, "cannot restore resolv.conf of the node");
    }
  }

  /** What takes longest: the settings of the interfaces. If it fails, `undo` reports that. */
  async undoInSlices(within: Within): Promise<void> {
    await this.#localnet.restore(within).catch(() => undefined);
  }

  undo(): void {
    try {
      this.#podProbe.clear();
      const { published, resolvConf } = this.#record;
      restoreNamespace(this.#record, this.#parts.memory);
      this.#localnet.reset();
      this.#record = { ...newRecord({ id: this.#fact.containerId, ...this.#fact }, this.#policy.address), published };
      this.#saved = "";
      // A process before has written resolv.conf, and this one has failed before it could take over or withdraw that.
      if (resolvConf !== undefined) this.#save({ ...this.#record, resolvConf });
      else this.#parts.journal.remove(this.#fact.containerId);
    } catch (error) {
      this.#emit({ reason: reasonOf(error) }, "cannot restore the node; to retry, run: dns11 cleanup");
    }
  }

  /** What has to be read in the namespace is as it was at the last report or verification. */
  report(): NodeReport {
    if (this.#served !== undefined) void this.#look(this.#served);
    const reasons = this.#reasons();
    return {
      state: this.#state(reasons),
      advertised: this.#addresses.advertised,
      captured: this.#addresses.captured,
      target: this.#targets,
      families: [...new Set(this.#targets.map((address) => (isIPv6(address) ? "ipv6" : "ipv4")))],
      mode: this.#policy.mode,
      resolvConf: this.#parts.resolvConf.state,
      lastChange: this.#lastChangeMs === 0 ? null : new Date(this.#lastChangeMs).toISOString(),
      lastProbe: this.#podProbe.lastMs === 0 ? null : new Date(this.#podProbe.lastMs).toISOString(),
      dropped: this.#served === undefined ? 0 : this.#guards.last,
      reasons,
      warnings: this.#warnings(),
      ...(this.#policy.isNested === true && { isNested: true }),
    };
  }

  #state(reasons: readonly string[]): NodeReport["state"] {
    if (this.#refusal !== undefined) return "refused";
    if (this.#podProbe.lastMs === 0 || this.#served === undefined) return "starting";
    if (reasons.length > 0) return "degraded";
    // Otherwise the report would promise pods addresses that resolv.conf does not have yet.
    return isDeepStrictEqual(this.#written, this.#addresses.advertised) ? "working" : "starting";
  }

  #reasons(): string[] {
    const { foreign } = this.#addresses;
    const foreignReasons =
      foreign.length === 0 ? [] : [`another program set nameserver ${foreign.join(", ")} in resolv.conf`];
    return [...(this.#refusal === undefined ? [] : [this.#refusal]), ...this.#failures(), ...foreignReasons];
  }

  #failures(): string[] {
    return [...this.#localnet.failures, ...this.#probeFailures];
  }

  #warnings(): string[] {
    const problem = this.#served && this.#docker && problemWith(this.#docker);
    return problem === undefined
      ? []
      : [`when dns11 stops: ${problem}; to restore it, run: ${restartCommand(this.#fact.name)}`];
  }

  /** Reads what reports say of the namespace. */
  async #look({ within }: ServedNamespace): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    await this.#readDocker(within);
    this.#guards.read({ within, memory: this.#parts.memory });
    this.#isLooking = false;
  }

  async #readDocker(within: Within): Promise<void> {
    try {
      this.#docker = await findDockerResolver({ within, memory: this.#parts.memory });
    } catch {
      // The namespace cannot be entered any more.
      this.#docker = undefined;
    }
  }

  #choose(policy: KindPolicy, hasIpv6: boolean): AdvertisedAddresses {
    const { resolvConf } = this.#parts;
    return advertisedAddresses({
      policy,
      fact: this.#fact,
      hasIpv6,
      nameservers: resolvConf.nameservers(),
      before: this.#record.published,
      fromEntrypoint: resolvConf.nameserversFromEntrypoint(),
      isSettingNew: this.#record.wish !== policy.address,
    });
  }

  /** From now on pods may use these addresses. */
  #recordAddresses(wish: string): void {
    const published = [...new Set([...this.#record.published, ...this.#addresses.advertised])];
    this.#record = { ...this.#record, wish, published };
  }

  #conflictOf({ captured }: AdvertisedAddresses): string {
    if (this.#policy.isForced) return "none";
    return this.conflicts.find(
      captured.filter((address) => this.#fact.addresses.some((each) => isSameAddress(each, address))),
    );
  }

  #redirects(route: RouteSocket, existing: readonly InterfaceAddress[], hasIpv6: boolean): Redirect[] {
    const { captured, advertised } = this.#addresses;
    const dedicated = chooseListenAddress(existing);
    const isLoopback = this.#policy.mode === "loopback";
    const binds = [isLoopback ? DOCKER_RESOLVER : dedicated, ...(hasIpv6 ? [DEDICATED.ipv6] : [])];
    const local = [...(isLoopback ? [] : [dedicated]), ...(hasIpv6 ? [DEDICATED.ipv6] : [])];
    // Without a route the kernel refuses to send, so the rules would never see the query.
    const unrouted = captured.filter((address) => !local.includes(address) && !route.hasRouteTo(address));
    this.#addToLo(route, existing, [...local, ...unrouted]);
    return binds.map((bind): Redirect => {
      const ofFamily = captured.filter((address) => isIPv6(address) === isIPv6(bind));
      const replySource = advertised.find((address) => isIPv6(address) === isIPv6(bind)) ?? ofFamily[0];
      return { bind, fromInside: ofFamily, fromPods: ofFamily, ...(replySource !== undefined && { replySource }) };
    });
  }

  /** Adds these addresses to lo and records which of them are ours. */
  #addToLo(route: RouteSocket, existing: readonly InterfaceAddress[], wanted: readonly string[]): void {
    const ours = ownLoAddresses(wanted, existing, this.#record.addresses);
    const merged = new Map([...this.#record.addresses, ...ours].map((each) => [each.address, each]));
    this.#save({ ...this.#record, addresses: [...merged.values()] });
    addLoAddresses(route, existing, ours);
  }

  #facingPods(links: readonly Link[], existing: readonly InterfaceAddress[]): readonly Link[] {
    const bypassed = this.#policy.isExposed ? new Set<number>() : this.#dockerDevices(existing);
    // The test pod must have the same settings as any new pod.
    return links.filter((link) => !link.isLoopback && !bypassed.has(link.index) && !isPodLink(link));
  }

  #dockerDevices(existing: readonly InterfaceAddress[]): Set<number> {
    const docker = existing.filter(({ address }) => this.#fact.addresses.some((own) => isSameAddress(own, address)));
    return new Set(docker.map(({ index }) => index));
  }

  /** Writes the addresses for pods into the node's resolv.conf. */
  advertise(): void {
    this.#written = this.#addresses.advertised;
    const state = this.#parts.resolvConf.advertise({
      addresses: this.#addresses.advertised,
      ours: this.#policy.families === "auto" ? undefined : this.#addresses.captured,
      search: this.#fact.search,
      dropsNdots: this.#policy.isNested,
      record: this.#record.resolvConf,
      save: (resolvConf) => this.#save({ ...this.#record, resolvConf }),
      onRewritten: () => this.#parts.onChange(),
    });
    if (state !== undefined) this.#emit({ resolvConf: state }, "resolv.conf of the node changed state");
  }

  #reportFailures(): void {
    const failures = this.#failures();
    const now = failures.join("; ");
    if (now === this.#lastReported) return;
    this.#lastReported = now;
    if (now === "") this.#emit({}, "pods of the node, or what runs in the container, can resolve names again");
    else
      this.#emit(
        { reasons: failures },
        "pods of the node, or what runs in the container, may be unable to resolve names",
      );
  }

  /** Most changes of the node's networks leave the record as it is. */
  #save(record: ChangeRecord): void {
    this.#record = record;
    const text = JSON.stringify(record);
    if (text === this.#saved) return;
    this.#parts.journal.write(record);
    this.#saved = text;
  }

  #emit(about: Readonly<Record<string, unknown>>, text: string, level?: "warn"): void {
    this.#parts.onEvent({ node: this.#fact.name, ...about }, text, level);
  }
}

/** What the captured addresses depend on, and the interfaces that the rules leave alone. */
function captureFacts({ gateway, own, addresses, joins, hostGateway }: NodeFact): unknown {
  return [gateway, own, addresses, joins, hostGateway];
}

/**
 * Probes the node's addresses from a test pod, periodically and after changes that affect pods. A probe from the node
 * itself may succeed where a pod's fails.
 */
class PodProbe {
  readonly #runner: NamespaceRunner;
  readonly #memory: NetlinkMemory;
  /** The last test pod. */
  #pod: PodNamespace | undefined;
  #isDue = true;
  #lastMs = 0;
  #failures: readonly string[] = [];

  constructor({ runner, memory }: { readonly runner: NamespaceRunner; readonly memory: NetlinkMemory }) {
    this.#runner = runner;
    this.#memory = memory;
  }

  /** The time of the last probe; 0 for never. */
  get lastMs(): number {
    return this.#lastMs;
  }

  /** The redirects for pods have changed: the next probe is due. */
  expire(): void {
    this.#isDue = true;
  }

  /** Returns the failures, a sentence each. Does nothing and returns none while no probe is due. */
  async probe(served: ServedNamespace, targets: ProbeTargets): Promise<readonly string[]> {
    // Also after the machine's clock has been set back.
    const sinceMs = Math.abs(Date.now() - this.#lastMs);
    if (!this.#isDue && this.#failures.length === 0 && sinceMs < POD_PROBE_EVERY_MS) return [];
    this.#isDue = false;
    this.#failures = await this.#probeNow(served, targets);
    return this.#failures;
  }

  /** Call inside the node, at the end. */
  clear(): void {
    if (this.#pod !== undefined) removePodLink(this.#memory, this.#pod.link);
    this.#pod = undefined;
  }

  async #probeNow(served: ServedNamespace, { addresses, isCurrent }: ProbeTargets): Promise<readonly string[]> {
    let pod: PodNamespace;
    try {
      pod = await openPodNamespace(this.#runner, this.#memory, served.fd);
    } catch (error) {
      return [`cannot create a test pod: ${reasonOf(error)}`];
    }
    this.#pod = isCurrent() ? pod : undefined;
    const reachable = addresses.filter((each) => !isIPv6(each) || pod.addresses.ipv6 !== undefined);
    try {
      return await probeAll(served, { addresses: reachable, isCurrent }, "a pod", pod);
    } finally {
      try {
        if (isCurrent()) served.within(() => this.#deleteEntries(pod, reachable, served.zone));
      } finally {
        pod.abandon();
        this.#lastMs = Date.now();
      }
    }
  }

  #deleteEntries(pod: PodNamespace, addresses: readonly string[], zone: number): void {
    deleteConversations(this.#memory, conversationsOf(pod, addresses), [DEFAULT_ZONE, zone]);
  }
}

/** Probes each address from the node itself or from a test pod. Returns the failures, a sentence each. */
async function probeAll(
  served: ServedNamespace,
  { addresses, isCurrent }: ProbeTargets,
  client: string,
  from?: PodNamespace,
): Promise<string[]> {
  const failures: string[] = [];
  for (const address of addresses) {
    if (!isCurrent()) break;
    const result = await served.probe(address, from);
    if (result.kind === "broken") failures.push(`${client} cannot query ${address}: ${result.failures.join("; ")}`);
  }
  return failures;
}

const DNS_PORT = 53;
/** The first answer within this time does not read rules again: it is asked for because they have all been read. */
const FRESH_MS = 1_000;
const REMEDY = "choose another kind.ip, or set kind.force";

/**
 * Programs that already use port 53 of a node's own address and would lose its queries: a resolver in the
 * node, or a pod that the port is redirected to. A node of a large cluster has tens of thousands of rules: they are read in
 * slices, and the first answer has to wait for them.
 */
export class PortConflicts {
  readonly #memory: NetlinkMemory;
  readonly #onChange: () => void;
  /** What the last reading of all rules has found. */
  #found: readonly string[] | undefined;
  /** The time at which that was reported as a change, until it has been an answer. */
  #changedMs = -Infinity;
  #reading: Promise<void> | undefined;

  /** `onChange`: all rules have been read, and another answer may follow. */
  constructor(memory: NetlinkMemory, onChange: () => void) {
    this.#memory = memory;
    this.#onChange = onChange;
  }

  /** A sentence, "none", or "unknown" before all rules have been read. Call inside the namespace. */
  find(addresses: readonly string[]): string {
    if (addresses.length === 0) return "none";
    const listening = addresses.flatMap((address) =>
      listenersAt(address, DNS_PORT).map((protocol) => `${address} over ${protocol}`),
    );
    if (listening.length > 0) return `a process listens on port 53 of ${listening.join(" and ")}: ${REMEDY}`;
    const chains = this.#chains();
    if (chains === undefined) return "unknown";
    if (chains.length === 0) return "none";
    return `port 53 of ${addresses.join(" and ")} is redirected by chain ${chains.join(", ")}: ${REMEDY}`;
  }

  /** The chains that redirect the port, as far as they are known; undefined if that is not far enough. */
  #chains(): readonly string[] | undefined {
    const found = this.#found;
    const isFresh = performance.now() - this.#changedMs < FRESH_MS;
    this.#changedMs = -Infinity;
    if (isFresh) return found;
    const { chains, isComplete } = firstChainsRedirecting(this.#memory, DNS_PORT);
    if (isComplete) return chains;
    this.#reading ??= this.#readAll();
    return chains.length === 0 ? found : [...new Set([...chains, ...(found ?? [])])];
  }

  /** Resolves when all rules have been read, if that has begun. */
  async read(): Promise<void> {
    await this.#reading;
  }

  async #readAll(): Promise<void> {
    try {
      const before = this.#found;
      const found = await allChainsRedirecting(this.#memory, DNS_PORT);
      this.#found = found;
      this.#reading = undefined;
      if (before?.join() === found.join()) return;
      this.#changedMs = performance.now();
      this.#onChange();
    } catch (error) {
      this.#reading = undefined;
      guard.report(error, "netlink");
    }
  }
}
