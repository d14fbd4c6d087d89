/**
 * Port conflict: a program that already uses port 53 of a node's own address and would lose its queries: a resolver in the
 * node, or a pod that the port is redirected to.
 */
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { chainsRedirecting } from "../rules/port-redirects.ts";
import { listenersAt } from "../namespace/listeners.ts";

const DNS_PORT = 53;
const REMEDY = "choose another kind.ip, or set kind.force";

/** A sentence; undefined if the port is free. Call inside the namespace. */
export function findPortConflict(addresses: readonly string[], memory: NetlinkMemory): string | undefined {
  if (addresses.length === 0) return undefined;
  const listening = addresses.flatMap((address) =>
    listenersAt(address, DNS_PORT).map((protocol) => `${address} over ${protocol}`),
  );
  if (listening.length > 0) return `a process listens on port 53 of ${listening.join(" and ")}: ${REMEDY}`;
  const chains = chainsRedirecting(memory, DNS_PORT);
  if (chains.length === 0) return undefined;
  return `port 53 of ${addresses.join(" and ")} is redirected by chain ${chains.join(", ")}: ${REMEDY}`;
}
