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
import type { AttachMode, ServedNamespace } from "../attach/attach-mode.ts";
import {
  type Capture,
  DOCKER_REDIRECT,
  DOCKER_RESOLVER,
  type Redirect,
  CONTAINER_CAPTURE,
} from "../capture/capture.ts";
import type { NamespaceRunner } from "../namespace/namespace-runner.ts";
import type { Within } from "../rules/exchange.ts";
import { GuardCount } from "../rules/guard-count.ts";
import { type DockerResolver, findDockerResolver, restartRemedy, problemWith } from "./docker-resolver.ts";
import type { Journal, NodeRecord } from "./journal.ts";
import { type NodeInterfaces, RouteLocalnetGuard } from "./route-localnet-guard.ts";
import { isIpv6Enabled, chooseListenAddress, addLoAddresses, ownLoAddresses } from "./lo-addresses.ts";
import { type NodeFact, isNodeRunning } from "./node-fact.ts";
import { isPodLink } from "./pod-namespace.ts";
import { PodProbe, probeAll } from "./pod-probe.ts";
import { findPortConflict } from "./port-conflict.ts";
import { DEDICATED, type AdvertisedAddresses, advertisedAddresses } from "./advertised-addresses.ts";
import type { NodeResolvConf } from "./node-resolv-conf.ts";
import { restoreNamespace } from "./node-restore.ts";

export interface NodeParts {
  readonly runner: NamespaceRunner;
  readonly memory: NetlinkMemory;
  readonly journal: Journal;
  /** The node's resolv.conf. */
  readonly resolvConf: NodeResolvConf;
  /** Other addresses may be ours now. */
  readonly onChange: () => void;
  /** Something that a person may want to know. */
  readonly onEvent: ReportEvent;
}

const NO_ADDRESSES: AdvertisedAddresses = { advertised: [], captured: [], foreign: [] };

