// A UDP packet over IPv4 as it arrives at lo, with its Ethernet header, for a program that runs there; and what such a
// program made of it.

const ETHERNET_BYTES = 14;
const UDP_BYTES = 8;
const ADDRESSES_AT = ETHERNET_BYTES + 12;

export interface PacketParts {
  readonly payload?: Buffer;
  readonly from?: readonly number[];
  readonly to?: readonly number[];
  readonly sourcePort?: number;
  readonly destinationPort?: number;
  // IP options, in words of four bytes.
  readonly options?: Buffer;
  // Flags and offset of a fragment.
  readonly fragment?: number;
  readonly protocol?: number;
  readonly etherType?: number;
  // Added to the true lengths.
  readonly ipLengthError?: number;
  readonly udpLengthError?: number;
  readonly tail?: Buffer;
}

export const CLIENT_PORT = 40_000;

export function aPacket(parts: PacketParts = {}): Buffer {
  const { payload = Buffer.alloc(0), options = Buffer.alloc(0), tail = Buffer.alloc(0) } = parts;
  const udpAt = ETHERNET_BYTES + 20 + options.length;
  const packet = Buffer.concat([Buffer.alloc(udpAt + UDP_BYTES), payload, tail]);
  packet.writeUInt16BE(parts.etherType ?? 0x0800, 12);
  packet[ETHERNET_BYTES] = 0x45 + options.length / 4;
  packet.writeUInt16BE((udpAt - ETHERNET_BYTES + UDP_BYTES + payload.length + (parts.ipLengthError ?? 0)) & 0xffff, 16);
  packet.writeUInt16BE(parts.fragment ?? 0, 20);
  packet[22] = 64;
  packet[23] = parts.protocol ?? 17;
  packet.set(parts.from ?? [127, 0, 0, 1], ADDRESSES_AT);
  packet.set(parts.to ?? [127, 0, 0, 11], ADDRESSES_AT + 4);
  options.copy(packet, ETHERNET_BYTES + 20);
  packet.writeUInt16BE(parts.sourcePort ?? CLIENT_PORT, udpAt);
  packet.writeUInt16BE(parts.destinationPort ?? 53, udpAt + 2);
  packet.writeUInt16BE((UDP_BYTES + payload.length + (parts.udpLengthError ?? 0)) & 0xffff, udpAt + 4);
  packet.writeUInt16BE(ipChecksum(packet, udpAt), ETHERNET_BYTES + 10);
  return packet;
}

export interface ReadPacket {
  readonly from: string;
  readonly to: string;
  readonly sourcePort: number;
  readonly destinationPort: number;
  readonly payload: Buffer;
  // The header's checksum and the lengths are right.
  readonly isSound: boolean;
}

// Of a packet without IP options.
export function readPacket(packet: Buffer): ReadPacket {
  const udpAt = ETHERNET_BYTES + 20;
  const address = (at: number): string => [...packet.subarray(at, at + 4)].join(".");
  const isSound =
    ipChecksum(packet, udpAt) === 0 &&
    packet.readUInt16BE(16) === packet.length - ETHERNET_BYTES &&
    packet.readUInt16BE(udpAt + 4) === packet.length - udpAt;
  return {
    from: address(ADDRESSES_AT),
    to: address(ADDRESSES_AT + 4),
    sourcePort: packet.readUInt16BE(udpAt),
    destinationPort: packet.readUInt16BE(udpAt + 2),
    payload: packet.subarray(udpAt + UDP_BYTES),
    isSound,
  };
}

function ipChecksum(packet: Buffer, end: number): number {
  let sum = 0;
  for (let at = ETHERNET_BYTES; at < end; at += 2) sum += packet.readUInt16BE(at);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}
