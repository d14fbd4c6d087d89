/**
 * Stale conntrack entries of a client that is gone. An entry outlives its conversation by minutes, and would redirect
 * the next client with the same address to the same destination.
 */
import { codeOf } from "../base/lib/fault.ts";
import { addressBytes, addressText } from "../base/model/address.ts";
import { AF_INET, AF_INET6, SystemFault } from "./libc.ts";
import { NLM_F_ACK, NLM_F_DUMP, NetlinkWriter, attributesIn } from "./netlink-message.ts";
import { NETLINK_NETFILTER, type NetlinkMemory, NetlinkSocket } from "./netlink-socket.ts";
import { GENERIC_MESSAGE_BYTES, genericMessage } from "./nfnetlink.ts";

/** linux/netfilter/nfnetlink_conntrack.h */
const SUBSYSTEM_CONNTRACK = 1;
const IPCTNL_MSG_CT_GET = 1;
const IPCTNL_MSG_CT_DELETE = 2;
const CTA_TUPLE_ORIGINAL = 1;
const CTA_TUPLE_REPLY = 2;
const CTA_ID = 12;
const CTA_ZONE = 18;
const CTA_FILTER = 25;
const CTA_TUPLE_IP = 1;
const CTA_TUPLE_PROTO = 2;
const CTA_IP_V4_DESTINATION = 2;
const CTA_PROTO_NUMBER = 1;
const CTA_PROTO_SOURCE_PORT = 2;
const CTA_PROTO_DESTINATION_PORT = 3;
const UDP = 17;
const PROTOCOL_NUMBERS = { udp: UDP, tcp: 6 } as const;
const CTA_IP_V4_SOURCE = 1;
const CTA_IP_V6_SOURCE = 3;
const CTA_IP_V6_DESTINATION = 4;
const CTA_FILTER_ORIGINAL_FLAGS = 1;
const CTA_FILTER_BY_SOURCE = 1;
const CTA_FILTER_BY_DESTINATION = 2;
/** Identifies an entry; includes the zone, because the same addresses and ports may occur in several zones. */
const IDENTITY = [CTA_TUPLE_ORIGINAL, CTA_ID, CTA_ZONE];

type ConntrackEntry = readonly (readonly [attribute: number, value: Buffer])[];

/**
 * Deletes every entry, in any zone, of a conversation that `address` began, in the thread's namespace. Returns their
 * number.
 */
export function deleteEntriesFrom(memory: NetlinkMemory, address: string): number {
  const source = bytesOf(address);
  const entries = withSocket(memory, (socket) => entriesFrom(socket, source, address));
  return withSocket(memory, (socket) => entries.filter((entry) => deleteEntry(socket, familyOf(source), entry)).length);
}

/** A socket for each request: one whose dump was aborted is unusable. */
function withSocket<T>(memory: NetlinkMemory, use: (socket: NetlinkSocket) => T): T {
  const socket = new NetlinkSocket(memory, NETLINK_NETFILTER);
  try {
    return use(socket);
  } finally {
    socket.close();
  }
}

/** Both ends of a conversation: enough to find its one entry in a zone. */
export interface Conversation {
  readonly protocol: "udp" | "tcp";
  readonly source: string;
  readonly sourcePort: number;
  readonly destination: string;
  readonly destinationPort: number;
}

/**
 * Deletes the entries of these conversations in any of these zones, in the thread's namespace. Each is found by its
 * hash; a table scan takes tens of milliseconds on a machine with a large table, however few entries match.
 */
export function deleteConversations(
  memory: NetlinkMemory,
  conversations: readonly Conversation[],
  zones: readonly number[],
): void {
  withSocket(memory, (socket) => {
    for (const conversation of conversations) {
      for (const zone of zones)
        deleteEntry(socket, familyOf(bytesOf(conversation.source)), entryOf(conversation, zone));
    }
  });
}

/** A tracked UDP conversation, with the address that answers instead of the original destination. */
export interface TrackedConversation {
  readonly family: number;
  /** The source of the replies. */
  readonly address: string;
  readonly port: number;
  readonly entry: ConntrackEntry;
}

