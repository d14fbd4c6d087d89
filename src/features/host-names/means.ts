/**
 * HostMeans: by which means the host's own programs get container names, chosen from the setting and from what is in
 * charge of name resolution there, and whether that is safe: the domain is free, and the engine's own queries are told
 * apart. A zone that is not free is left out.
 */
import { isIPv6 } from "node:net";

import { Fault, codeOf, reasonOf } from "../../base/lib/fault.ts";
import type { HostMeansReport } from "../../api/status.ts";
import { RESOLVED_STUBS } from "../../base/model/listener-addresses.ts";
import type { Server } from "../../base/model/view.ts";
import { HEADER_BYTES, rcodeOf } from "../../base/dns/header.ts";
import { RCODE } from "../../base/dns/rcode.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import { queryOf } from "../../base/dns/query.ts";
import { labelsOf } from "../../base/model/name-query.ts";
import type { Within } from "../../kernel/net-namespace.ts";
import { PROBE_SUFFIX } from "../../base/model/probe-message.ts";
import type { AttachMode } from "../../container/attach/attach-mode.ts";
import { readEngineFile } from "../../container/namespace/engine-host.ts";
import { installedMark } from "../../container/rules/installed-rules.ts";
import { type ControlGroup, type Capture, DOCKER_RESOLVER, type Redirect } from "../../container/capture/capture.ts";
import { groupId, groupLevel, groupPath } from "../../container/namespace/control-group.ts";
import { controlGroupsAt } from "../../container/namespace/listeners.ts";
import { exchange } from "../../container/rules/exchange.ts";
import type { EngineCore } from "../contract.ts";
import type { HostPolicy } from "./feature.ts";
import { HOST_LIMITS } from "./limits.ts";
import { type Subnet, reverseZones, wireName } from "./members.ts";
import { NSSWITCH, resolvedUse } from "./report.ts";
import { ResolvedBus, type LinkDomain } from "./resolved-bus.ts";
import { ResolvedMode, isOwnLink, linkNames } from "./resolved-mode.ts";

/** What a program asks where resolv.conf names no server. */
const DEFAULT_SERVER = "127.0.0.1";
const IPV6_LISTENER = "::1";

interface HostModeParts {
  /** Names below these domains resolve. */
  readonly domains: () => readonly string[];
  /** The servers of the host's resolv.conf. */
  readonly servers: () => readonly string[];
  /** The subnets of reachable containers. */
  readonly subnets: () => Iterable<Subnet>;
  /** Called inside the namespace: those whose queries pass by. Throws a Fault if they cannot be told apart. */
  readonly spared: () => readonly ControlGroup[];
}

const DOMAIN_REMEDY = "Choose another domain with host-domain, such as docker or containers.internal, and reload.";

const ZONE_REMEDY = "In containers the zone resolves. Choose another zone, or remove that domain, and reload.";

const DNS_PORT = 53;
const CGROUP_REMEDY = "Run dockerd and dns11 each as a service, on cgroup version 2, or with --cgroupns host.";

interface HostMeansParts extends Pick<EngineCore, "runner" | "memory" | "ruleBackend" | "host" | "hostServers"> {
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
    const { host, memory, subnets, hostServers } = parts;
    const domains = (): readonly string[] => [policy.domain, ...this.#zones];
    this.#policy = policy;
    this.#parts = parts;
    this.#bus = new ResolvedBus(
      () => `/proc/${host().pid}/root/${BUS_SOCKET}`,
      () => this.#onStart(),
    );
    this.#captured = hostMode({
      domains,
      servers: () => hostServers().resolvConf.nameservers,
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
    const { servers } = this.#parts.hostServers();
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
    const { nameservers } = this.#parts.hostServers().resolvConf;
    engineCgroup(this.#parts.host().pid);
    const { zones, warnings } = await this.#freeZones(
      async (domain, remedy) => await this.#requireUnknown(domain, nameservers, remedy),
    );
    return { means: "capture", why, mode: this.#captured, ...chosenZones(zones, warnings) };
  }

