/**
 * Tables of iptables-legacy, read without its program: their names, their entries, and the names of their chains.
 * Running the program takes milliseconds and a process, too much for most namespaces. Root in a container can make
 * tables of any length and change them at any time.
 */
import { LIMITS } from "../base/limits.ts";
import { AF_INET, AF_INET6, SOCK_DGRAM, SystemFault, closeQuietly, optionBytes, socket } from "./libc.ts";

import { procText } from "./proc-text.ts";

/** linux/netfilter_ipv4/ip_tables.h and its IPv6 counterpart, which do not differ in anything used here. */
const SOL_IP = 0;
const SOL_IPV6 = 41;
const SO_GET_INFO = 64;
const SO_GET_ENTRIES = 65;
const NAME_BYTES = 32;
const INFO_BYTES = 84;
const INFO_SIZE_OFFSET = 80;
const ENTRIES_SIZE_OFFSET = 32;
const ENTRIES_HEADER_BYTES = 40;

const KINDS = {
  ip: {
    list: "/proc/thread-self/net/ip_tables_names",
    domain: AF_INET,
    level: SOL_IP,
    targetAt: 88,
    nextAt: 90,
    countAt: 96,
  },
  ip6: {
    list: "/proc/thread-self/net/ip6_tables_names",
    domain: AF_INET6,
    level: SOL_IPV6,
    targetAt: 140,
    nextAt: 142,
    countAt: 152,
  },
} as const;
/**
 * Of a target: its name, empty for a plain verdict and ERROR where a chain begins; then the verdict, or the chain's
 * name.
 */
const TARGET_NAME = 2;
const TARGET_DATA = 32;
const ERROR_INITIAL = 0x45;
const VERDICT_DROP = -1;

export type XtablesFamily = keyof typeof KINDS;

/** The tables in use in the thread's namespace; reading any other one would create it. */
export function xtablesIn(family: XtablesFamily): string[] {
  try {
    return (procText(KINDS[family].list) ?? "").split("\n").filter(Boolean);
  } catch {
    // This kernel has none.
    return [];
  }
}

/** The names of a table's user-defined chains, and its end marker, called ERROR; undefined where it cannot be read. */
export function chainsIn(family: XtablesFamily, table: string): string[] | undefined {
  const names: string[] = [];
  const isRead = visitEntries(family, table, (bytes, _, target) => {
    if (isChain(bytes, target)) names.push(textIn(bytes, target + TARGET_DATA));
  });
  return isRead ? names : undefined;
}

/** Packets dropped by rules of one chain, as far as the table can be read. */
export function droppedInChain(family: XtablesFamily, table: string, chain: string): number {
  const { countAt } = KINDS[family];
  let isThere = false;
  let dropped = 0;
  visitEntries(family, table, (bytes, entry, target) => {
    if (isChain(bytes, target)) isThere = textIn(bytes, target + TARGET_DATA) === chain;
    else if (isThere && isDrop(bytes, target)) dropped += Number(bytes.readBigUInt64LE(entry + countAt));
  });
  return dropped;
}

/** Visits each entry of a table with its offset and its target's; returns whether the table could be read. */
function visitEntries(
  family: XtablesFamily,
  table: string,
  visit: (bytes: Buffer, entry: number, target: number) => void,
): boolean {
  const bytes = readXtable(family, table)?.entries;
  if (bytes === undefined) return false;
  const { targetAt, nextAt, countAt } = KINDS[family];
  for (let at = 0; at + countAt + 8 <= bytes.length;) {
    const next = bytes.readUInt16LE(at + nextAt);
    const target = at + bytes.readUInt16LE(at + targetAt);
    if (next < countAt || target + TARGET_DATA + 4 > bytes.length) break;
    visit(bytes, at, target);
    at += next;
  }
  return true;
}

function isChain(bytes: Buffer, target: number): boolean {
  return bytes[target + TARGET_NAME] === ERROR_INITIAL && textIn(bytes, target + TARGET_NAME) === "ERROR";
}

function isDrop(bytes: Buffer, target: number): boolean {
  return bytes[target + TARGET_NAME] === 0 && bytes.readInt32LE(target + TARGET_DATA) === VERDICT_DROP;
}

function textIn(bytes: Buffer, at: number): string {
  const text = bytes.subarray(at, at + NAME_BYTES);
  const end = text.indexOf(0);
  return text.toString("latin1", 0, end === -1 ? text.length : end);
}

/**
 * A table as the kernel has it: the offsets of its chains, and its entries; undefined where it is larger than the
 * limit, or keeps changing while it is read.
 */
export function readXtable(
  family: XtablesFamily,
  table: string,
): { readonly info: Buffer; readonly entries: Buffer } | undefined {
  const { domain, level } = KINDS[family];
  const fd = socket(domain, SOCK_DGRAM);
  try {
    for (let reads = 0; reads < LIMITS.xtableReads; reads++) {
      const info = optionBytes(fd, level, SO_GET_INFO, requestFor(table, INFO_BYTES), `table ${table}`);
      // The size is in native byte order, like all that it is compared with.
      const size = info.subarray(INFO_SIZE_OFFSET, INFO_SIZE_OFFSET + 4);
      const [bytes = 0] = new Uint32Array(Uint8Array.from(size).buffer);
      if (bytes > LIMITS.xtableBytes) return undefined;
      const request = requestFor(table, ENTRIES_HEADER_BYTES + bytes);
      request.set(size, ENTRIES_SIZE_OFFSET);
      try {
        const answer = optionBytes(fd, level, SO_GET_ENTRIES, request, `table ${table}`);
        return { info, entries: answer.subarray(ENTRIES_HEADER_BYTES) };
      } catch (error) {
        // It was changed in between.
        if (!(error instanceof SystemFault) || error.code !== "EAGAIN") throw error;
      }
    }
    return undefined;
  } finally {
    closeQuietly(fd);
  }
}

function requestFor(table: string, bytes: number): Buffer {
  const request = Buffer.alloc(bytes);
  request.write(table, 0, NAME_BYTES - 1, "latin1");
  return request;
}
