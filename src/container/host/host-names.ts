/**
 * HostNames: container names for programs on the machine itself, and the names of zones. It chooses the means, and has the
 * reconciler serve the host's namespace as it serves a container's. Off by default.
 */
import { isDeepStrictEqual } from "node:util";

import { Fault, isInternalError, reasonWithRemedy } from "../../base/lib/fault.ts";
import { guard } from "../../base/lib/guard.ts";
import type { ReportEvent } from "../../base/model/event.ts";
import type { HostPolicy } from "../../base/model/host-policy.ts";
import { domainLabels } from "../../base/model/server-text.ts";
import type { VisibleNames } from "../../base/model/visible-names.ts";
import type { Route, View } from "../../base/model/view.ts";
import { RouteSocket, type InterfaceAddress } from "../../kernel/rtnetlink.ts";
import type { Decision } from "../attach/decision.ts";
import type { DesiredAttachment, Reconciler } from "../attach/reconciler.ts";
import { openHostNetwork } from "../namespace/engine-host.ts";
import type { NamespaceClaim, ProvenNamespace } from "../namespace/proof.ts";
import { ReachableAddresses, NOTHING } from "../names/zone/reachable-addresses.ts";
import type { ContainerFact, NetworkFact, EndpointFact } from "../facts/fact.ts";
import { type Addresses, EVERYWHERE, type MemberEndpoint, type ZoneMember } from "../names/zone/member.ts";
import { FittingNames } from "./fitting-answers.ts";
import { HOST_ID } from "./host-fact.ts";
import { type ChosenMeans, HostMeans, type HostMeansParts } from "./host-means.ts";
import { HOST_LIMITS } from "./limits.ts";
import { reverseZoneNames } from "./reverse-zones.ts";
import { HostSubnets, type Subnet } from "./host-subnets.ts";
import { HostZone } from "./host-zone.ts";

interface HostMembersParts {
  readonly networkOf: (id: string) => NetworkFact | undefined;
  readonly readAddresses: () => readonly InterfaceAddress[];
  /** The subnets are others now. */
  readonly onSubnets: () => void;
}

export interface HostNamesParts extends Omit<HostMeansParts, "subnets" | "onChange"> {
  readonly isRootless: boolean;
  readonly reconciler: Reconciler;
  readonly containers: () => Iterable<ContainerFact>;
  readonly networkOf: (id: string) => NetworkFact | undefined;
  /** The sources beside the host's domain, in order: these zones, and what is declared for everybody. */
  readonly sources: (
    zones: readonly string[],
    reachable: ReachableAddresses,
    servers: readonly string[],
  ) => readonly VisibleNames[];
  /** Routes through nodes, whose domains are among the zones. */
  readonly nodeRoutes: () => readonly Route[];
  readonly onEvent: ReportEvent;
  /** `denied` has changed. */
  readonly onDenied: () => void;
}

export class HostNames {
  readonly #parts: HostNamesParts;
  #policy: HostPolicy;
  #members: HostMembers | undefined;
  #means: HostMeans | undefined;
  #chosen: ChosenMeans | undefined;
  /** While the host is to be served. */
  #desired: Omit<DesiredAttachment, "view"> | undefined;
  #decision: Decision = { kind: "serve" };
  #captureTimer: NodeJS.Timeout | undefined;
  #checkTimer: NodeJS.Timeout | undefined;
  #isClosed = false;
  /** Counts the checks, so that only the last one decides. */
  #checks = 0;

  constructor(policy: HostPolicy, parts: HostNamesParts) {
    this.#parts = parts;
    this.#policy = policy;
    this.#open();
  }

  /** Whether queries for names of the domain may be redirected on the host. */
  get isOn(): boolean {
    return this.#policy.means !== "off";
  }

  get decision(): Decision {
    return this.#decision;
  }

  /** The domain below which container names resolve on the host now; undefined if they do not. */
  get domain(): string | undefined {
    return this.#chosen === undefined ? undefined : this.#policy.domain;
  }

