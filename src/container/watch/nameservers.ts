/**
 * The nameservers of a container, as Docker itself recorded them: engines from 26 on write the list that their resolver
 * uses into the container's resolv.conf, as a comment. Where no list is told, or it cannot be believed, it is "unknown",
 * and Docker's own resolver is asked instead. A list that came from the host's file is the host's, whatever that file
 * says by now, if the character follows it.
 *
 * A container can write its own resolv.conf. What it could gain is that we ask a server from the host's namespace for it;
 * so a server of the host's is believed only if the host's own file names it too. Everything else is asked from inside
 * the container, which can do that by itself.
 */
import { addressBytes } from "../../model/address.ts";
import type { NameserversFact } from "../registry/fact.ts";
import { parseResolvConf } from "./resolv-conf.ts";

export interface NameserversInput {
  /** The container's file; undefined where it cannot be read. */
  readonly resolvConf: string | undefined;
  /** The addresses that the host's own files name. */
  readonly hostServers: ReadonlySet<string>;
  /** What the user gave the container: --dns and --dns-option. */
  readonly dns: readonly string[];
  readonly dnsOptions: readonly string[];
  /** Whether this engine writes the comment. */
  readonly isRecorded: boolean;
  /** Whether the host's file counts as it is now, not as it was when the container started. */
  readonly followsHost: boolean;
  /** Whether the engine's own settings are known to give no list; asked only where no comment tells. */
  readonly isDaemonWithoutDns: () => boolean;
}

const LIST = /^# ExtServers: \[(.*)\]$/m;
const NO_SERVERS = /^# NO EXTERNAL NAMESERVERS DEFINED$/m;
const NDOTS = /^# Option ndots from: (\w+)$/m;
/** Where the engine says that the file is one for its resolver, and what of the host's file it put something else for. */
const FOR_RESOLVER = /^# Based on host file: '.*' \(internal resolver\)$/m;
const OVERRIDES = /^# Overrides: \[(.*)\]$/m;
const FROM_HOST = /^host\((.+)\)$/;

export function nameserversOf(input: NameserversInput): NameserversFact {
  return input.isRecorded ? recorded(input) : derived(input);
}

function recorded({ resolvConf, hostServers, dns, dnsOptions, followsHost }: NameserversInput): NameserversFact {
  if (resolvConf === undefined) return { kind: "unknown" };
  // An invalid one counts as well, but the engine drops it from the file.
  const isNdotsSet =
    ["host", "override"].includes(NDOTS.exec(resolvConf)?.[1] ?? "") ||
    dnsOptions.some((option) => /^ndots(:|$)/.test(option));
  if (followsHost && dns.length === 0 && isFromHost(resolvConf)) return { kind: "host", isNdotsSet };
  const list = LIST.exec(resolvConf)?.[1];
  if (list === undefined) {
    return NO_SERVERS.test(resolvConf)
      ? { kind: "listed", servers: [], isNdotsSet, isOwn: false }
      : { kind: "unknown" };
  }
  const servers = list
    .split(/\s+/)
    .filter((item) => item !== "")
    .map((item) => {
      const hostAddress = FROM_HOST.exec(item)?.[1];
      return hostAddress === undefined
        ? { from: "container" as const, address: item }
        : { from: "host" as const, address: hostAddress };
    });
  const isBelievable = servers.every(
    ({ from, address }) => addressBytes(address) !== undefined && (from === "container" || hostServers.has(address)),
  );
  return isBelievable ? { kind: "listed", servers, isNdotsSet, isOwn: dns.length > 0 } : { kind: "unknown" };
}

/**
 * Whether neither the container nor the daemon put a list of its own for the host's. What marks the servers themselves
 * does not tell: engines before 28 have most of the host's asked from inside. A container that forges this gets what any
 * other gets.
 */
function isFromHost(resolvConf: string): boolean {
  const overrides = OVERRIDES.exec(resolvConf)?.[1];
  return FOR_RESOLVER.test(resolvConf) && overrides !== undefined && !overrides.split(" ").includes("nameservers");
}

/** Older engines: the user's list is used as it is; without one, a list of the daemon's may apply that nobody tells. */
function derived(input: NameserversInput): NameserversFact {
  const { resolvConf, dns, dnsOptions, followsHost, isDaemonWithoutDns } = input;
  const isNdotsSet = dnsOptions.some((option) => option.startsWith("ndots"));
  if (dns.length > 0) {
    const servers = dns.map((address) => ({ from: "container" as const, address }));
    return { kind: "listed", servers, isNdotsSet, isOwn: true };
  }
  if (!followsHost || !isDaemonWithoutDns()) return { kind: "unknown" };
  return { kind: "host", isNdotsSet: isNdotsSet || hasNdotsOfSomebody(resolvConf ?? "") };
}

/** The engine itself writes no other than "ndots:0". */
function hasNdotsOfSomebody(resolvConf: string): boolean {
  return parseResolvConf(resolvConf).options.some((option) => option.startsWith("ndots") && option !== "ndots:0");
}
