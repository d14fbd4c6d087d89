/**
 * HostMeans: by which means the host's own programs get container names, chosen from the setting and from what is in
 * charge of name resolution there, and whether that is safe: the domain is free, and the engine's own queries are told
 * apart. A zone that is not free is left out.
 */
import { Fault, codeOf, reasonOf } from "../../base/lib/fault.ts";
import type { HostMeansReport, HostPolicy } from "../../base/model/host-policy.ts";
import { RESOLVED_STUBS } from "../../base/model/resolved-stubs.ts";
import type { RuleBackendChoice } from "../../base/model/rule-backend.ts";
import type { Server } from "../../base/model/view.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import type { AttachMode } from "../attach/attach-mode.ts";
import { type EngineHost, readEngineFile } from "../namespace/engine-host.ts";
import type { NamespaceRunner } from "../namespace/namespace-runner.ts";
import { engineCgroup, sparedGroups } from "./control-groups.ts";
import { ZONE_REMEDY, requireNoOtherLink, requireOutsideSearch, requireUnknown } from "./domain-check.ts";
import { hostMode } from "./host-mode.ts";
import type { Subnet } from "./host-subnets.ts";
import { ResolvedBus } from "./resolved/resolved-bus.ts";
import { ResolvedMode } from "./resolved/resolved-mode.ts";
import { resolvedUse } from "./resolved/resolved-use.ts";
import { linkNames } from "./resolved/tun-link.ts";

export interface HostMeansParts {
  readonly runner: NamespaceRunner;
  readonly memory: NetlinkMemory;
  readonly ruleBackend: RuleBackendChoice;
  readonly host: () => EngineHost;
  /** The host's servers, and its resolv.conf. */
  readonly upstreams: () => {
    readonly servers: readonly Server[];
    readonly resolvConf: { readonly nameservers: readonly string[]; readonly search: readonly string[] };
  };
  /** The subnets of reachable containers. */
  readonly subnets: () => Iterable<Subnet>;
  /** Another choice may be better now. */
  readonly onChange: () => void;
}

export interface ChosenMeans extends HostMeansReport {
  readonly zones: readonly string[];
  readonly mode: AttachMode;
  readonly warning?: string;
}

/** Whether a domain may resolve on the host: throws a Fault if not. */
type DomainCheck = (domain: string, remedy?: string) => Promise<void>;

const BUS_SOCKET = "run/dbus/system_bus_socket";
const UNUSED = "no program of this host asks systemd-resolved: its stub is not in /etc/resolv.conf";

export class HostMeans {
  #policy: HostPolicy;
  readonly #parts: HostMeansParts;
  readonly #bus: ResolvedBus;
  readonly #captured: AttachMode;
  readonly #resolved: ResolvedMode;
  /** Why systemd-resolved did not accept the link; it may when it is started again. */
  #refused: string | undefined;
  /** The zones that are free, by the last choice. */
  #zones: readonly string[] = [];