  /**
   * The domains that containers must not ask the host's servers for: systemd-resolved would ask us, and a container
   * would see the names of the host.
   */
  get denied(): readonly string[] {
    if (this.#chosen?.means !== "resolved") return [];
    return [this.#policy.domain, ...reverseZoneNames(this.#members?.subnets ?? [])];
  }

  get view(): View {
    const isThroughResolved = this.#chosen?.means === "resolved";
    const servers = isThroughResolved ? (this.#means?.uplinks ?? []) : this.#parts.upstreams().servers;
    const local = { servers: [], isLocal: true };
    const { domain } = this.#policy;
    const { zones = [] } = this.#chosen ?? {};
    const nodeRoutes = this.#parts
      .nodeRoutes()
      .filter(({ suffix }) => zones.some((zone) => Buffer.compare(suffix, domainLabels(zone)) === 0));
    const routes = [
      ...nodeRoutes,
      { ...suffixOf(domain), ...local, by: "the setting host-domain" },
      {
        suffix: new Uint8Array(0),
        labelCount: 0,
        servers,
        isLocal: false,
        by: isThroughResolved ? "the servers of systemd-resolved" : "the host's current resolv.conf",
      },
    ];
    return { names: this.#sources(), upstreams: { routes, isNdotsSet: false } };
  }

  /** The names of the view have changed: those that are declared, or the zones' own. */
  updateNames(): void {
    const desired = this.#desired;
    if (desired !== undefined) this.#parts.reconciler.setDesired(HOST_ID, { ...desired, view: this.view });
  }

  configure(policy: HostPolicy): void {
    // Other zones need no other link and no other sockets: what resolves already stays without a gap.
    if (isDeepStrictEqual({ ...policy, zones: this.#policy.zones }, this.#policy)) {
      this.#policy = policy;
      this.#means?.setZones(policy.zones);
      return this.refresh();
    }
    this.#release();
    this.#policy = policy;
    this.#setChosen(undefined);
    this.#desired = undefined;
    this.#parts.reconciler.clearDesired(HOST_ID);
    this.#open();
    this.refresh();
  }

  put(fact: ContainerFact): void {
    this.#members?.put(fact);
  }

  remove(id: string): void {
    this.#members?.remove(id);
  }

  /** Checks and decides again: call at the start, and when the host or its servers may have changed. */
  refresh(): void {
    if (this.isOn && !this.#isClosed) void this.#decide();
  }

  close(): void {
    this.#isClosed = true;
    this.#release();
  }

  /** The host's namespace, which `proveNamespace` always refuses. */
  prove({ sandboxKey, pid }: NamespaceClaim): ProvenNamespace {
    const host = this.#parts.host();
    if (sandboxKey !== host.networkId) throw engineExited(pid);
    return { fd: openHostNetwork(host), id: host.networkId };
  }

  /** In the order in which containers have them. */
  #sources(): VisibleNames[] {
    const members = this.#members;
    if (members === undefined) return [];
    const { zones = [] } = this.#chosen ?? {};
    const servers = this.#parts.upstreams().resolvConf.nameservers;
    const others = this.#parts.sources(
      zones,
      reachableFromHost((id) => members.reachable(id)),
      servers,
    );
    return [...others.map((each) => new FittingNames(each)), members.zone];
  }

  #release(): void {
    this.#checks++;
    this.#members?.close();
    this.#members = undefined;
    this.#means?.close();
    this.#means = undefined;
    clearInterval(this.#checkTimer);
    clearTimeout(this.#captureTimer);
    this.#captureTimer = undefined;
  }

  #open(): void {
    if (!this.isOn) return;
    const { domain } = this.#policy;
    const members = new HostMembers(domain, {
      networkOf: this.#parts.networkOf,
      readAddresses: () => this.#readAddresses(),
      onSubnets: () => this.#updateCapture(),
    });
    this.#members = members;
    this.#means = new HostMeans(this.#policy, {
      ...this.#parts,
      subnets: () => members.subnets,
      onChange: () => this.refresh(),
    });
    for (const fact of this.#parts.containers()) members.put(fact);
    this.#checkTimer = setInterval(() => void this.#checkAgain(), HOST_LIMITS.checkEveryMs).unref();
  }

  async #decide(): Promise<void> {
    const check = ++this.#checks;
    const choice = await this.#choose();
    if (check !== this.#checks || choice === undefined) return;
    const reconciler = this.#parts.reconciler;
    if (typeof choice === "string") {
      const before = this.#decision.kind === "skip" ? this.#decision.reason : undefined;
      this.#decision = { kind: "skip", code: "host-names", reason: choice };
      this.#setChosen(undefined);
      this.#desired = undefined;
      reconciler.clearDesired(HOST_ID);
      if (before !== choice)
        this.#parts.onEvent({ reason: choice }, "container names do not resolve on the host", "warn");
      return;
    }
    const { means, why, zones, warning } = choice;
    this.#warn(warning);
    const report = { means, why, ...(zones.length > 0 && { zones }) };
    this.#decision = { kind: "serve", hostNames: report, ...(warning !== undefined && { warning }) };
    this.#setChosen(choice);
    const { pid, networkId } = this.#parts.host();
    // The namespace stays when dockerd is restarted as another process, and so do the names.
    const claim = { containerId: HOST_ID, sandboxKey: networkId, pid };
    this.#desired = { claim, mode: choice.mode };
    this.updateNames();
    reconciler.updateCapture(HOST_ID);
  }

  /** The means, or why the host is not served, with what to do about it. */
  async #choose(): Promise<ChosenMeans | string | undefined> {
    try {
      if (this.#parts.isRootless) throw notTheMachine();
      return await this.#means?.choose();
    } catch (error) {
      if (isInternalError(error)) guard.report(error, "attach");
      return reasonWithRemedy(error);
    }
  }

  #setChosen(chosen: ChosenMeans | undefined): void {
    const before = this.#chosen;
    this.#chosen = chosen;
    this.#members?.zone.setMeans(chosen);
    if (before?.means === chosen?.means) return;
    if (chosen !== undefined) {
      const { means, why } = chosen;
      this.#parts.onEvent({ means, why }, "container names resolve on the host");
    }
    this.#parts.onDenied();
  }

  #warn(warning: string | undefined): void {
    if (warning === undefined || warning === this.#decision.warning) return;
    this.#parts.onEvent({ warning }, "some names do not resolve on the host", "warn");
  }

  #readAddresses(): readonly InterfaceAddress[] {
    const { runner, memory, host } = this.#parts;
    const socket = runner.within(host().network, () => new RouteSocket(memory));
    try {
      return socket.addresses();
    } finally {
      socket.close();
    }
  }

  /** A problem may be gone, other means may be better, and a resolver that was started meanwhile is spared from now on. */
  async #checkAgain(): Promise<void> {
    if (this.#decision.kind === "skip" || this.#decision.warning !== undefined) return this.refresh();
    try {
      const current = await this.#means?.current();
      if (current !== this.#chosen?.means) this.refresh();
      else this.#updateCapture();
    } catch (error) {
      guard.report(error, "timer");
    }
  }

  /** Once for all changes of a turn. */
  #updateCapture(): void {
    this.#captureTimer ??= setTimeout(() => {
      this.#captureTimer = undefined;
      guard.run("timer", 0, () => {
        this.#parts.reconciler.updateCapture(HOST_ID);
        if (this.#chosen?.means === "resolved") this.#parts.onDenied();
      });
    }, 0).unref();
  }
}

function suffixOf(domain: string): Pick<Route, "suffix" | "labelCount"> {
  return { suffix: domainLabels(domain), labelCount: domain.split(".").length };
}

/** A rootless engine's host is a namespace of its own, in which the machine's programs are not. */
function notTheMachine(): Fault {
  return new Fault("HOST_ROOTLESS", "The user of a rootless engine has no rights over the machine's network", {
    remedy: "Set host-names: off, or query the containers' names from a container.",
  });
}

function engineExited(pid: number): Fault {
  return new Fault("NAMESPACE_GONE", `Process ${pid} of the engine has exited`, {
    remedy: "Nothing to do: dns11 tries again with the engine's new process.",
  });
}

/** The containers that the host can reach, in the zone of its names, and the subnets that they are on. */
export class HostMembers {
  readonly zone: HostZone;
  readonly #parts: HostMembersParts;
  readonly #subnets: HostSubnets;
  readonly #reachable = new Map<string, readonly EndpointFact[]>();
  /** The subnets in use, with the number of addresses on each. */
  readonly #used = new Map<string, { readonly subnet: Subnet; count: number }>();
  /** Containers on a bridge whose interface was not seen: it may be new. */
  readonly #unseen = new Map<string, ContainerFact>();
  #timer: NodeJS.Timeout | undefined;

