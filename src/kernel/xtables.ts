/**
 * Tables of iptables-legacy, read without its program: their names and entries. Running the program takes milliseconds and a process, too
 * much for most namespaces. Root in a container can make tables of any length and change them at any time.
 *
 * The kernel has one lock for the tables of a family in all namespaces, which every reader and writer takes. So the tables are read in a
 * thread of the pool, one after the other, and the caller stops waiting if that takes too long.
 */
import { constants, openSync } from "node:fs";

import { LIMITS } from "../base/limits.ts";
import { optionInPool, readInPool } from "./in-pool.ts";
import { AF_INET, SOCK_DGRAM, SystemFault, closeQuietly, socket } from "./libc.ts";
import type { Within } from "./net-namespace.ts";

/** linux/netfilter_ipv4/ip_tables.h */
const SOL_IP = 0;
const SO_GET_INFO = 64;
const SO_GET_ENTRIES = 65;
const NAME_BYTES = 32;
const INFO_BYTES = 84;
const INFO_SIZE_OFFSET = 80;
const ENTRIES_SIZE_OFFSET = 32;
const ENTRIES_HEADER_BYTES = 40;

/** A table as the kernel has it: the offsets of its chains, and its entries. */
interface Xtable {
  readonly info: Buffer;
  readonly entries: Buffer;
}

/** The IPv4 tables in use in a namespace; undefined for those that are too large, or keep changing while they are read. */
export type Xtables = ReadonlyMap<string, Xtable | undefined>;

const LIST = "/proc/thread-self/net/ip_tables_names";
/** Large enough for the names of the five tables. */
const LIST_BYTES = 1024;
const NONE: Xtables = new Map();

/** Reads queue here, so that they do not occupy a thread each while they wait for the lock. */
let last: Promise<unknown> = Promise.resolve();

/** Undefined if others hold the lock for longer than `waitMs`. Reading a table that is not in use would create it. */
export async function readXtables(within: Within, waitMs: number = LIMITS.xtablesMs): Promise<Xtables | undefined> {
  return await new Promise((resolve, reject) => {
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      resolve(undefined);
    }, waitMs).unref();
    last = last
      .then(async () => (isLate ? undefined : await readAll(within)))
      .then(resolve, reject)
      .finally(() => clearTimeout(timer));
  });
}

async function readAll(within: Within): Promise<Xtables> {
  let names = -1;
  let fd = -1;
  try {
    names = within(() => openSync(LIST, constants.O_RDONLY));
    const bytes = Buffer.alloc(LIST_BYTES);
    const found = bytes
      .toString("latin1", 0, await readInPool(names, bytes))
      .split("\n")
      .filter(Boolean);
    if (found.length === 0) return NONE;
    fd = within(() => socket(AF_INET, SOCK_DGRAM));
    const tables = new Map<string, Xtable | undefined>();
    for (const table of found) tables.set(table, await readXtable(fd, table));
    return tables;
  } catch (error) {
    // This kernel has no such tables.
    if (names < 0) return NONE;
    throw error;
  } finally {
    closeQuietly(names);
    closeQuietly(fd);
  }
}

/** Undefined if the table is too large, or keeps changing between the calls. */
async function readXtable(fd: number, table: string): Promise<Xtable | undefined> {
  for (let reads = 0; reads < LIMITS.xtableReads; reads++) {
    const info = await optionInPool(fd, SOL_IP, SO_GET_INFO, requestFor(table, INFO_BYTES), `table ${table}`);
    // The size is in native byte order, like everything that it is compared with.
    const size = info.subarray(INFO_SIZE_OFFSET, INFO_SIZE_OFFSET + 4);
    const [bytes = 0] = new Uint32Array(Uint8Array.from(size).buffer);
    if (bytes > LIMITS.xtableBytes) return undefined;
    const request = requestFor(table, ENTRIES_HEADER_BYTES + bytes);
    request.set(size, ENTRIES_SIZE_OFFSET);
    try {
      const answer = await optionInPool(fd, SOL_IP, SO_GET_ENTRIES, request, `table ${table}`);
      return { info, entries: answer.subarray(ENTRIES_HEADER_BYTES) };
    } catch (error) {
      // The table was changed in between.
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