  /** Throws a Fault if the domain is not free. A search list may well have a zone: it is made for that. */
  async #freeZones(check: DomainCheck): Promise<{ readonly zones: readonly string[]; readonly warnings: string[] }> {
    const { domain, zones } = this.#policy;
    requireOutsideSearch(domain, this.#parts.hostServers().resolvConf.search);
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
    const nsswitch = readEngineFile(this.#parts.host(), NSSWITCH) ?? "";
    return resolvedUse(nsswitch, this.#parts.hostServers().resolvConf.nameservers);
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
    const { runner, host, memory } = this.#parts;
    const { network, networkId } = host();
    // Another instance may have the host, whose rules are not ours.
    const mark = runner.passages.markTo(networkId, false) ?? runner.within(network, () => installedMark(memory));
    await requireUnknown(domain, servers, { within: (work) => runner.within(network, work), mark }, remedy);
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

/**
 * The control groups whose queries pass by. dockerd forwards queries of containers from the host's
 * namespace, and a resolver on the host may forward those of virtual machines or of the local network: they must not be
 * answered as the host's own. A packet's control group is what tells them apart.
 *
 * Call inside the host's namespace.
 */
function sparedGroups(enginePid: number): ControlGroup[] {
  return [engineCgroup(enginePid), ...resolverGroups(enginePid)];
}

/** Throws a Fault if the engine has no control group of its own, or dns11 is in it. */
function engineCgroup(pid: number): ControlGroup {
  const path = groupPath(pid);
  if (path === undefined || path === "/" || path.includes("..")) {
    throw new Fault("HOST_ENGINE_MIXED", "The engine's process has no control group of version 2 of its own", {
      remedy: CGROUP_REMEDY,
    });
  }
  const own = groupPath("self");
  if (own === path || own?.startsWith(`${path}/`) === true) {
    throw new Fault("HOST_ENGINE_MIXED", "dns11 and the engine's process are in the same control group", {
      remedy: CGROUP_REMEDY,
    });
  }
  const id = groupId(pid, path);
  if (id !== undefined) return { id, level: groupLevel(path) };
  throw new Fault("HOST_ENGINE_MIXED", `Cannot see the engine's control group "${path}"`, { remedy: CGROUP_REMEDY });
}

/**
 * The groups of the processes that answer at port 53. The kernel tells their ids only, so each is looked for at every
 * level; the root has none. dns11's own group is left out: its probes come from there.
 */
function resolverGroups(enginePid: number): ControlGroup[] {
  const own = groupId(enginePid, groupPath("self") ?? "/");
  const ids = controlGroupsAt(DNS_PORT).filter((id) => id !== own);
  const levels = Array.from({ length: HOST_LIMITS.groupLevels }, (_, index) => index + 1);
  return ids.slice(0, HOST_LIMITS.resolverGroups).flatMap((id) => levels.map((level) => ({ id, level })));
}

/**
 * Whether a domain is free for container names on this host. One that the search list completes names
 * with, or that a server of the host already knows (public DNS, a VPN, dnsmasq), would lose its own names.
 *
 * Throws a Fault if the search list uses the domain.
 */
function requireOutsideSearch(domain: string, search: readonly string[]): void {
  const clash = search
    .map((each) => each.replace(/\.$/, "").toLowerCase())
    .find((each) => each === domain || each.endsWith(`.${domain}`));
  if (clash === undefined) return;
  throw new Fault("HOST_DOMAIN_TAKEN", `The search list of this host uses the domain "${clash}"`, {
    remedy: DOMAIN_REMEDY,
  });
}

/** Throws a Fault if another link of systemd-resolved, its configuration or a delegate of that has the domain. */
function requireNoOtherLink(
  domain: string,
  domains: readonly LinkDomain[],
  links: ReadonlyMap<number, string>,
  remedy: string = DOMAIN_REMEDY,
): void {
  const owner = domains.find((each) => each.domain === domain && !isOwnLink(links.get(each.index)));
  if (owner === undefined) return;
  const place = placeOf(owner, links);
  throw new Fault("HOST_DOMAIN_TAKEN", `systemd-resolved already has the domain "${domain}": ${place}`, {
    remedy,
  });
}

function placeOf({ index, delegate }: LinkDomain, links: ReadonlyMap<number, string>): string {
  if (delegate !== undefined) return `its delegate ${delegate}`;
  return index === 0 ? "its configuration" : `its link ${links.get(index) ?? index}`;
}

/** Throws a Fault if one of the servers knows the domain. A server that does not reply knows nothing. */
async function requireUnknown(
  domain: string,
  servers: readonly string[],
  { within, mark }: { readonly within: Within; readonly mark: number | undefined },
  remedy: string = DOMAIN_REMEDY,
): Promise<void> {
  const message = (id: number): Buffer => queryOf({ labels: labelsOf(domain), type: TYPE.SOA, id });
  const request = { message, mark, protocols: ["udp"], waitMs: HOST_LIMITS.domainMs } as const;
  const asked = await Promise.all(
    servers.map(async (destination) => ({
      destination,
      replies: await exchange(within, { destination, ...request }).catch(() => []),
    })),
  );
  const owner = asked.find(({ replies }) => replies.some(({ reply }) => isKnown(reply)));
  if (owner === undefined) return;
  const { destination } = owner;
  throw new Fault(
    "HOST_DOMAIN_TAKEN",
    `The domain "${domain}" already exists: the server ${destination} answers for it`,
    { remedy },
  );
}

function isKnown(reply: Buffer | undefined): boolean {
  return reply !== undefined && reply.length >= HEADER_BYTES && rcodeOf(reply) === RCODE.NOERROR;
}

/**
 * How the host's own namespace is served by capture. Only queries for names of ours are redirected, whichever server of
 * /etc/resolv.conf they are sent to; all others leave as they always did, and no failure of dns11 can affect them.
 */
function hostMode(parts: HostModeParts): AttachMode {
  return {
    capture: () => hostCapture(parts),
    onVerified: () => Promise.resolve(),
    withdraw: () => undefined,
  };
}

function hostCapture({ domains, servers, subnets, spared }: HostModeParts): Capture {
  const redirects = redirectsOf(servers());
  if (redirects.length === 0) {
    throw new Fault("HOST_NO_SERVER", "The host's resolv.conf has only link-local servers, which cannot be captured", {
      remedy: "List a server there that has an address of its own.",
    });
  }
  const names = [...domains(), PROBE_SUFFIX].map(wireName);
  const host = { names, reverseNames: reverseZones(subnets()), spared: spared() };
  return { redirects, bypassInterfaces: [], guardsLoopback: false, guardsPorts: true, host };
}

/** A link-local server belongs to one interface, and a translated packet would leave by none. */
function redirectsOf(listed: readonly string[]): Redirect[] {
  const all = [...new Set(listed.length === 0 ? [DEFAULT_SERVER] : listed)].filter((each) => !each.includes("%"));
  const servers = all.slice(0, HOST_LIMITS.servers);
  const [v6, v4] = [servers.filter((each) => isIPv6(each)), servers.filter((each) => !isIPv6(each))];
  return [
    ...(v4.length === 0 ? [] : [{ bind: DOCKER_RESOLVER, fromInside: v4, fromPods: [] }]),
    ...(v6.length === 0 ? [] : [{ bind: IPV6_LISTENER, fromInside: v6, fromPods: [] }]),
  ];
}
