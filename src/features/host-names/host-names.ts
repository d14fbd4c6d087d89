import { isDeepStrictEqual } from "node:util";

import type { ContainerStatus, HostMeansReport } from "../../api/status.ts";
import { Fault, isInternalError, reasonWithRemedy } from "../../base/lib/fault.ts";
import { guard } from "../../base/lib/guard.ts";
import type { ReportEvent } from "../../base/log/log.ts";
import { domainLabels } from "../../base/model/server-text.ts";
import type { VisibleNames } from "../../base/model/visible-names.ts";
import type { Route, View } from "../../base/model/view.ts";
import type { Decision } from "../../container/attach/decision.ts";
import type { DesiredAttachment } from "../../container/attach/reconciler.ts";
import { type ContainerFact, outsiderFact } from "../../container/facts/fact.ts";
import { FittingNames } from "../../container/names/host-domain/fitting-answers.ts";
import { openHostNetwork, readEngineFile } from "../../container/namespace/engine-host.ts";
import type { NamespaceClaim, ProvenNamespace } from "../../container/namespace/proof.ts";
import { type ResolvConf, parseResolvConf } from "../../container/watch/resolv-conf.ts";
import { RouteSocket, type InterfaceAddress } from "../../kernel/rtnetlink.ts";
import type { EngineCore, OwnNamespace, RunCore, Running } from "../contract.ts";
import { HostDomainNames } from "./domain-names.ts";
import { type HostPolicy, hostPolicyOf } from "./feature.ts";
import { HOST_LIMITS } from "./limits.ts";
import { type ChosenMeans, HostMeans } from "./means.ts";
import { HostMembers, reverseZoneNames } from "./members.ts";
import { HOST_ID, hostMeansText } from "./report.ts";

/** The setting, where the domains that it decides about are explained. */
const BY = "the setting host-names";

export function open({ settings, onEvent }: RunCore): Running {
  // Inside of a KIND node there is no host.
  let names: HostNames | undefined;
  let inContainers: HostDomainNames | undefined;
  const setDomain = (domain: string | undefined): void => inContainers?.setDomain(domain);
  return {
    makeNames: (next, context) => {
      const { domain } = inContainers ?? {};
      const onSucceeded = (made: HostDomainNames): void => void (inContainers = made);
      const source = new HostDomainNames(next, context, { domain, onSucceeded });
      inContainers ??= source;
      return { place: "host-domain", source };
    },
    engine: (core) => {
      names = new HostNames(hostPolicyOf(settings), core, { onEvent, setDomain });
    },
    get namespace() {
      return names;
    },
    prepare: async (next) =>
      await Promise.resolve({
        commit: () => names?.configure(hostPolicyOf(next)),
        discard: async () => await Promise.resolve(),
      }),
    put: (fact) => names?.put(fact),
    remove: (id) => names?.remove(id),
    engineConnected: () => names?.refresh(),
    hostServersChanged: () => names?.refresh(),
    viewsChanged: () => names?.updateNames(),
    container: (id) => (id === HOST_ID ? (names?.reported ?? {}) : {}),
    closing: () => names?.close(),
    // In a preview the run does not end.
    stop: async () => await Promise.resolve(names?.close()),
  };
}

interface HostNamesParts {
  readonly onEvent: ReportEvent;
  /** Sets the domain of names in containers. */
  readonly setDomain: (domain: string | undefined) => void;
}

/**
 * Container names for programs on the machine itself, and the names of zones. It chooses the means, and has the reconciler
 * serve the host's namespace as it serves a container's. Off by default.
 */
class HostNames implements OwnNamespace {
  readonly fact = outsiderFact({ id: HOST_ID, networkMode: "host", endpoints: [] });
  readonly unserved = "names do not resolve on the host";
  readonly #core: EngineCore;
  readonly #onEvent: ReportEvent;
  readonly #setDomain: (domain: string | undefined) => void;
  #policy: HostPolicy;
  #members: HostMembers | undefined;
  #means: HostMeans | undefined;
  #chosen: ChosenMeans | undefined;
  /** While the host is to be served. */
  #desired: Omit<DesiredAttachment, "view"> | undefined;
  #decision: Decision = { kind: "serve" };
  #report: HostMeansReport | undefined;
  #captureTimer: NodeJS.Timeout | undefined;
  #checkTimer: NodeJS.Timeout | undefined;
  #isClosed = false;
  /** Counts the checks, so that only the last one decides. */
  #checks = 0;

