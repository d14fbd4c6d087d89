/**
 * HostNames: container names for programs on the machine itself. It checks that this is safe here (the domain is free,
 * the engine's own queries can be told apart), and has the reconciler serve the host's namespace as it serves a
 * container's. Off by default.
 */
import { isDeepStrictEqual } from "node:util";

import { Fault, isInternalError, reasonOf } from "../../base/lib/fault.ts";
import { guard } from "../../base/lib/guard.ts";
import type { ReportEvent } from "../../base/model/event.ts";
import type { HostPolicy } from "../../base/model/host-policy.ts";
import type { RuleBackendChoice } from "../../base/model/rule-backend.ts";
import { domainLabels } from "../../base/model/server-text.ts";
import type { Server, View } from "../../base/model/view.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { RouteSocket, type InterfaceAddress } from "../../kernel/rtnetlink.ts";
import type { AttachMode } from "../attach/attach-mode.ts";
import type { Decision } from "../attach/decision.ts";
import type { Reconciler } from "../attach/reconciler.ts";
import { type EngineHost, openHostNetwork } from "../namespace/engine-host.ts";
import type { NamespaceRunner } from "../namespace/namespace-runner.ts";
import type { NamespaceClaim, ProvenNamespace } from "../namespace/proof.ts";
import type { ContainerFact, NetworkFact } from "../registry/fact.ts";
import { requireOutsideSearch, requireUnknown } from "./domain-check.ts";
import { engineCgroup, sparedGroups } from "./control-groups.ts";
import { HOST_ID } from "./host-fact.ts";
import { HostMembers } from "./host-members.ts";
import { HOST_LIMITS } from "./limits.ts";
import { hostMode } from "./host-mode.ts";

export interface HostNamesParts {
  readonly runner: NamespaceRunner;
  readonly memory: NetlinkMemory;
  readonly ruleBackend: RuleBackendChoice;
  readonly host: () => EngineHost;
  readonly isRootless: boolean;
  readonly reconciler: Reconciler;
  readonly containers: () => Iterable<ContainerFact>;
  readonly networkOf: (id: string) => NetworkFact | undefined;
  /** The host's servers, and its resolv.conf. */
  readonly upstreams: () => {
    readonly servers: readonly Server[];
    readonly resolvConf: { readonly nameservers: readonly string[]; readonly search: readonly string[] };
  };
  readonly onEvent: ReportEvent;
  /** Container names resolve on the host below this domain; undefined: they do not. Called when that changes. */
  readonly onDomain: (domain: string | undefined) => void;
}

export class HostNames {
  readonly #parts: HostNamesParts;
  #policy: HostPolicy;
  #members: HostMembers | undefined;
  #mode: AttachMode | undefined;
  #decision: Decision = { kind: "serve" };
  #captureTimer: NodeJS.Timeout | undefined;
  #checkTimer: NodeJS.Timeout | undefined;
  #isClosed = false;
  /** Counts the checks, so that only the last one decides. */
  #checks = 0;
  #domain: string | undefined;

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

  get view(): View {
    const { servers } = this.#parts.upstreams();
    const names = this.#members === undefined ? [] : [this.#members.zone];
    const suffix = domainLabels(this.#policy.domain);
    const labelCount = this.#policy.domain.split(".").length;
    const routes = [
      { suffix, labelCount, servers: [], isLocal: true, by: "the setting host-domain" },
      { suffix: new Uint8Array(0), labelCount: 0, servers, isLocal: false, by: "the host's current resolv.conf" },
    ];
    return { names, upstreams: { routes, isNdotsSet: false } };
  }

  configure(policy: HostPolicy): void {
    if (isDeepStrictEqual(policy, this.#policy)) return;
    this.#release();
    this.#policy = policy;
    this.#parts.reconciler.clearDesired(HOST_ID);
    this.#setDomain(undefined);
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
  prove({ pid }: NamespaceClaim): ProvenNamespace {
    const host = this.#parts.host();
    if (pid !== host.pid) throw engineExited(pid);
    return { fd: openHostNetwork(host), id: host.networkId };
  }

  #release(): void {
    this.#checks++;
    this.#members?.close();
    this.#members = undefined;
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
    this.#mode = hostMode({
      domain,
      servers: () => this.#parts.upstreams().resolvConf.nameservers,
      subnets: () => members.subnets,
      spared: () => sparedGroups(this.#parts.host().pid),
    });
    for (const fact of this.#parts.containers()) members.put(fact);
    this.#checkTimer = setInterval(() => this.#checkAgain(), HOST_LIMITS.checkEveryMs).unref();
  }

  async #decide(): Promise<void> {
    const check = ++this.#checks;
    const problem = await this.#problem();
    if (check !== this.#checks) return;
    const reconciler = this.#parts.reconciler;
    if (problem !== undefined) {
      const before = this.#decision.kind === "skip" ? this.#decision.reason : undefined;
      this.#decision = { kind: "skip", code: "host-names", reason: problem };
      reconciler.clearDesired(HOST_ID);
      this.#setDomain(undefined);
      if (before !== problem)
        this.#parts.onEvent({ reason: problem }, "container names do not resolve on the host", "warn");
      return;
    }
    this.#decision = { kind: "serve" };
    const claim = { containerId: HOST_ID, sandboxKey: "", pid: this.#parts.host().pid };
    reconciler.setDesired(HOST_ID, { claim, mode: this.#mode as AttachMode, view: this.view });
    reconciler.updateCapture(HOST_ID);
    this.#setDomain(this.#policy.domain);
  }

  #setDomain(domain: string | undefined): void {
    if (domain === this.#domain) return;
    this.#domain = domain;
    this.#parts.onDomain(domain);
  }

  /** Why the host is not served, with what to do about it; undefined if it can be. */
  async #problem(): Promise<string | undefined> {
    const { domain } = this.#policy;
    try {
      if (this.#parts.isRootless) throw notTheMachine();
      this.#requireOwnedTables();
      engineCgroup(this.#parts.host().pid);
      const { nameservers, search } = this.#parts.upstreams().resolvConf;
      requireOutsideSearch(domain, search);
      await requireUnknown(domain, nameservers, (work) => this.#parts.runner.within(this.#parts.host().network, work));
      return undefined;
    } catch (error) {
      if (isInternalError(error)) guard.report(error, "attach");
      const remedy = error instanceof Fault && error.remedy !== undefined ? `. ${error.remedy}` : "";
      return `${reasonOf(error)}${remedy}`;
    }
  }

  /** Other rules would stay after a SIGKILL, and on the host nobody would remove them. */
  #requireOwnedTables(): void {
    const { backend } = this.#parts.ruleBackend;
    if (backend === "nft-owner") return;
    throw new Fault("HOST_RULES", `Names on the host need the rule backend nft-owner, not ${backend}`, {
      remedy: "Use Linux 5.13 or newer, and rule-backend: auto.",
    });
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

  /** A problem may be gone, and a resolver that was started meanwhile is spared from now on. */
  #checkAgain(): void {
    if (this.#decision.kind === "skip") this.refresh();
    else this.#updateCapture();
  }

  /** Once for all changes of a turn. */
  #updateCapture(): void {
    this.#captureTimer ??= setTimeout(() => {
      this.#captureTimer = undefined;
      guard.run("timer", 0, () => this.#parts.reconciler.updateCapture(HOST_ID));
    }, 0).unref();
  }
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