export class NodeMode implements AttachMode {
  readonly #parts: NodeParts;
  #policy: KindPolicy;
  #fact: NodeFact;
  #record: NodeRecord;
  #published = NO_ADDRESSES;
  #targets: readonly string[] = [];
  #refusal: string | undefined;
  readonly #guards = new GuardCount();
  #site: ServedNamespace | undefined;
  #isWithdrawn = false;
  #lastChangeMs = 0;
  readonly #podProbe: PodProbe;
  readonly #letIn: RouteLocalnetGuard;
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
    this.#letIn = new RouteLocalnetGuard({
      record: () => this.#record,
      save: (localnet) => this.#keep({ ...this.#record, ...localnet }),
      onRepaired: (interfaces) =>
        this.#news({ interfaces }, "somebody switched route_localnet off; it is on again", "warn"),
    });
  }

  get fact(): NodeFact {
    return this.#fact;
  }

  /** Where the node stands by now, and what settings want of it; returns whether that may make other addresses ours. */
  update(fact: NodeFact, policy: KindPolicy): boolean {
    const before = JSON.stringify([addressesOfNode(this.#fact), this.#policy]);
    this.#fact = fact;
    this.#policy = policy;
    return JSON.stringify([addressesOfNode(fact), policy]) !== before;
  }

  capture(): Capture {
    const { memory } = this.#parts;
    const policy = this.#policy;
    this.#isWithdrawn = false;
    const route = new RouteSocket(memory);
    try {
      const held = route.addresses();
      const hasIpv6 = isIpv6Enabled();
      this.#published = this.#choose(policy, hasIpv6);
      this.#refusal = this.#refusalOf(this.#published);
      if (this.#refusal !== undefined) {
        // What was told before goes on; without that, the node is a container as any other.
        if (this.#record.published.length === 0) {
          this.#published = NO_ADDRESSES;
          return CONTAINER_CAPTURE;
        }
        this.#published = this.#choose({ ...policy, address: this.#record.wish }, hasIpv6);
      }
      this.#remember(this.#refusal === undefined ? policy.address : this.#record.wish);
      const dockerDevices = this.#dockerDevices(held);
      const leads = this.#leads(route, held, hasIpv6);
      this.#targets = leads.map(({ bind }) => bind);
      if (policy.mode === "loopback") this.#letIn.enable(this.#interfaces(route, held));
      this.#lastChangeMs = Date.now();
      this.#podProbe.expire();
      return {
        redirects: [DOCKER_REDIRECT, ...leads],
        bypassInterfaces: policy.isExposed ? [] : [...dockerDevices],
        guardsLoopback: policy.mode === "loopback",
      };
    } finally {
      route.close();
    }
  }

  async onVerified(site: ServedNamespace): Promise<void> {
    this.#site = site;
    if (this.#published.advertised.length === 0) return;
    // Whoever has withdrawn meanwhile has put the file back; and the site's descriptor may be another's by now.
    const isCurrent = (): boolean => this.#site === site;
    const inside = await probeAll(site, { addresses: this.#published.captured, isCurrent }, "the node itself");
    if (!isCurrent()) return;
    if (inside.length === 0) this.advertise();
    if (this.#policy.mode === "loopback") {
      this.#look();
      this.#lookTimer ??= setInterval(() => this.#look(), LIMITS.localnetCheckMs).unref();
    }
    const pods = await this.#podProbe.probe(site, { addresses: this.#published.advertised, isCurrent });
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
    this.#parts.resolvConf.close();
    const docker = this.#dockerResolver(within);
    const trouble = docker && problemWith(docker);
    // Docker's resolver ends before a container that is stopped, and then nobody is left to ask.
    if (trouble !== undefined && wasServed && isNodeRunning(this.#fact, within))
      this.#news({ reason: trouble }, `nobody answers pods of the node now: ${restartRemedy(this.#fact.name)}`, "warn");
    const { resolvConf, ...rest } = this.#record;
    if (resolvConf === undefined) return;
    try {
      const outcome = this.#parts.resolvConf.restore(resolvConf, this.#fact.search, docker?.reachableAt ?? []);
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
      restoreNamespace(this.#record, this.#parts.memory);
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
      advertised: this.#published.advertised,
      captured: this.#published.captured,
      target: this.#targets,
      families: [...new Set(this.#targets.map((address) => (isIPv6(address) ? "ipv6" : "ipv4")))],
      mode: this.#policy.mode,
      resolvConf: this.#parts.resolvConf.state,
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
    const trouble = docker && problemWith(docker);
    return trouble === undefined ? [] : [`when dns11 ends: ${trouble}; ${restartRemedy(this.#fact.name)}`];
  }

  /** undefined where it cannot be looked for. */
  #dockerResolver(within: Within): DockerResolver | undefined {
    try {
      return within(() => findDockerResolver(this.#parts.memory));
    } catch {
      return undefined;
    }
  }

  #choose(policy: KindPolicy, hasIpv6: boolean): AdvertisedAddresses {
    const { resolvConf: resolver } = this.#parts;
    return advertisedAddresses({
      policy,
      fact: this.#fact,
      hasIpv6,
      nameservers: resolver.nameservers(),
      before: this.#record.published,
      fromEntrypoint: resolver.nameserversFromEntrypoint(),
      isSettingNew: this.#record.wish !== policy.address,
    });
  }

  /** Pods may have it from now on. */
  #remember(wish: string): void {
    const published = [...new Set([...this.#record.published, ...this.#published.advertised])];
    this.#record = { ...this.#record, wish, published };
  }

  #refusalOf({ captured }: AdvertisedAddresses): string | undefined {
    if (this.#policy.isForced) return undefined;
    const own = captured.filter((address) => this.#fact.addresses.some((each) => isSameAddress(each, address)));
    return findPortConflict(own, this.#parts.memory);
  }

  #leads(route: RouteSocket, held: readonly InterfaceAddress[], hasIpv6: boolean): Redirect[] {
    const { captured, advertised: told } = this.#published;
    const dedicated = chooseListenAddress(held);
    const isLoopback = this.#policy.mode === "loopback";
    const binds = [isLoopback ? DOCKER_RESOLVER : dedicated, ...(hasIpv6 ? [DEDICATED.ipv6] : [])];
    const local = [...(isLoopback ? [] : [dedicated]), ...(hasIpv6 ? [DEDICATED.ipv6] : [])];
    // An address that no route leads to is never sent to, so the rules would not see it.
    const unrouted = captured.filter((address) => !local.includes(address) && !route.hasRouteTo(address));
    this.#hold(route, held, [...local, ...unrouted]);
    return binds.map((bind): Redirect => {
      const ofFamily = captured.filter((address) => isIPv6(address) === isIPv6(bind));
      const repliesAs = told.find((address) => isIPv6(address) === isIPv6(bind)) ?? ofFamily[0];
      return {
        bind,
        fromInside: ofFamily,
        fromPods: ofFamily,
        ...(repliesAs !== undefined && { replySource: repliesAs }),
      };
    });
  }

  /** Has lo hold these addresses, and remembers which of them it holds for us. */
  #hold(route: RouteSocket, held: readonly InterfaceAddress[], wanted: readonly string[]): void {
    const ours = ownLoAddresses(wanted, held, this.#record.addresses);
    const merged = new Map([...this.#record.addresses, ...ours].map((each) => [each.address, each]));
    this.#keep({ ...this.#record, addresses: [...merged.values()] });
    addLoAddresses(route, held, ours);
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
  #interfacesNow(): NodeInterfaces {
    const route = new RouteSocket(this.#parts.memory);
    try {
      return this.#interfaces(route, route.addresses());
    } finally {
      route.close();
    }
  }

  #interfaces(route: RouteSocket, held: readonly InterfaceAddress[]): NodeInterfaces {
    const all = route.links();
    const passed = this.#policy.isExposed ? new Set<number>() : this.#dockerDevices(held);
    // A pod that was made to ask from is to be let in as a new one is, and no better.
    const ofAskers = all.filter((link) => !link.isLoopback && !passed.has(link.index) && !isPodLink(link));
    return { all, facingPods: ofAskers, scope: this.#policy.routeLocalnet };
  }

  #dockerDevices(held: readonly InterfaceAddress[]): Set<number> {
    const docker = held.filter(({ address }) => this.#fact.addresses.some((own) => isSameAddress(own, address)));
    return new Set(docker.map(({ index }) => index));
  }

  /** Has the node's resolv.conf say where pods are to ask. */
  advertise(): void {
    const { resolvConf: resolver } = this.#parts;
    const news = resolver.advertise({
      addresses: this.#published.advertised,
      ours: this.#policy.families === "auto" ? undefined : this.#published.captured,
      search: this.#fact.search,
      record: this.#record.resolvConf,
      save: (resolvConf) => this.#keep({ ...this.#record, resolvConf }),
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
    this.#parts.onEvent({ node: this.#fact.name, ...about }, text, level);
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

function addressesOfNode({ gateway, own, addresses, hostGateway }: NodeFact): unknown {
  return [gateway, own, addresses, hostGateway];
}