  constructor(policy: HostPolicy, core: EngineCore, { onEvent, setDomain }: HostNamesParts) {
    this.#core = core;
    this.#onEvent = onEvent;
    this.#setDomain = setDomain;
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

  /** By which means it is served, in its status. */
  get reported(): Pick<ContainerStatus, "hostNames"> {
    return this.#report === undefined ? {} : { hostNames: this.#report };
  }

  get view(): View {
    const isThroughResolved = this.#chosen?.means === "resolved";
    const servers = isThroughResolved ? (this.#means?.uplinks ?? []) : this.#core.hostServers().servers;
    const local = { servers: [], isLocal: true };
    const { domain } = this.#policy;
    const { zones = [] } = this.#chosen ?? {};
    const nodeRoutes = this.#core
      .directory()
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
    if (desired !== undefined) this.#core.reconciler().setDesired(HOST_ID, { ...desired, view: this.view });
  }

  configure(policy: HostPolicy): void {
    // Other zones need no other link and no other sockets: what resolves already stays without a gap.
    if (isDeepStrictEqual({ ...policy, zones: this.#policy.zones }, this.#policy)) {
      this.#policy = policy;
      this.#means?.setZones(policy.zones);
      this.refresh();
      return this.updateNames();
    }
    this.#release();
    this.#policy = policy;
    // Why they did not resolve with other settings: it is said again if it holds with these.
    this.#decision = { kind: "serve" };
    this.#leave();
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
  open(claim?: NamespaceClaim): ProvenNamespace {
    const host = this.#core.host();
    if (claim !== undefined && claim.sandboxKey !== host.networkId) throw engineExited(claim.pid);
    return { fd: openHostNetwork(host), id: host.networkId };
  }

  resolvConf(): ResolvConf {
    return parseResolvConf(readEngineFile(this.#core.host(), "/etc/resolv.conf") ?? "");
  }

  /** In the order in which containers have them: what is declared for everybody, the zones, and what is below the domain. */
  #sources(): VisibleNames[] {
    const members = this.#members;
    if (members === undefined) return [];
    const { zones = [] } = this.#chosen ?? {};
    const { nameservers } = this.#core.hostServers().resolvConf;
    const { names } = this.#core.directory();
    const others = [
      ...names.namesForEverybody(),
      ...names.namesForHost({ zones, nameservers, reachable: (id) => members.reachable(id) }),
    ];
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
      networkOf: (id) => this.#core.directory().network(id),
      readAddresses: () => this.#readAddresses(),
      onSubnets: () => this.#updateCapture(),
    });
    this.#members = members;
    this.#means = new HostMeans(this.#policy, {
      ...this.#core,
      subnets: () => members.subnets,
      onChange: () => this.refresh(),
    });
    for (const fact of this.#core.directory().containers.values()) members.put(fact);
    this.#checkTimer = setInterval(() => void this.#checkAgain(), HOST_LIMITS.checkEveryMs).unref();
  }

  async #decide(): Promise<void> {
    const check = ++this.#checks;
    const choice = await this.#choose();
    if (check !== this.#checks || choice === undefined) return;
    if (typeof choice === "string") {
      const before = this.#decision.kind === "skip" ? this.#decision.reason : undefined;
      this.#decision = { kind: "skip", code: "host-names", reason: choice };
      this.#report = undefined;
      this.#leave();
      if (before !== choice) this.#onEvent({ reason: choice }, "container names do not resolve on the host", "warn");
      return;
    }
    const { means, why, zones, warning } = choice;
    this.#warn(warning);
    this.#report = { means, why, ...(zones.length > 0 && { zones }) };
    this.#decision = { kind: "serve", ...(warning !== undefined && { warning }) };
    const { pid, networkId } = this.#core.host();
    // The namespace stays when dockerd is restarted as another process, and so do the names.
    const claim = { containerId: HOST_ID, sandboxKey: networkId, pid };
    this.#desired = { claim, mode: choice.mode };
    this.#setChosen(choice);
    this.updateNames();
    this.#core.reconciler().updateCapture(HOST_ID);
  }

  #leave(): void {
    this.#desired = undefined;
    this.#setChosen(undefined);
    this.#core.reconciler().clearDesired(HOST_ID);
  }

  /** The means, or why the host is not served, with what to do about it. */
  async #choose(): Promise<ChosenMeans | string | undefined> {
    try {
      if (this.#core.isRootless) throw notTheMachine();
      return await this.#means?.choose();
    } catch (error) {
      if (isInternalError(error)) guard.report(error, "attach");
      return reasonWithRemedy(error);
    }
  }

  #setChosen(chosen: ChosenMeans | undefined): void {
    const before = this.#chosen;
    this.#chosen = chosen;
    this.#members?.zone.setMeans(chosen && hostMeansText(chosen));
    if (before?.means === chosen?.means) return;
    if (chosen !== undefined) {
      const { means, why } = chosen;
      this.#onEvent({ means, why }, "container names resolve on the host");
    }
    this.#tellContainers();
  }

  /**
   * The domain has names in containers, too, while it has them here. They must not ask the host's servers for it: systemd-resolved
   * would ask us, and a container would see the names of the host.
   */
  #tellContainers(): void {
    const { directory, updateViews } = this.#core;
    const { domain } = this.#policy;
    const isAskedBack = this.#chosen?.means === "resolved";
    directory().setDenied(isAskedBack ? [domain, ...reverseZoneNames(this.#members?.subnets ?? [])] : [], BY);
    this.#setDomain(this.#chosen === undefined ? undefined : domain);
    updateViews();
  }

  #warn(warning: string | undefined): void {
    if (warning === undefined || warning === this.#decision.warning) return;
    this.#onEvent({ warning }, "some names do not resolve on the host", "warn");
  }

  #readAddresses(): readonly InterfaceAddress[] {
    const { runner, memory, host } = this.#core;
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
        this.#core.reconciler().updateCapture(HOST_ID);
        if (this.#chosen?.means === "resolved") this.#tellContainers();
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
