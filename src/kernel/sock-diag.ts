/**
 * SockDiag: lists sockets of the thread's namespace by sock_diag. The kernel filters, so a container with very many
 * sockets costs one comparison for each. A kernel may lack it.
 */
import { AF_INET, AF_INET6, SystemFault } from "./libc.ts";
import { NLM_F_DUMP, attributesIn } from "./netlink-message.ts";
import { NetlinkMemory, NetlinkSocket } from "./netlink-socket.ts";

/** linux/sock_diag.h, linux/inet_diag.h */
const NETLINK_SOCK_DIAG = 4;
const SOCK_DIAG_BY_FAMILY = 20;
const INET_DIAG_REQ_BYTECODE = 1;
const BYTECODE_SOURCE = 7;
const BYTECODE_DESTINATION = 8;
const REQUEST_BYTES = 56;
const STATES_OFFSET = 4;
const OPERATION_BYTES = 4;
const CONDITION_BYTES = 8;
const ANY_PORT = -1;
const ANSWER_BYTES = 56;
const ANSWER_HEADER_BYTES = 72;
const SOURCE_PORT = 4;
const DESTINATION_PORT = 6;
const SOURCE = 8;
const DESTINATION = 24;
const CGROUP_ID = 21;
const PROTOCOLS = { tcp: 6, udp: 17 } as const;
const STATES = { connected: 1 << 1, unconnected: 1 << 7, listening: 1 << 10 } as const;

/** One end of a socket: address bytes and a port. In a filter, a missing part matches any. */
export interface SocketEnd {
  readonly address: Buffer;
  readonly port: number;
}

export interface SocketFilter {
  readonly protocol: keyof typeof PROTOCOLS;
  readonly family: 4 | 6;
  readonly state: keyof typeof STATES;
  /** Either end. An IPv4 address also matches an IPv6 socket that speaks IPv4. */
  readonly end: "local" | "remote";
  readonly address?: Uint8Array;
  readonly port?: number;
}

export interface ListedSocket {
  readonly protocol: SocketFilter["protocol"];
  /** The control group of version 2 in which it was made; undefined where the kernel does not tell. */
  readonly controlGroup?: bigint | undefined;
  readonly local: SocketEnd;
  readonly remote: SocketEnd;
}

/** Errors of a kernel without sock_diag. */
const NO_LIST = new Set(["ENOENT", "EPROTONOSUPPORT", "EOPNOTSUPP", "ENOTSUP", "EINVAL"]);
const memory = new NetlinkMemory();

/** Those that one of the filters finds; undefined where this kernel has no sock_diag. */
export function listSockets(filters: readonly SocketFilter[]): ListedSocket[] | undefined {
  const found: ListedSocket[] = [];
  let socket: NetlinkSocket | undefined;
  try {
    socket = new NetlinkSocket(memory, NETLINK_SOCK_DIAG);
    for (const filter of filters) {
      socket.request(
        {
          type: SOCK_DIAG_BY_FAMILY,
          flags: NLM_F_DUMP,
          call: "sock_diag dump",
          about: filter.protocol,
          write: (w) => {
            w.raw(requestOf(filter));
            w.attribute(INET_DIAG_REQ_BYTECODE, bytecodeOf(filter));
          },
        },
        (body) => {
          if (body.length >= ANSWER_BYTES) found.push(socketIn(body, filter));
        },
      );
    }
    return found;
  } catch (error) {
    if (error instanceof SystemFault && NO_LIST.has(error.code)) return undefined;
    throw error;
  } finally {
    socket?.close();
  }
}

function requestOf({ protocol, family, state }: SocketFilter): Buffer {
  const request = Buffer.alloc(REQUEST_BYTES);
  request.set([family === 4 ? AF_INET : AF_INET6, PROTOCOLS[protocol]]);
  request.writeUInt32LE(STATES[state], STATES_OFFSET);
  return request;
}

/** One comparison: a match jumps to the end (accept), otherwise beyond the end (reject). */
function bytecodeOf({ end, address, port }: SocketFilter): Buffer {
  const length = OPERATION_BYTES + CONDITION_BYTES + (address?.length ?? 0);
  const code = Buffer.alloc(length);
  code.writeUInt8(end === "local" ? BYTECODE_SOURCE : BYTECODE_DESTINATION, 0);
  code.writeUInt8(length, 1);
  code.writeUInt16LE(length + OPERATION_BYTES, 2);
  if (address !== undefined) {
    code.writeUInt8(address.length === 4 ? AF_INET : AF_INET6, 4);
    code.writeUInt8(address.length * 8, 5);
    code.set(address, OPERATION_BYTES + CONDITION_BYTES);
  }
  code.writeInt32LE(port ?? ANY_PORT, 8);
  return code;
}

/** Copied, because the next replies are received into the same memory. */
function socketIn(body: Buffer, { family, protocol }: SocketFilter): ListedSocket {
  const bytes = family === 4 ? 4 : 16;
  const endAt = (port: number, address: number): SocketEnd => ({
    address: Buffer.from(body.subarray(address, address + bytes)),
    port: body.readUInt16BE(port),
  });
  return {
    protocol,
    local: endAt(SOURCE_PORT, SOURCE),
    remote: endAt(DESTINATION_PORT, DESTINATION),
    controlGroup: attributesIn(body.subarray(ANSWER_HEADER_BYTES)).get(CGROUP_ID)?.readBigUInt64LE(0),
  };
}
