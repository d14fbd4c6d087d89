/**
 * Listeners: the sockets in a namespace that already listen on a port. Capturing that port's queries from outside would
 * take them away from these sockets.
 */
import type { SocketFilter } from "../../kernel/sock-diag.ts";
import { receivedBySockets, socketsAt } from "../../kernel/socket-list.ts";
import { addressBytes } from "../../base/model/address.ts";

/** The state of a socket that accepts packets or connections from any peer. */
const WAITING = { udp: "unconnected", tcp: "listening" } as const;

const PROTOCOLS = ["udp", "tcp"] as const;
type Protocol = (typeof PROTOCOLS)[number];

/** The protocols with a socket that receives what is sent to this address and port. Call inside the namespace. */
export function listenersAt(address: string, port: number): Protocol[] {
  const target = addressBytes(address) ?? new Uint8Array(4);
  const packets = PROTOCOLS.map((protocol) => ({ protocol, state: WAITING[protocol], address: target, port }));
  return receivedBySockets(packets).map(({ protocol }) => protocol);
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
