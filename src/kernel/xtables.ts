/**
 * The tables of the older iptables, read without a program: what stands in them, and whether a word does, such as the
 * name of a chain. Asking the program takes milliseconds and a process, which most namespaces are not worth.
 */
import { readFileSync } from "node:fs";

import { AF_INET, AF_INET6, SOCK_DGRAM, SystemFault, closeQuietly, optionBytes, socket } from "./libc.ts";

/** linux/netfilter_ipv4/ip_tables.h and its namesake for IPv6, which differ in nothing that is used here. */
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
  ip: { list: "/proc/thread-self/net/ip_tables_names", domain: AF_INET, level: SOL_IP },
  ip6: { list: "/proc/thread-self/net/ip6_tables_names", domain: AF_INET6, level: SOL_IPV6 },
} as const;

export type XtablesFamily = keyof typeof KINDS;

/** The tables that somebody has used in the namespace that the thread is in; looking at another one would make it. */
export function xtablesIn(family: XtablesFamily): string[] {
  try {
    return readFileSync(KINDS[family].list, "utf8").split("\n").filter(Boolean);
  } catch {
    // This kernel has none.
    return [];
  }
}

/** Whether one of the tables has this word in it. */
export function isInXtables(family: XtablesFamily, word: string): boolean {
  return xtablesIn(family).some((table) => readXtable(family, table).entries.includes(word));
}

/** A table as the kernel has it: where its chains are, and its rules. */
export function readXtable(family: XtablesFamily, table: string): { readonly info: Buffer; readonly entries: Buffer } {
  const { domain, level } = KINDS[family];
  const fd = socket(domain, SOCK_DGRAM);
  try {
    for (;;) {
      const info = optionBytes(fd, level, SO_GET_INFO, orderFor(table, INFO_BYTES), `table ${table}`);
      // Both numbers are in the machine's order, and so is all that is compared with them.
      const size = info.subarray(INFO_SIZE_OFFSET, INFO_SIZE_OFFSET + 4);
      const [bytes = 0] = new Uint32Array(Uint8Array.from(size).buffer);
      const order = orderFor(table, ENTRIES_HEADER_BYTES + bytes);
      order.set(size, ENTRIES_SIZE_OFFSET);
      try {
        const answer = optionBytes(fd, level, SO_GET_ENTRIES, order, `table ${table}`);
        return { info, entries: answer.subarray(ENTRIES_HEADER_BYTES) };
      } catch (error) {
        // Somebody has changed it in between.
        if (!(error instanceof SystemFault) || error.code !== "EAGAIN") throw error;
      }
    }
  } finally {
    closeQuietly(fd);
  }
}

function orderFor(table: string, bytes: number): Buffer {
  const order = Buffer.alloc(bytes);
  order.write(table, 0, NAME_BYTES - 1, "latin1");
  return order;
}
