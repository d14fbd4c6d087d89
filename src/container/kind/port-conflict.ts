/**
 * Port holder: who has port 53 of a node's own address already, and would lose what is asked there: a resolver in the
 * node, or a pod that the port is led to.
 */
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { chainsRedirecting } from "../rules/port-redirects.ts";
import { listenersAt } from "../namespace/listeners.ts";

const DNS_PORT = 53;
const REMEDY = "choose another kind.ip, or set kind.force";

/** A sentence, or undefined where nobody has it; to be called inside the namespace. */
export function findPortConflict(addresses: readonly string[], memory: NetlinkMemory): string | undefined {
  if (addresses.length === 0) return undefined;
  const listening = addresses.flatMap((address) =>
    listenersAt(address, DNS_PORT).map((protocol) => `${address} by ${protocol}`),
  );
  if (listening.length > 0) return `somebody listens at port 53 of ${listening.join(" and ")}: ${REMEDY}`;
  const chains = chainsRedirecting(memory, DNS_PORT);
  if (chains.length === 0) return undefined;
  return `port 53 of ${addresses.join(" and ")} is led elsewhere by chain ${chains.join(", ")}: ${REMEDY}`;
}
