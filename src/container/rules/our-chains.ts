/**
 * OurChains: the names of our iptables-legacy chains, and the tables that they are in.
 */
import { type ChainName, GUARD_CHAIN } from "./plan.ts";

export const CHAIN_PREFIX = "DNS11-";

/** The guard drops in mangle: before the usual filter rules, and after address translation. */
export type Table = "nat" | "raw" | "mangle";

export const TABLE_OF: Readonly<Record<ChainName, Table>> = {
  zone: "raw",
  query: "nat",
  reply: "nat",
  "pod-zone": "raw",
  "pod-query": "nat",
  guard: "mangle",
};

const OUR_CHAINS = Object.entries(TABLE_OF).map(([name, table]) => ({ name: chainNameOf(name), table }));
/** The table and chain in which the guards drop. */
export const GUARD_LOCATION = { table: TABLE_OF[GUARD_CHAIN], chain: chainNameOf(GUARD_CHAIN) };

/** Whether this table and name are one of our chains. */
export function isOurChain(table: string, chain: string): boolean {
  return OUR_CHAINS.some((our) => our.name === chain && our.table === table);
}

export function chainNameOf(name: string): string {
  return `${CHAIN_PREFIX}${name.toUpperCase()}`;
}