/**
 * The tracked UDP conversations with an address and port, in the thread's namespace; only those in zone 0, where every packet
 * is that no rule puts into another zone.
 */
export function trackedConversationsTo(memory: NetlinkMemory, address: string, port: number): TrackedConversation[] {
  const wanted = bytesOf(address);
  const family = familyOf(wanted);
  const conversations: TrackedConversation[] = [];
  const write = (w: NetlinkWriter): void => {
    w.raw(genericMessage(family, 0));
    filterBy(w, CTA_IP_V4_DESTINATION, wanted, CTA_FILTER_BY_DESTINATION);
  };
  const visit = (body: Buffer): void => {
    if (!body.includes(wanted)) return;
    const attributes = attributesIn(body, GENERIC_MESSAGE_BYTES);
    if ((attributes.get(CTA_ZONE)?.readUInt16BE(0) ?? 0) !== 0) return;
    const original = tupleOf(attributes.get(CTA_TUPLE_ORIGINAL));
    if (original.protocol !== UDP || original.destinationPort !== port || !original.destination.equals(wanted)) return;
    const { source, sourcePort } = tupleOf(attributes.get(CTA_TUPLE_REPLY));
    conversations.push({ family, address: addressText(source), port: sourcePort, entry: identityOf(attributes) });
  };
  withSocket(memory, (socket) => dump(socket, address, write, visit));
  return conversations;
}

/**
 * Since Linux 5.8 the kernel can filter: a namespace may have many thousands of entries. For IPv6 the kernel's filter drops the entries
 * that match, so none is used there.
 */
function filterBy(w: NetlinkWriter, attribute: number, address: Uint8Array, flag: number): void {
  if (familyOf(address) !== AF_INET) return;
  w.nested(CTA_TUPLE_ORIGINAL, () => w.nested(CTA_TUPLE_IP, () => w.attribute(attribute, address)));
  w.nested(CTA_FILTER, () => w.nativeU32(CTA_FILTER_ORIGINAL_FLAGS, flag));
}

/** A dump that exceeds the limit ends after the entries read so far. */
function dump(
  socket: NetlinkSocket,
  about: string,
  write: (writer: NetlinkWriter) => void,
  visit: (body: Buffer) => void,
): void {
  try {
    const type = typeOf(IPCTNL_MSG_CT_GET);
    socket.request({ type, flags: NLM_F_DUMP, call: "conntrack dump", about, write }, visit);
  } catch (error) {
    if (codeOf(error) !== "TOO_MANY") throw error;
  }
}

/** Deletes these entries, in the thread's namespace; returns how many still existed. */
export function deleteTracked(memory: NetlinkMemory, remembered: readonly TrackedConversation[]): number {
  return withSocket(
    memory,
    (socket) => remembered.filter(({ family, entry }) => deleteEntry(socket, family, entry)).length,
  );
}

interface Tuple {
  readonly protocol: number;
  readonly source: Buffer;
  readonly destination: Buffer;
  readonly sourcePort: number;
  readonly destinationPort: number;
}

function tupleOf(bytes: Buffer | undefined): Tuple {
  const tuple = attributesIn(bytes ?? Buffer.alloc(0));
  const ip = attributesIn(tuple.get(CTA_TUPLE_IP) ?? Buffer.alloc(0));
  const proto = attributesIn(tuple.get(CTA_TUPLE_PROTO) ?? Buffer.alloc(0));
  return {
    protocol: proto.get(CTA_PROTO_NUMBER)?.readUInt8(0) ?? 0,
    source: ip.get(CTA_IP_V4_SOURCE) ?? ip.get(CTA_IP_V6_SOURCE) ?? Buffer.alloc(0),
    destination: ip.get(CTA_IP_V4_DESTINATION) ?? ip.get(CTA_IP_V6_DESTINATION) ?? Buffer.alloc(0),
    sourcePort: proto.get(CTA_PROTO_SOURCE_PORT)?.readUInt16BE(0) ?? 0,
    destinationPort: proto.get(CTA_PROTO_DESTINATION_PORT)?.readUInt16BE(0) ?? 0,
  };
}

