/**
 * Rules of iptables-legacy, which nf_tables does not list. Only what matters for a port is parsed: protocol,
 * destination port, target.
 */
import type { Xtables } from "./xtables.ts";

/** linux/netfilter_ipv4/ip_tables.h and linux/netfilter/x_tables.h */
const NAME_BYTES = 32;
const INFO_HOOKS = 36;
const ENTRY_BYTES = 112;
const ENTRY_DESTINATION = 4;
const ENTRY_PROTOCOL = 80;
const ENTRY_TARGET = 88;
const ENTRY_NEXT = 90;
const EXTENSION_BYTES = 32;
const HOOKS = ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"];
const PORT_MAX = 65535;
const PROTOCOLS = new Map([
  [6, "tcp"],
  [17, "udp"],
]);
/** The verdict of a standard target that drops. */
const VERDICT_DROP = -1;

export interface LegacyRule {
  readonly chain: string;
  /** The name of its target: DNAT, DROP, a chain ... */
  readonly target: string;
  /** Undefined if it matches neither UDP nor TCP in particular. */
  readonly protocol: string | undefined;
  readonly portFrom: number;
  readonly portTo: number;
  /** The IPv4 address that it matches; 0.0.0.0 if it matches any. */
  readonly destination: string;
  /** The new destination port of DNAT; 0 if DNAT keeps the port. */
  readonly dnatPort: number | undefined;
  /** The last rule of a built-in chain: its policy. */
  readonly isPolicy: boolean;
}

/** The rules of an IPv4 table, in order; undefined if it could not be read. */
export function legacyRules(tables: Xtables | undefined, name: string): readonly LegacyRule[] | undefined {
  const isUnread = tables === undefined || (tables.has(name) && tables.get(name) === undefined);
  return isUnread ? undefined : [...eachLegacyRule(tables, name)];
}

/** The rules of an IPv4 table, one at a time; none if it could not be read. */
export function* eachLegacyRule(tables: Xtables | undefined, name: string): Generator<LegacyRule> {
  const table = tables?.get(name);
  if (table !== undefined) yield* rulesIn(table.entries, chainHeadsIn(table.info));
}

/** The offsets of the built-in chains. */
function chainHeadsIn(info: Buffer): Map<number, string> {
  const valid = info.readUInt32LE(NAME_BYTES);
  const heads = HOOKS.flatMap((name, hook): [number, string][] =>
    (valid & (1 << hook)) === 0 ? [] : [[info.readUInt32LE(INFO_HOOKS + 4 * hook), name]],
  );
  return new Map(heads);
}

function* rulesIn(entries: Buffer, heads: ReadonlyMap<number, string>): Generator<LegacyRule> {
  let chain = "";
  for (let at = 0; at + ENTRY_BYTES <= entries.length;) {
    const entry = entries.subarray(at);
    const next = entry.readUInt16LE(ENTRY_NEXT);
    if (next < ENTRY_BYTES) break;
    chain = heads.get(at) ?? chain;
    const target = entry.subarray(entry.readUInt16LE(ENTRY_TARGET), next);
    at += next;
    // A user-defined chain begins with an entry that holds only its name.
    if (nameOf(target) === "ERROR") {
      chain = textAt(target, EXTENSION_BYTES);
      continue;
    }
    const isLast = heads.has(at) || nameOf(entries.subarray(at + targetAt(entries, at))) === "ERROR";
    yield {
      chain,
      target: targetOf(target),
      ...matchOf(entry),
      ...destinationOf(entry, target),
      isPolicy: isLast && HOOKS.includes(chain),
    };
  }
}

function targetAt(entries: Buffer, at: number): number {
  return at + ENTRY_BYTES <= entries.length ? entries.readUInt16LE(at + ENTRY_TARGET) : entries.length;
}

function targetOf(target: Buffer): string {
  const name = nameOf(target);
  if (name !== "") return name;
  const verdict = target.length >= EXTENSION_BYTES + 4 ? target.readInt32LE(EXTENSION_BYTES) : 0;
  return verdict === VERDICT_DROP ? "DROP" : "";
}

function destinationOf(entry: Buffer, target: Buffer): Pick<LegacyRule, "destination" | "dnatPort"> {
  const destination = [...entry.subarray(ENTRY_DESTINATION, ENTRY_DESTINATION + 4)].join(".");
  const isDnat = nameOf(target) === "DNAT";
  const port = isDnat ? dnatPort(target.readUInt8(EXTENSION_BYTES - 1), target.subarray(EXTENSION_BYTES)) : undefined;
  return { destination, dnatPort: port };
}

/** linux/netfilter/nf_nat.h: the start of the port range in a DNAT target of some revision. */
export function dnatPort(revision: number, info: Buffer): number | undefined {
  const at = revision === 0 ? 16 : 36;
  return info.length < at + 2 ? undefined : info.readUInt16BE(at);
}

function matchOf(entry: Buffer): Pick<LegacyRule, "protocol" | "portFrom" | "portTo"> {
  const protocol = PROTOCOLS.get(entry.readUInt16LE(ENTRY_PROTOCOL));
  const end = entry.readUInt16LE(ENTRY_TARGET);
  for (let at = ENTRY_BYTES; at + EXTENSION_BYTES + 8 <= end;) {
    const size = entry.readUInt16LE(at);
    if (size < EXTENSION_BYTES) break;
    const name = nameOf(entry.subarray(at));
    const ports = entry.subarray(at + EXTENSION_BYTES);
    if (name === "udp" || name === "tcp") {
      return { protocol: name, portFrom: ports.readUInt16LE(4), portTo: ports.readUInt16LE(6) };
    }
    at += size;
  }
  return { protocol, portFrom: 0, portTo: PORT_MAX };
}

/** The name of a match or a target, after its size. */
function nameOf(extension: Buffer): string {
  return extension.length < EXTENSION_BYTES ? "" : textAt(extension.subarray(0, EXTENSION_BYTES - 1), 2);
}

function textAt(bytes: Buffer, at: number): string {
  const end = bytes.indexOf(0, at);
  return bytes.toString("latin1", at, end === -1 ? bytes.length : end);
}
