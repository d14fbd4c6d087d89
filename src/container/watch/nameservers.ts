/**
 * The nameservers of a container. What the engine's API tells is true: `--dns` counts as it is. All else stands only in the
 * container's resolv.conf, as comments that engines from 26 on write there, and the container can write what it likes
 * instead. So a comment is believed only where it says what the settings of the engine and the host's own file say, too.
 * Where they differ, or one of them is not known, the list is "unknown", and Docker's own resolver is asked, which knows.
 * A container that forges a comment gets what it would get from Docker.
 *
 * A list that came from the host's file is the host's, whatever that file says by now, if the character follows it.
 */
import { addressBytes, isSameAddress } from "../../base/model/address.ts";
import type { NameserversFact } from "../registry/fact.ts";
import { parseResolvConf } from "./resolv-conf.ts";

export interface NameserversInput {
  /** The container's file; undefined where it cannot be read. */
  readonly resolvConf: string | undefined;
  /** The addresses that the host's own files name. */
  readonly hostServers: () => ReadonlySet<string>;
  /** What the user gave the container: --dns and --dns-option. */
  readonly dns: readonly string[];
  readonly dnsOptions: readonly string[];
  /** The engine's, as far as it is known. */
  readonly engineVersion: number;
  /** Whether the host's file counts as it is now, not as it was when the container started. */
  readonly followsHost: boolean;
  /** The list that the engine's own settings give every container; undefined where they are not known. */
  readonly daemonDns: () => readonly string[] | undefined;
}

/** Engines from this version on write the servers of a container into its resolv.conf. */
const RECORDS_NAMESERVERS = 26;
/** Engines from this version on ask every server of the host's from the host. */
const ASKS_FROM_HOST = 28;

const LIST = /^# ExtServers: \[(.*)\]$/m;
const NO_SERVERS = /^# NO EXTERNAL NAMESERVERS DEFINED$/m;
const NDOTS = /^# Option ndots from: (\w+)$/m;
/** Where the engine says that the file is one for its resolver, and what of the host's file it put something else for. */
const FOR_RESOLVER = /^# Based on host file: '.*' \(internal resolver\)$/m;
const OVERRIDES = /^# Overrides: \[(.*)\]$/m;
const FROM_HOST = /^host\((.+)\)$/;

const UNKNOWN: NameserversFact = { kind: "unknown" };

type ListedServers = Extract<NameserversFact, { readonly kind: "listed" }>["servers"];

export function nameserversOf(input: NameserversInput): NameserversFact {
  const { dns } = input;
  const isNdotsSet = hasNdots(input);
  if (dns.length > 0) return { kind: "listed", servers: fromContainer(dns), isNdotsSet, isOwn: true };
  if (isRecorded(input)) return recorded(input, isNdotsSet);
  // Older engines: without a list of the user's, one of the daemon's may apply that is told nowhere.
  return input.followsHost && input.daemonDns()?.length === 0 ? { kind: "host", isNdotsSet } : UNKNOWN;
}

function recorded(input: NameserversInput, isNdotsSet: boolean): NameserversFact {
  const { resolvConf, daemonDns, followsHost } = input;
  const given = daemonDns();
  if (resolvConf === undefined || given === undefined) return UNKNOWN;
  const isFromHost = saysFromHost(resolvConf);
  if (given.length === 0 && followsHost) return isFromHost ? { kind: "host", isNdotsSet } : UNKNOWN;
  const servers = serversIn(resolvConf);
  if (servers === undefined) return UNKNOWN;
  const isTrue =
    given.length > 0 ? isList(servers, given) : isFromHost && servers.every((each) => isHostServer(each, input));
  return isTrue ? { kind: "listed", servers, isNdotsSet, isOwn: false } : UNKNOWN;
}

/** What the comment lists; undefined where there is none. */
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

function isList(servers: ListedServers, given: readonly string[]): boolean {
  return (
    servers.length === given.length &&
    servers.every(({ from, address }, index) => from === "container" && isSameAddress(address, given[index] ?? ""))
  );
}

/** Whether the host's file names it, and the engine would have it asked from there. */
function isHostServer(
  { from, address }: ListedServers[number],
  { hostServers, engineVersion }: NameserversInput,
): boolean {
  if (addressBytes(address) === undefined || !hostServers().has(address)) return false;
  return from === "container" || engineVersion >= ASKS_FROM_HOST || isOnlyThere(address);
}

/** An address that leads elsewhere from inside a container. */
function isOnlyThere(address: string): boolean {
  return address.startsWith("127.") || isSameAddress(address, "::1") || address.includes("%");
}

/**
 * Whether neither the container nor the daemon put a list of its own for the host's. What marks the servers themselves
 * does not tell: engines before 28 have most of the host's asked from inside.
 */
function saysFromHost(resolvConf: string): boolean {
  const overrides = OVERRIDES.exec(resolvConf)?.[1];
  return FOR_RESOLVER.test(resolvConf) && overrides !== undefined && !overrides.split(" ").includes("nameservers");
}

function fromContainer(addresses: readonly string[]): ListedServers {
  return addresses.map((address) => ({ from: "container", address }));
}

function isRecorded({ engineVersion }: NameserversInput): boolean {
  return engineVersion >= RECORDS_NAMESERVERS;
}

/** Whether somebody has set ndots. A container that says so of its own file changes its own names alone. */
function hasNdots(input: NameserversInput): boolean {
  const { resolvConf = "", dns, dnsOptions } = input;
  if (isRecorded(input)) {
    // An invalid one counts as well, but the engine drops it from the file.
    const isSaid = ["host", "override"].includes(NDOTS.exec(resolvConf)?.[1] ?? "");
    return isSaid || dnsOptions.some((option) => /^ndots(:|$)/.test(option));
  }
  if (dnsOptions.some((option) => option.startsWith("ndots"))) return true;
  // Without a list of its own the file has the host's options; the engine itself writes no other than "ndots:0".
  return (
    dns.length === 0 &&
    parseResolvConf(resolvConf).options.some((option) => option.startsWith("ndots") && option !== "ndots:0")
  );
}
