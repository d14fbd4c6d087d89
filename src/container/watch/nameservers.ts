/**
 * Nameservers: the nameservers of a container. The engine's API is trusted: `--dns` is used as it is. Everything else
 * is only in the container's resolv.conf, in comments that engines from 26 on write, and the container can forge these.
 * So a comment is trusted only if it agrees with the engine's settings and the host's resolv.conf. Otherwise, or if one
 * of these is not known, the list is "unknown" and queries go to Docker's resolver, which knows it. A container that
 * forges a comment gets the answers that Docker would give.
 *
 * If the mode follows the host, a list from the host's file is replaced by the file's current servers.
 */
import { addressBytes, isLoopback, isSameAddress } from "../../base/model/address.ts";
import { isListenerAddress } from "../../base/model/listener-addresses.ts";
import type { NameserversFact } from "../facts/fact.ts";
import { parseResolvConf } from "./resolv-conf.ts";

export interface NameserversInput {
  /** The container's resolv.conf; undefined if it cannot be read. */
  readonly resolvConf: string | undefined;
  /** The addresses in the host's files. */
  readonly hostServers: () => ReadonlySet<string>;
  /** --dns and --dns-option of the container. */
  readonly dns: readonly string[];
  readonly dnsOptions: readonly string[];
  /** The option that dns11 itself writes into the file, if it does. */
  readonly ownOption?: string | undefined;
  /** The engine's major version. */
  readonly engineVersion: number;
  /** Whether to use the host's current file, not its state when the container started. */
  readonly followsHost: boolean;
  /** The servers that the engine's own settings give every container; undefined if they are not known. */
  readonly daemonDns: () => readonly string[] | undefined;
}

/** Engines from this version on write a container's servers into its resolv.conf. */
const RECORDS_NAMESERVERS = 26;
/** Engines from this version on query all of the host's servers from the host. */
const QUERIES_FROM_HOST = 28;

const LIST = /^# ExtServers: \[(.*)\]$/m;
const NO_SERVERS = /^# NO EXTERNAL NAMESERVERS DEFINED$/m;
const NDOTS = /^# Option ndots from: (\w+)$/m;
/** Comments: the file is for the internal resolver; which parts of the host's file the engine has overridden. */
const FOR_RESOLVER = /^# Based on host file: '.*' \(internal resolver\)$/m;
const OVERRIDES = /^# Overrides: \[(.*)\]$/m;
/** What engines from 29.0 to 29.2 write after a reload in place of their own list. */
const GARBLED = /^# ExtServers: \[(?:invalid IP ?)+\]$/m;
const FROM_HOST = /^host\((.+)\)$/;

const UNKNOWN: NameserversFact = { kind: "unknown" };

type ListedServers = Extract<NameserversFact, { readonly kind: "listed" }>["servers"];

export function nameserversOf(input: NameserversInput): NameserversFact {
  const known = knownNameservers(input);
  // The engine's own list may be a filter, which must not be gone round.
  const hasOthers = known.kind !== "unknown" || input.daemonDns()?.length !== 0;
  return hasOthers ? known : { kind: "unknown", mayBeHosts: true };
}

function knownNameservers(input: NameserversInput): NameserversFact {
  const { dns } = input;
  const isNdotsSet = isNdotsSetIn(input);
  if (dns.length > 0) return { kind: "listed", servers: fromContainer(dns), isNdotsSet, isOwn: true };
  const others = besideListener(input.daemonDns());
  if (others?.length === 0) return { kind: "host", isNdotsSet, ...(isInFile(input) && { isByListener: true }) };
  if (others !== undefined) return { kind: "listed", servers: fromContainer(others), isNdotsSet, isOwn: false };
  if (recordsNameservers(input)) return recordedNameservers(input, isNdotsSet);
  // Older engines: without --dns of the container, the daemon's list may apply, which the file does not record.
  return input.followsHost && input.daemonDns()?.length === 0 ? { kind: "host", isNdotsSet } : UNKNOWN;
}

/**
 * The other servers of an engine that has all containers ask the listener; undefined if it does not. The list is trusted, whatever a
 * container's file says: Docker's resolver would have the listener ask Docker's resolver.
 */
function besideListener(daemonServers: readonly string[] | undefined): readonly string[] | undefined {
  const others = daemonServers?.filter((address) => !isListenerAddress(address));
  return others?.length === daemonServers?.length ? undefined : others;
}