function entriesFrom(socket: NetlinkSocket, source: Buffer, about: string): ConntrackEntry[] {
  const family = familyOf(source);
  const sourceType = family === AF_INET ? CTA_IP_V4_SOURCE : CTA_IP_V6_SOURCE;
  const entries: ConntrackEntry[] = [];
  const write = (w: NetlinkWriter): void => {
    w.raw(genericMessage(family, 0));
    filterBy(w, CTA_IP_V4_SOURCE, source, CTA_FILTER_BY_SOURCE);
  };
  dump(socket, about, write, (body) => {
    // Most entries do not contain this address and are not parsed.
    if (!body.includes(source)) return;
    const attributes = attributesIn(body, GENERIC_MESSAGE_BYTES);
    const tuple = attributesIn(attributes.get(CTA_TUPLE_ORIGINAL) ?? Buffer.alloc(0));
    const from = attributesIn(tuple.get(CTA_TUPLE_IP) ?? Buffer.alloc(0)).get(sourceType);
    if (from?.equals(source) === true) entries.push(identityOf(attributes));
  });
  return entries;
}

function entryOf(
  { protocol, source, sourcePort, destination, destinationPort }: Conversation,
  zone: number,
): ConntrackEntry {
  const isIpv4 = bytesOf(source).length === 4;
  const tuple = new NetlinkWriter();
  tuple.nested(CTA_TUPLE_IP, () => {
    tuple.attribute(isIpv4 ? CTA_IP_V4_SOURCE : CTA_IP_V6_SOURCE, bytesOf(source));
    tuple.attribute(isIpv4 ? CTA_IP_V4_DESTINATION : CTA_IP_V6_DESTINATION, bytesOf(destination));
  });
  tuple.nested(CTA_TUPLE_PROTO, () => {
    tuple.attribute(CTA_PROTO_NUMBER, Buffer.of(PROTOCOL_NUMBERS[protocol]));
    tuple.attribute(CTA_PROTO_SOURCE_PORT, inNetworkOrder(sourcePort));
    tuple.attribute(CTA_PROTO_DESTINATION_PORT, inNetworkOrder(destinationPort));
  });
  return [
    [CTA_TUPLE_ORIGINAL, tuple.bytes],
    [CTA_ZONE, inNetworkOrder(zone)],
  ];
}

function inNetworkOrder(value: number): Buffer {
  return Buffer.of(value >> 8, value & 0xff);
}

function bytesOf(address: string): Buffer {
  const bytes = addressBytes(address);
  if (bytes === undefined) throw new TypeError(`Not an IP address: "${address}"`);
  return Buffer.from(bytes);
}

/** Copied, because the next replies are received into the same memory. */
function identityOf(attributes: ReadonlyMap<number, Buffer>): ConntrackEntry {
  return IDENTITY.flatMap((attribute) => {
    const value = attributes.get(attribute);
    return value === undefined ? [] : [[attribute, Buffer.from(value)] as const];
  });
}

/** Returns whether it still existed: it may have timed out. */
function deleteEntry(socket: NetlinkSocket, family: number, entry: ConntrackEntry): boolean {
  const write = (w: NetlinkWriter): void => {
    w.raw(genericMessage(family, 0));
    for (const [attribute, value] of entry) w.attribute(attribute, value);
  };
  const type = typeOf(IPCTNL_MSG_CT_DELETE);
  try {
    socket.request({ type, flags: NLM_F_ACK, call: "conntrack delete", about: "an entry", write });
    return true;
  } catch (error) {
    if (error instanceof SystemFault && error.code === "ENOENT") return false;
    throw error;
  }
}

function familyOf(address: Uint8Array): number {
  return address.length === 4 ? AF_INET : AF_INET6;
}

function typeOf(command: number): number {
  return (SUBSYSTEM_CONNTRACK << 8) | command;
}
