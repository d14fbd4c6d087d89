/**
 * Tables of iptables-legacy, read without its program: their names, their entries, and the names of their chains.
 * Running the program takes milliseconds and a process, too much for most namespaces. Root in a container can make
 * tables of any length and change them at any time.
 *
 * The kernel has one lock for the tables of a family in all namespaces, which whoever reads or writes one takes. So they are read
 * in a thread of the pool, one after the other, and given up where that takes too long.
 */
import { constants, openSync } from "node:fs";

import { inSlices } from "../base/lib/slices.ts";
import { LIMITS } from "../base/limits.ts";
import { optionInPool, readInPool } from "./in-pool.ts";
import { AF_INET, AF_INET6, SOCK_DGRAM, SystemFault, closeQuietly, socket } from "./libc.ts";
import type { Within } from "./net-namespace.ts";

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
 * A target has a name, empty for a plain verdict and ERROR where a chain begins; then the verdict, or the chain's name.
 */
const TARGET_NAME = 2;
const TARGET_DATA = 32;
const ERROR_INITIAL = 0x45;
const VERDICT_DROP = -1;
const PIECE_ENTRIES = 128;

export type XtablesFamily = keyof typeof KINDS;

/** A table as the kernel has it: the offsets of its chains, and its entries. */
export interface Xtable {
  readonly info: Buffer;
  readonly entries: Buffer;
}

/** The tables of one family in use in a namespace; undefined those that are too large, or keep changing while they are read. */
export type Xtables = ReadonlyMap<string, Xtable | undefined>;

/** Names of tables are short, and there are five. */
const LIST_BYTES = 1024;
const NONE: Xtables = new Map();

/** Reads of one family that wait for its lock wait here, not in a thread each. */
const last: Record<XtablesFamily, Promise<unknown>> = { ip: Promise.resolve(), ip6: Promise.resolve() };

/** undefined where others hold the lock for longer than `waitMs`. Reading a table that is not in use would create it. */
export async function readXtables(
  within: Within,
  family: XtablesFamily,
  waitMs: number = LIMITS.xtablesMs,
): Promise<Xtables | undefined> {
  return await new Promise((resolve, reject) => {
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      resolve(undefined);
    }, waitMs).unref();
    last[family] = last[family]
      .then(async () => (isLate ? undefined : await readAll(within, family)))
      .then(resolve, reject)
      .finally(() => clearTimeout(timer));
  });
}

async function readAll(within: Within, family: XtablesFamily): Promise<Xtables> {
  const { list, domain } = KINDS[family];
  let names = -1;
  let fd = -1;
  try {
    names = within(() => openSync(list, constants.O_RDONLY));
    const bytes = Buffer.alloc(LIST_BYTES);
    const found = bytes
      .toString("latin1", 0, await readInPool(names, bytes))
      .split("\n")
      .filter(Boolean);
    if (found.length === 0) return NONE;
    fd = within(() => socket(domain, SOCK_DGRAM));
    const tables = new Map<string, Xtable | undefined>();
    for (const table of found) tables.set(table, await readXtable(fd, family, table));
    return tables;
  } catch (error) {
    // This kernel has none.
    if (names < 0) return NONE;
    throw error;
  } finally {
    closeQuietly(names);
    closeQuietly(fd);
  }
}

/** The names of a table's user-defined chains, and its end marker, called ERROR. */
export async function chainsIn(family: XtablesFamily, table: Xtable): Promise<string[]> {
  const names: string[] = [];
  await visitEntries(family, table, (bytes, _, target) => {
    if (isChain(bytes, target)) names.push(textIn(bytes, target + TARGET_DATA));
  });
  return names;
}

/** Packets dropped by rules of one chain. */
export async function droppedInChain(family: XtablesFamily, table: Xtable, chain: string): Promise<number> {
  const { countAt } = KINDS[family];
  let isThere = false;
  let dropped = 0;
  await visitEntries(family, table, (bytes, entry, target) => {
    if (isChain(bytes, target)) isThere = textIn(bytes, target + TARGET_DATA) === chain;
    else if (isThere && isDrop(bytes, target)) dropped += Number(bytes.readBigUInt64LE(entry + countAt));
  });
  return dropped;
}

type VisitEntry = (bytes: Buffer, entry: number, target: number) => void;

/** Visits each entry of a table with its offset and its target's. */
async function visitEntries(family: XtablesFamily, table: Xtable, visit: VisitEntry): Promise<void> {
  await inSlices(visiting(family, table, visit));
}

/** One piece is many entries. */
function* visiting(family: XtablesFamily, { entries: bytes }: Xtable, visit: VisitEntry): Generator<void> {
  let count = 0;
  const { targetAt, nextAt, countAt } = KINDS[family];
  for (let at = 0; at + countAt + 8 <= bytes.length;) {
    const next = bytes.readUInt16LE(at + nextAt);
    const target = at + bytes.readUInt16LE(at + targetAt);
    if (next < countAt || target + TARGET_DATA + 4 > bytes.length) break;
    visit(bytes, at, target);
    at += next;
    if (++count % PIECE_ENTRIES === 0) yield;
  }
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

/** undefined if the table is too large, or changes between the calls again and again. */
async function readXtable(fd: number, family: XtablesFamily, table: string): Promise<Xtable | undefined> {
  const { level } = KINDS[family];
  for (let reads = 0; reads < LIMITS.xtableReads; reads++) {
    const info = await optionInPool(fd, level, SO_GET_INFO, requestFor(table, INFO_BYTES), `table ${table}`);
    // The size is in native byte order, like all that it is compared with.
    const size = info.subarray(INFO_SIZE_OFFSET, INFO_SIZE_OFFSET + 4);
    const [bytes = 0] = new Uint32Array(Uint8Array.from(size).buffer);
    if (bytes > LIMITS.xtableBytes) return undefined;
    const request = requestFor(table, ENTRIES_HEADER_BYTES + bytes);
    request.set(size, ENTRIES_SIZE_OFFSET);
    try {
      const answer = await optionInPool(fd, level, SO_GET_ENTRIES, request, `table ${table}`);
      return { info, entries: answer.subarray(ENTRIES_HEADER_BYTES) };
    } catch (error) {
      // It was changed in between.
      if (!(error instanceof SystemFault) || error.code !== "EAGAIN") throw error;
    }
  }
  return undefined;
}

function requestFor(table: string, bytes: number): Buffer {
  const request = Buffer.alloc(bytes);
  request.write(table, 0, NAME_BYTES - 1, "latin1");
  return request;
}
