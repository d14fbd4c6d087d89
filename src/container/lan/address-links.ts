/**
 * AddressLinks: the links of the host that have an address. It counts once the kernel delivers packets to it: one that is still checked
 * for duplicates does not.
 */
import { isSameAddress } from "../../base/model/address.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { RouteSocket } from "../../kernel/rtnetlink.ts";

/** Their indexes. Call inside the namespace. */
export function linksWith(address: string, memory: NetlinkMemory): number[] {
  const routes = new RouteSocket(memory);
  try {
    if (!routes.isLocal(address)) return [];
    return routes.addresses().flatMap((each) => (isSameAddress(each.address, address) ? [each.index] : []));
  } finally {
    routes.close();
  }
}