  constructor(policy: HostPolicy, parts: HostMeansParts) {
    const { host, memory, subnets, upstreams } = parts;
    const domains = (): readonly string[] => [policy.domain, ...this.#zones];
    this.#policy = policy;
    this.#parts = parts;
    this.#bus = new ResolvedBus(
      () => `/proc/${host().pid}/root/${BUS_SOCKET}`,
      () => this.#onStart(),
    );
    this.#captured = hostMode({
      domains,
      servers: () => upstreams().resolvConf.nameservers,
      subnets,
      spared: () => sparedGroups(host().pid),
    });
    this.#resolved = new ResolvedMode({
      domains,
      subnets: () => (this.uplinks.length === 0 ? [] : subnets()),
      root: () => host().root,
      memory,
      bus: this.#bus,
      onRefused: (reason) => this.#onRefused(reason),
    });
  }

  /** The host's servers behind systemd-resolved: what is asked of itself would come back. */
  get uplinks(): Server[] {
    const { servers } = this.#parts.upstreams();
    return servers.flatMap(({ from, address, port }) => (RESOLVED_STUBS.has(address) ? [] : { from, address, port }));
  }

  /** The next choice uses them. */
  setZones(zones: readonly string[]): void {
    this.#policy = { ...this.#policy, zones };
  }

  /** Throws a Fault if the host cannot be served. */
  async choose(): Promise<ChosenMeans> {
    this.#requireOwnedTables();
    const refusal = await this.#refusal();
    if (refusal === undefined) {
      try {
        return await this.#throughResolved();
      } catch (error) {
        this.#resolved.withdraw();
        throw error;
      }
    }
    this.#resolved.withdraw();
    if (this.#policy.means === "resolved") throw refusal;
    return await this.#byCapture(reasonOf(refusal));
  }

  /** The means that would be chosen now, without asking any server. */
  async current(): Promise<HostMeansReport["means"]> {
    return (await this.#refusal()) === undefined ? "resolved" : "capture";
  }

  /** The link stays: it closes when the namespace is no longer served, or with the process that is replaced. */
  close(): void {
    this.#bus.close();
  }

  async #throughResolved(): Promise<ChosenMeans> {
    const { runner, host, memory } = this.#parts;
    const links = runner.within(host().network, () => linkNames(memory));
    const taken = await this.#bus.domains();
    const servers = this.uplinks.map(({ address }) => address);
    const free = await this.#freeZones(async (domain, remedy) => {
      requireNoOtherLink(domain, taken, links, remedy);
      await this.#requireUnknown(domain, servers, remedy);
    });
    const use = this.#use;
    const warnings = [...(use === undefined ? [`${UNUSED}: use --host-names=auto`] : []), ...free.warnings];
    return { means: "resolved", why: use ?? "it is set", mode: this.#resolved, ...chosenZones(free.zones, warnings) };
  }

  async #byCapture(why: string): Promise<ChosenMeans> {
    const { nameservers } = this.#parts.upstreams().resolvConf;
    engineCgroup(this.#parts.host().pid);
    const { zones, warnings } = await this.#freeZones(
      async (domain, remedy) => await this.#requireUnknown(domain, nameservers, remedy),
    );
    return { means: "capture", why, mode: this.#captured, ...chosenZones(zones, warnings) };
  }

  /** Throws a Fault if the domain is not free. A search list may well have a zone: it is made for that. */
  async #freeZones(check: DomainCheck): Promise<{ readonly zones: readonly string[]; readonly warnings: string[] }> {
    const { domain, zones } = this.#policy;
    requireOutsideSearch(domain, this.#parts.upstreams().resolvConf.search);
    const warnings: string[] = [];
    const free: string[] = [];
    await Promise.all([
      check(domain),
      ...zones.map(async (zone) => {
        try {
          await check(zone, ZONE_REMEDY);
          free.push(zone);
        } catch (error) {
          if (!(error instanceof Fault)) throw error;
          warnings.push(`zone "${zone}" does not resolve on the host: ${reasonOf(error)}. ${error.remedy ?? ""}`);
        }
      }),
    ]);
    const inOrder = zones.filter((zone) => free.includes(zone));
    // Otherwise the settings have changed meanwhile, and a later choice decides.
    if (zones === this.#policy.zones) this.#zones = inOrder;
    return { zones: inOrder, warnings };
  }

  /** Why systemd-resolved is not the means; undefined if it is. */
  async #refusal(): Promise<Error | undefined> {
    const { means } = this.#policy;
    if (means === "capture") return new Error("it is set");
    try {
      if (!(await this.#bus.isRunning())) {
        return new Fault("HOST_NO_RESOLVED", "systemd-resolved does not run on this host", {
          remedy: "Start systemd-resolved, or use --host-names=auto.",
        });
      }
      if (means === "auto" && this.#use === undefined) return new Error(UNUSED);
      if (means === "auto" && this.#refused !== undefined) return new Error(this.#refused);
      this.#parts.runner.within(this.#parts.host().network, () => this.#resolved.openLink());
      return undefined;
    } catch (error) {
      if (codeOf(error) === undefined) throw error;
      return error as Error;
    }
  }

  get #use(): string | undefined {
    const nsswitch = readEngineFile(this.#parts.host(), "/etc/nsswitch.conf") ?? "";
    return resolvedUse(nsswitch, this.#parts.upstreams().resolvConf.nameservers);
  }

  /** Other rules would stay after a SIGKILL, and on the host nobody would remove them. */
  #requireOwnedTables(): void {
    const { backend } = this.#parts.ruleBackend;
    if (backend === "nft-owner") return;
    throw new Fault("HOST_RULES", `Names on the host need the rule backend nft-owner, not ${backend}`, {
      remedy: "Use Linux 5.13 or newer, and rule-backend: auto.",
    });
  }

  async #requireUnknown(domain: string, servers: readonly string[], remedy?: string): Promise<void> {
    const { runner, host } = this.#parts;
    await requireUnknown(domain, servers, (work) => runner.within(host().network, work), remedy);
  }

  #onStart(): void {
    this.#refused = undefined;
    this.#resolved.forget();
    this.#parts.onChange();
  }

  #onRefused(reason: string): void {
    if (this.#policy.means !== "auto") return;
    this.#refused = reason;
    this.#parts.onChange();
  }
}

function chosenZones(zones: readonly string[], warnings: readonly string[]): Pick<ChosenMeans, "zones" | "warning"> {
  return warnings.length === 0 ? { zones } : { zones, warning: warnings.join("; ") };
}
