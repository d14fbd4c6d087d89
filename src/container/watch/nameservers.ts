/**
 * The nameservers of a container, as Docker itself recorded them: engines from 26 on write the list that their resolver
 * uses into the container's resolv.conf, as a comment. Where no list is told, or it cannot be believed, it is "unknown",
 * and Docker's own resolver is asked instead.
 *
 * A container can write its own resolv.conf. What it could gain is that we ask a server from the host's namespace for it;
 * so a server of the host's is believed only if the host's own file names it too. Everything else is asked from inside
 * the container, which can do that by itself.
 */
import { addressBytes } from "../../model/address.ts";
import type { NameserversFact } from "../registry/fact.ts";

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
}

const LIST = /^# ExtServers: \[(.*)\]$/m;
const NO_SERVERS = /^# NO EXTERNAL NAMESERVERS DEFINED$/m;
const NDOTS = /^# Option ndots from: (\w+)$/m;
const FROM_HOST = /^host\((.+)\)$/;

export function nameserversOf(input: NameserversInput): NameserversFact {
  return input.isRecorded ? recorded(input) : derived(input);
}

function recorded({ resolvConf, hostServers, dns, dnsOptions }: NameserversInput): NameserversFact {
  if (resolvConf === undefined) return { kind: "unknown" };
  // An invalid one counts as well, but the engine drops it from the file.
  const isNdotsSet =
    ["host", "override"].includes(NDOTS.exec(resolvConf)?.[1] ?? "") ||
    dnsOptions.some((option) => /^ndots(:|$)/.test(option));
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

/** Older engines: the user's list is used as it is; without one, a list of the daemon's may apply that nobody tells. */
function derived({ dns, dnsOptions }: NameserversInput): NameserversFact {
  if (dns.length === 0) return { kind: "unknown" };
  return {
    kind: "listed",
    servers: dns.map((address) => ({ from: "container", address })),
    isNdotsSet: dnsOptions.some((option) => option.startsWith("ndots")),
    isOwn: true,
  };
}

/** The addresses that a resolv.conf names. */
export function serversIn(resolvConf: string): string[] {
  return resolvConf.split("\n").flatMap((line) => {
    const [directive, address] = line.trim().split(/\s+/);
    return directive === "nameserver" && address !== undefined ? [address] : [];
  });
}
