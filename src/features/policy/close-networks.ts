/**
 * CloseNetworks: closes the networks of enforced policies as they were when dns11 ran last, before Docker starts. dns11 adopts
 * the tables, as it adopts those of a process that was killed.
 */
import { codeOf } from "../../base/lib/fault.ts";
import { listenerAddressBytes } from "../../base/model/listener-addresses.ts";
import { checkCapabilities } from "../../container/preflight.ts";
import { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { readClosedNetworks, serviceFolder } from "./boot/closed-networks.ts";
import { PolicyTable } from "./table/policy-table.ts";

/** That of the service. */
const FOLDER = "/var/lib/dns11";

/** Returns what it did, one line each. Throws a Fault if what was kept cannot be used, or the kernel refuses. */
export async function closeNetworks(): Promise<string[]> {
  checkCapabilities(["CAP_NET_ADMIN"]);
  const networks = readClosedNetworks(serviceFolder() ?? FOLDER);
  if (networks === undefined) return ["nothing to close: no policy is enforced for a network"];
  const parts = { memory: new NetlinkMemory(), within: <T>(work: () => T): T => work() };
  // They may be newer than the file, and must not become less.
  if (PolicyTable.exists(parts)) return ["the tables of policies are there already"];
  try {
    const table = await PolicyTable.open({ ...parts, resolvers: listenerAddressBytes(), networks });
    table[Symbol.dispose]();
  } catch (error) {
    if (codeOf(error) === "POLICY_OWNED") return ["dns11 runs, and has the tables of policies"];
    throw error;
  }
  return networks.map(({ name }) => `closed network ${name}`);
}
