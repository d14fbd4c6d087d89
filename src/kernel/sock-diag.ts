/**
 * SockDiag: sockets of the thread's namespace, by sock_diag. For a list the kernel walks through the sockets of all namespaces, with one
 * comparison for each of this one; it finds the one socket that receives a packet as it does for the packet itself. A kernel may lack
 * sock_diag.
 */
import { AF_INET, AF_INET6, SystemFault } from "./libc.ts";
import { NLM_F_ACK, NLM_F_DUMP, attributesIn } from "./netlink-message.ts";
import { LOOPBACK_INDEX } from "./rtnetlink-constants.ts";
import { NetlinkMemory, type NetlinkRequest, NetlinkSocket } from "./netlink-socket.ts";
import { procText } from "./process.ts";

/** linux/sock_diag.h, linux/inet_diag.h */
const NETLINK_SOCK_DIAG = 4;
const SOCK_DIAG_BY_FAMILY = 20;
const INET_DIAG_REQ_BYTECODE = 1;
const BYTECODE_SOURCE = 7;
const BYTECODE_DESTINATION = 8;
const REQUEST_BYTES = 56;
const STATES_OFFSET = 4;
const ID_OFFSET = 8;
const INTERFACE_OFFSET = ID_OFFSET + 36;
const COOKIE_OFFSET = ID_OFFSET + 40;
const COOKIE_BYTES = 8;
const OPERATION_BYTES = 4;
const CONDITION_BYTES = 8;
const ANY_PORT = -1;
const ANSWER_BYTES = 56;
const ANSWER_HEADER_BYTES = 72;
const STATE = 1;
const SOURCE_PORT = 4;
const DESTINATION_PORT = 6;
const SOURCE = 8;
const DESTINATION = 24;
const CGROUP_ID = 21;
const PROTOCOLS = { tcp: 6, udp: 17 } as const;
const STATE_NUMBERS = { connected: 1, unconnected: 7, listening: 10 } as const;
/** For UDP the kernel names the ends as the packet does, and for TCP as the socket does: it calls that historical. */
const LOCAL_END = { udp: { port: 2, address: 20 }, tcp: { port: 0, address: 4 } } as const;

/** One end of a socket: address bytes and a port. In a filter, a missing part matches any. */
interface SocketEnd {
  readonly address: Buffer;
  readonly port: number;
}

export interface SocketFilter {
  readonly protocol: keyof typeof PROTOCOLS;
  readonly family: 4 | 6;
  readonly state: keyof typeof STATE_NUMBERS;
  /** Which end is compared. An IPv4 address also matches an IPv6 socket that speaks IPv4. */
  readonly end: "local" | "remote";
  readonly address?: Uint8Array;
  readonly port?: number;
}

interface ListedSocket {
  readonly protocol: SocketFilter["protocol"];
  /** The version 2 control group in which it was made; undefined if the kernel does not say. */
  readonly controlGroup?: bigint | undefined;
  readonly local: SocketEnd;
  readonly remote: SocketEnd;
}

/** The address at which a packet arrives, and the state of the socket that it reaches. */
interface Receiving {
  readonly protocol: SocketFilter["protocol"];
  readonly state: SocketFilter["state"];
  readonly address: Uint8Array;
  readonly port: number;
}

const NO_SOCKET = new Set(["ENOENT"]);
/** Errors of a kernel without sock_diag. */
const NO_LIST = new Set(["ENOENT", "EPROTONOSUPPORT", "EOPNOTSUPP", "ENOTSUP", "EINVAL"]);
const memory = new NetlinkMemory();
/** Protocols that the kernel is known to list. For others it finds no socket either, with the same error as if there were none. */
const listed = new Set<SocketFilter["protocol"]>();

/** Lists the sockets that one of the filters matches; undefined if this kernel has no sock_diag. */
export function listSockets(filters: readonly SocketFilter[]): ListedSocket[] | undefined {
  const found: ListedSocket[] = [];
  return withSocket((socket) => {
    for (const filter of filters) {
      const { protocol: about } = filter;
      const write: NetlinkRequest["write"] = (w) => {
        w.raw(requestOf(filter));
        w.attribute(INET_DIAG_REQ_BYTECODE, bytecodeOf(filter));
      };
      const request = { type: SOCK_DIAG_BY_FAMILY, flags: NLM_F_DUMP, call: "sock_diag dump", about, write };
      socket.request(request, (body) => {
        if (body.length >= ANSWER_BYTES) found.push(socketIn(body, filter));
      });
      listed.add(about);
    }
    return found;
  });
}

/**
 * Finds the packets, sent from inside and so by way of lo, that a socket receives; undefined if this kernel has no sock_diag. A socket that
 * is bound to another interface is not found.
 */
