// Ethernet frames byte by byte, as root in a container can send them, and sockets that send and see them.
import {
  SOCK_RAW,
  addressOf,
  bindTo,
  closeQuietly,
  forceReceiveBuffer,
  optionBytes,
  receive,
  sendTo,
  socket,
} from "../../../src/kernel/libc.ts";
import { addressBytes } from "../../../src/base/model/address.ts";

const AF_PACKET = 17;
const ALL_PROTOCOLS = 0x0003;
const FRAME_BYTES_MAX = 65_536;
const RECEIVE_BYTES = 16 * 1024 * 1024;
const SOL_PACKET = 263;
const PACKET_STATISTICS = 6;

export interface FrameParts {
  readonly fromMac: string;
  readonly toMac: string;
  readonly from: string;
  readonly to: string;
  readonly protocol: number;
  // What follows the IP header.
  readonly body: Buffer;
  // Flags and offset of a fragment, for IPv4.
  readonly fragment?: number;
  // Of IPv4, in words of four bytes.
  readonly options?: Buffer;
  readonly vlan?: number;
  readonly etherType?: number;
}

export function macBytes(text: string): Buffer {
  return Buffer.from(text.replaceAll(":", ""), "hex");
}

export function frame(parts: FrameParts): Buffer {
  const [from, to] = [bytesOf(parts.from), bytesOf(parts.to)];
  const isIpv4 = from.length === 4;
  const type = Buffer.alloc(2);
  type.writeUInt16BE(parts.etherType ?? (isIpv4 ? 0x0800 : 0x86dd));
  const tag = Buffer.alloc(4);
  tag.writeUInt16BE(0x8100);
  tag.writeUInt16BE(parts.vlan ?? 0, 2);
  const packet = isIpv4 ? ipv4(parts, from, to) : ipv6(parts, from, to);
  return Buffer.concat([
    macBytes(parts.toMac),
    macBytes(parts.fromMac),
    ...(parts.vlan === undefined ? [] : [tag]),
    type,
    packet,
  ]);
}

function ipv4(parts: FrameParts, from: Buffer, to: Buffer): Buffer {
  const options = parts.options ?? Buffer.alloc(0);
  const header = Buffer.concat([Buffer.alloc(20), options]);
  header[0] = 0x45 + options.length / 4;
  header.writeUInt16BE(header.length + parts.body.length, 2);
  header.writeUInt16BE(0x1234, 4);
  header.writeUInt16BE(parts.fragment ?? 0, 6);
  header[8] = 64;
  header[9] = parts.protocol;
  header.set(from, 12);
  header.set(to, 16);
  header.writeUInt16BE(checksum([header]), 10);
  return Buffer.concat([header, parts.body]);
}

function ipv6(parts: FrameParts, from: Buffer, to: Buffer): Buffer {
  const header = Buffer.alloc(40);
  header[0] = 0x60;
  header.writeUInt16BE(parts.body.length, 4);
  header[6] = parts.protocol;
  header[7] = 255;
  header.set(from, 8);
  header.set(to, 24);
  return Buffer.concat([header, parts.body]);
}

// A UDP or TCP body with a right checksum: connection tracking discards others.
export function udpBody(from: string, to: string, port: number, payload: string): Buffer {
  const body = Buffer.concat([Buffer.alloc(8), Buffer.from(payload)]);
  body.writeUInt16BE(40_000, 0);
  body.writeUInt16BE(port, 2);
  body.writeUInt16BE(body.length, 4);
  return withChecksum(from, to, 17, body, 6);
}

export const TCP_FLAGS = { syn: 0x02, data: 0x18 } as const;

export function tcpBody(from: string, to: string, port: number, flags: number, payload: string): Buffer {
  const body = Buffer.concat([Buffer.alloc(20), Buffer.from(payload)]);
  body.writeUInt16BE(40_001, 0);
  body.writeUInt16BE(port, 2);
  body.writeUInt32BE(1, 4);
  body.writeUInt32BE(flags === TCP_FLAGS.syn ? 0 : 1, 8);
  body[12] = 5 << 4;
  body[13] = flags;
  body.writeUInt16BE(1024, 14);
  return withChecksum(from, to, 6, body, 16);
}