  constructor(domain: string, parts: HostMembersParts) {
    this.zone = new HostZone(domain);
    this.#parts = parts;
    this.#subnets = new HostSubnets(parts.readAddresses);
  }

  get subnets(): Subnet[] {
    return [...this.#used.values()].map(({ subnet }) => subnet);
  }

  /** The endpoints of a container, with those of its addresses that the host can reach. */
  reachable(id: string): readonly EndpointFact[] {
    return this.#reachable.get(id) ?? [];
  }

  put(fact: ContainerFact): void {
    if (this.#put(fact)) return;
    this.#unseen.set(fact.id, fact);
    this.#timer ??= setTimeout(() => this.#retry(), HOST_LIMITS.addressesMs).unref();
  }

  remove(id: string): void {
    this.#unseen.delete(id);
    const before = this.#reachable.get(id) ?? [];
    this.#reachable.delete(id);
    this.zone.remove(id, before);
    if (this.#count(before, -1)) this.#parts.onSubnets();
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  /** Whether the host's interface of every bridge network was seen. */
  #put(fact: ContainerFact): boolean {
    const before = this.#reachable.get(fact.id) ?? [];
    const found = fact.endpoints.map((endpoint) =>
      this.#subnets.reachable(endpoint, this.#parts.networkOf(endpoint.networkId)),
    );
    const reachable = found.flatMap(({ endpoint }) => endpoint ?? []);
    this.#reachable.set(fact.id, reachable);
    this.zone.put(fact, before, reachable);
    const [isMore, isLess] = [this.#count(reachable, 1), this.#count(before, -1)];
    if (isMore || isLess) this.#parts.onSubnets();
    return found.every(({ isSeen }) => isSeen);
  }

  #retry(): void {
    this.#timer = undefined;
    const facts = [...this.#unseen.values()];
    this.#unseen.clear();
    guard.run("timer", 0, () => {
      for (const fact of facts) this.#put(fact);
    });
  }

  /** Counts addresses on their subnets; returns whether a subnet came or went. */
  #count(endpoints: readonly EndpointFact[], by: 1 | -1): boolean {
    let isChanged = false;
    for (const { ipv4, ipv6 } of endpoints) {
      for (const address of [ipv4, ipv6]) {
        const subnet = address === undefined ? undefined : this.#subnets.subnetOf(address);
        if (subnet === undefined) continue;
        const key = `${subnet.address}/${subnet.prefixLength}`;
        const entry = this.#used.get(key) ?? { subnet, count: 0 };
        entry.count += by;
        if (entry.count <= 0) this.#used.delete(key);
        else this.#used.set(key, entry);
        isChanged ||= entry.count === (by === 1 ? 1 : 0);
      }
    }
    return isChanged;
  }
}

/**
 * The addresses of containers that the host gets below a zone: those that it can reach, whatever `visible`
 * says, as for all names on the host.
 *
 * `reachable`: the endpoints of a container, with those of its addresses that the host can reach.
 */
export function reachableFromHost(reachable: (id: string) => readonly EndpointFact[]): ReachableAddresses {
  const addressesOf = ({ networkId, v4, v6 }: MemberEndpoint, { id }: ZoneMember): Addresses => {
    if (networkId === EVERYWHERE) return { v4, v6 };
    const found = reachable(id).find((each) => each.networkId === networkId);
    if (found === undefined) return NOTHING;
    return { v4: found.ipv4 === undefined ? [] : v4, v6: found.ipv6 === undefined ? [] : v6 };
  };
  // All networks are equal to the host, so a container's addresses stay in the order in which the engine lists them.
  return new ReachableAddresses(addressesOf, () => 0);
}