function receivedOf(packets: readonly Receiving[]): readonly Receiving[] | undefined {
  const unknown = packets.filter(({ protocol }) => !listed.has(protocol));
  if (unknown.length > 0 && listSockets(unknown.map(narrowest)) === undefined) return undefined;
  return withSocket((socket) => packets.filter((packet) => isReceived(socket, packet)));
}

function narrowest({ protocol, state, port }: Receiving): SocketFilter {
  return { protocol, family: 4, state, end: "local", port };
}

function isReceived(socket: NetlinkSocket, { protocol, state, address, port }: Receiving): boolean {
  const request = requestOf({ protocol, family: address.length === 4 ? 4 : 6, state });
  request.writeUInt16BE(port, ID_OFFSET + LOCAL_END[protocol].port);
  request.set(address, ID_OFFSET + LOCAL_END[protocol].address);
  request.writeUInt32LE(LOOPBACK_INDEX, INTERFACE_OFFSET);
  request.fill(0xff, COOKIE_OFFSET, COOKIE_OFFSET + COOKIE_BYTES);
  const write: NetlinkRequest["write"] = (w) => w.raw(request);
  const call = "sock_diag lookup";
  let found = false;
  socket.request(
    { type: SOCK_DIAG_BY_FAMILY, flags: NLM_F_ACK, call, about: protocol, absent: NO_SOCKET, write },
    (body) => void (found ||= body[STATE] === STATE_NUMBERS[state]),
  );
  return found;
}

function withSocket<T>(use: (socket: NetlinkSocket) => T): T | undefined {
  let socket: NetlinkSocket | undefined;
  try {
    socket = new NetlinkSocket(memory, NETLINK_SOCK_DIAG);
    return use(socket);
  } catch (error) {
    if (error instanceof SystemFault && NO_LIST.has(error.code)) return undefined;
    throw error;
  } finally {
    socket?.close();
  }
}

function requestOf({ protocol, family, state }: Pick<SocketFilter, "protocol" | "family" | "state">): Buffer {
  const request = Buffer.alloc(REQUEST_BYTES);
  request.set([family === 4 ? AF_INET : AF_INET6, PROTOCOLS[protocol]]);
  request.writeUInt32LE(1 << STATE_NUMBERS[state], STATES_OFFSET);
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

const NET = "/proc/thread-self/net";
/** Socket states as /proc writes them. */
const STATES: Readonly<Record<SocketFilter["state"], string>> = { connected: "01", unconnected: "07", listening: "0A" };

/**
 * Lists the sockets of the thread's namespace that one of the filters matches: with one end at an address or port. Uses sock_diag, or /proc
 * if the kernel lacks it: /proc lists all sockets, so a namespace with very many cannot be read. Throws if there are more than the limit.
 */
export function socketsAt(...filters: readonly SocketFilter[]): readonly ListedSocket[] {
  return listSockets(filters) ?? filters.flatMap(socketsInProc);
}

/** Returns those of these packets that a socket receives. */
export function receivedBySockets(packets: readonly Receiving[]): readonly Receiving[] {
  return receivedOf(packets) ?? packets.filter(isReceivedInProc);
}

function isReceivedInProc({ address, ...where }: Receiving): boolean {
  const target = Buffer.from(address);
  return ([4, 6] as const)
    .flatMap((family) => socketsInProc({ ...where, family, end: "local" }))
    .some(({ local }) => local.address.equals(target) || local.address.every((byte) => byte === 0));
}

/** Lists sockets by reading /proc only. */
export function socketsInProc({ protocol, family, state, end, address, port }: SocketFilter): ListedSocket[] {
  const wanted = address === undefined ? undefined : Buffer.from(address);
  return (procText(`${NET}/${protocol}${family === 4 ? "" : "6"}`) ?? "")
    .split("\n")
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , , word]) => word === STATES[state])
    .map(([, local = "", remote = ""]) => ({ protocol, local: endOf(local), remote: endOf(remote) }))
    .filter((each) => {
      const { address: held, port: number } = each[end];
      return (port === undefined || number === port) && (wanted === undefined || isAt(held, wanted));
    });
}

/** The prefix of an IPv4-mapped IPv6 address. */
const MAPPED = Buffer.from("00000000000000000000ffff", "hex");

function isAt(held: Buffer, wanted: Buffer): boolean {
  return held.equals(wanted) || (wanted.length === 4 && held.equals(Buffer.concat([MAPPED, wanted])));
}

/** /proc prints addresses as 32-bit numbers in native byte order, and ports as numbers. */
function endOf(text: string): SocketEnd {
  const [address = "", port = ""] = text.split(":");
  const words = (address.match(/.{8}/g) ?? []).map((word) => Number.parseInt(word, 16));
  return { address: Buffer.from(Uint32Array.from(words).buffer), port: Number.parseInt(port, 16) };
}