// An echo request, or any other ICMP message with a payload.
export function icmpBody(type: number, payload: string | Buffer, versionSix?: { from: string; to: string }): Buffer {
  const body = Buffer.concat([Buffer.alloc(8), Buffer.from(payload)]);
  body[0] = type;
  if (versionSix !== undefined) return withChecksum(versionSix.from, versionSix.to, 58, body, 2);
  body.writeUInt16BE(checksum([body]), 2);
  return body;
}

export function arpFrame(parts: { fromMac: string; senderMac: string; sender: string; target: string }): Buffer {
  const arp = Buffer.alloc(28 + 18);
  arp.writeUInt16BE(1, 0);
  arp.writeUInt16BE(0x0800, 2);
  arp.set([6, 4], 4);
  arp.writeUInt16BE(2, 6);
  arp.set(macBytes(parts.senderMac), 8);
  arp.set(bytesOf(parts.sender), 14);
  arp.set(bytesOf(parts.target), 24);
  return Buffer.concat([Buffer.alloc(6, 0xff), macBytes(parts.fromMac), Buffer.of(0x08, 0x06), arp]);
}

function withChecksum(from: string, to: string, protocol: number, body: Buffer, at: number): Buffer {
  const tail = Buffer.alloc(4);
  tail.writeUInt16BE(body.length, 0);
  tail.writeUInt16BE(protocol, 2);
  body.writeUInt16BE(checksum([bytesOf(from), bytesOf(to), tail, body]), at);
  return body;
}

function checksum(parts: readonly Buffer[]): number {
  let sum = 0;
  for (const part of parts) {
    for (let at = 0; at < part.length; at += 2) sum += ((part[at] ?? 0) << 8) | (part[at + 1] ?? 0);
  }
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}

function bytesOf(address: string): Buffer {
  const bytes = addressBytes(address);
  if (bytes === undefined) throw new TypeError(`not an address: ${address}`);
  return Buffer.from(bytes);
}

// A socket to all frames of one interface, made in the thread's namespace.
export class PacketSocket {
  readonly #fd: number;
  readonly #to: Buffer;
  readonly #memory = Buffer.allocUnsafeSlow(FRAME_BYTES_MAX);

  constructor(interfaceIndex: number) {
    const protocol = ((ALL_PROTOCOLS & 0xff) << 8) | (ALL_PROTOCOLS >> 8);
    this.#fd = socket(AF_PACKET, SOCK_RAW, protocol);
    forceReceiveBuffer(this.#fd, RECEIVE_BYTES);
    this.#to = Buffer.alloc(20);
    this.#to.writeUInt16LE(AF_PACKET, 0);
    this.#to.writeUInt16BE(ALL_PROTOCOLS, 2);
    this.#to.writeInt32LE(interfaceIndex, 4);
    bindTo(this.#fd, this.#to, "packet socket");
  }

  send(bytes: Uint8Array): void {
    if (sendTo(this.#fd, bytes, this.#to) < 0) throw new Error("cannot send a frame");
  }

  // What has arrived, or left, since the last call.
  frames(): Buffer[] {
    const found: Buffer[] = [];
    for (;;) {
      const length = receive(this.#fd, addressOf(this.#memory), FRAME_BYTES_MAX);
      if (length < 0) return found;
      found.push(Buffer.from(this.#memory.subarray(0, length)));
    }
  }

  // Frames that it had no room for, since the last call.
  dropped(): number {
    return optionBytes(this.#fd, SOL_PACKET, PACKET_STATISTICS, Buffer.alloc(8), "PACKET_STATISTICS").readUInt32LE(4);
  }

  close(): void {
    closeQuietly(this.#fd);
  }
}