/** Whether the container's own file says so, too: the container may be older than the list of the engine. */
function isInFile({ resolvConf, daemonDns }: NameserversInput): boolean {
  const servers = resolvConf === undefined ? undefined : serversIn(resolvConf);
  return servers !== undefined && isSameList(servers, daemonDns() ?? []);
}

function recordedNameservers(input: NameserversInput, isNdotsSet: boolean): NameserversFact {
  const { resolvConf, daemonDns, followsHost } = input;
  const daemonServers = daemonDns();
  if (resolvConf === undefined || daemonServers === undefined) return UNKNOWN;
  if (followsHost && daemonServers.length > 0 && GARBLED.test(resolvConf)) {
    return { kind: "listed", servers: fromContainer(daemonServers), isNdotsSet, isOwn: false };
  }
  const isFromHost = isListFromHost(resolvConf);
  if (daemonServers.length === 0 && followsHost) return isFromHost ? { kind: "host", isNdotsSet } : UNKNOWN;
  const servers = serversIn(resolvConf);
  if (servers === undefined) return UNKNOWN;
  const isTrusted =
    daemonServers.length > 0
      ? isSameList(servers, daemonServers)
      : isFromHost && servers.every((each) => isHostServer(each, input));
  return isTrusted ? { kind: "listed", servers, isNdotsSet, isOwn: false } : UNKNOWN;
}

/** The servers in the comment; undefined if there is none. */
function serversIn(resolvConf: string): ListedServers | undefined {
  const list = LIST.exec(resolvConf)?.[1];
  if (list === undefined) return NO_SERVERS.test(resolvConf) ? [] : undefined;
  return list
    .split(/\s+/)
    .filter((item) => item !== "")
    .map((item) => {
      const hostAddress = FROM_HOST.exec(item)?.[1];
      return hostAddress === undefined ? { from: "container", address: item } : { from: "host", address: hostAddress };
    });
}

function isSameList(servers: ListedServers, daemonServers: readonly string[]): boolean {
  return (
    servers.length === daemonServers.length &&
    servers.every(
      ({ from, address }, index) => from === "container" && isSameAddress(address, daemonServers[index] ?? ""),
    )
  );
}

/** Whether the server is in the host's files, and this engine would query it from where the comment says. */
function isHostServer(
  { from, address }: ListedServers[number],
  { hostServers, engineVersion }: NameserversInput,
): boolean {
  if (addressBytes(address) === undefined || !hostServers().has(address)) return false;
  return from === "container" || engineVersion >= QUERIES_FROM_HOST || isHostOnly(address);
}

/** An address that means another host inside a container. */
function isHostOnly(address: string): boolean {
  return isLoopback(address) || address.includes("%");
}

/**
 * Whether neither the container nor the daemon has overridden the host's list. The marks of the servers do not show that:
 * engines before 28 query most of the host's servers from inside the container.
 */
function isListFromHost(resolvConf: string): boolean {
  const overrides = OVERRIDES.exec(resolvConf)?.[1];
  return FOR_RESOLVER.test(resolvConf) && overrides !== undefined && !overrides.split(" ").includes("nameservers");
}

function fromContainer(addresses: readonly string[]): ListedServers {
  return addresses.map((address) => ({ from: "container", address }));
}

function recordsNameservers({ engineVersion }: NameserversInput): boolean {
  return engineVersion >= RECORDS_NAMESERVERS;
}

/** Whether ndots is set. A container that forges this in its own file only affects its own lookups. */
function isNdotsSetIn(input: NameserversInput): boolean {
  const { resolvConf = "", dns, dnsOptions, ownOption } = input;
  if (recordsNameservers(input)) {
    // An invalid ndots counts as well, but the engine drops it from the file.
    const isInComment = ["host", "override"].includes(NDOTS.exec(resolvConf)?.[1] ?? "");
    return isInComment || dnsOptions.some((option) => /^ndots(:|$)/.test(option));
  }
  if (dnsOptions.some((option) => option.startsWith("ndots"))) return true;
  // Without --dns the file has the host's options; the engine itself adds only "ndots:0".
  const others = parseResolvConf(resolvConf).options.filter((option) => option !== "ndots:0" && option !== ownOption);
  return dns.length === 0 && others.some((option) => option.startsWith("ndots"));
}
