/**
 * Listeners: the sockets in a namespace that already listen on a port. Capturing that port's queries from outside would
 * take them away from these sockets.
 */
import type { SocketFilter } from "../../kernel/sock-diag.ts";
import { socketsAt } from "../../kernel/socket-list.ts";
import { addressBytes } from "../../base/model/address.ts";

/** The state of a socket that accepts packets or connections from any peer. */
const WAITING = { udp: "unconnected", tcp: "listening" } as const;

type Protocol = "udp" | "tcp";

/** The protocols with a socket that receives what is sent to this address and port. Call inside the namespace. */
export function listenersAt(address: string, port: number): Protocol[] {
  const target = Buffer.from(addressBytes(address) ?? new Uint8Array(4));
  const protocols = ["udp", "tcp"] as const;
  const filters = protocols.flatMap((protocol) =>
    ([4, 6] as const).map((family) => waiting(protocol, family, { port })),
  );
  const receiving = socketsAt(...filters).filter(
    ({ local }) => local.address.equals(target) || local.address.every((byte) => byte === 0),
  );
  return protocols.filter((wanted) => receiving.some(({ protocol }) => protocol === wanted));
}

/** The control groups of the processes that answer UDP queries in this namespace, whatever their address. */
export function controlGroupsAt(port: number): bigint[] {
  const groups = ([4, 6] as const).flatMap((family) =>
    socketsAt({ protocol: "udp", family, state: WAITING.udp, end: "local", port }).flatMap(
      ({ controlGroup }) => controlGroup ?? [],
    ),
  );
  return [...new Set(groups)];
}

/** The ports on which a socket listens at exactly this IPv4 address. */
export function boundPorts(address: string, protocol: Protocol): number[] {
  const bytes = addressBytes(address) ?? new Uint8Array(4);
  return socketsAt(waiting(protocol, 4, { address: bytes })).map(({ local }) => local.port);
}

function waiting(protocol: Protocol, family: 4 | 6, where: Pick<SocketFilter, "address" | "port">): SocketFilter {
  return { protocol, family, state: WAITING[protocol], end: "local", ...where };
}
