// Owns packets for the program that answers in the kernel: a message as a socket sends it, or damaged as only a raw socket
// can; and what may become of each, read from its bytes alone.

import { PROCESS_PORT } from "../kernel-program.ts";
import { type PacketParts, aPacket } from "../../../support/packets/udp-packet.ts";
import type { Random } from "../../../fuzz/random.ts";

const [RESOLVER, CLIENT] = [
  [127, 0, 0, 11],
  [127, 0, 0, 1],
] as const;
const [IP_AT, UDP_AT_MIN] = [14, 34];
// The kernel runs no test with a packet that ends in its IP header.
const [IPV4_BYTES_MIN, IPV6, IPV6_BYTES_MIN] = [34, 0x86dd, 54];
const HEADERS_BYTES = 42;
const UDP_BYTES = 8;
const [DNS_PORT, UDP] = [53, 17];
const FRAGMENT_BITS = 0x3fff;
const DAMAGED_ONCE_IN = 3;

// What the program has to do with a packet. A plain one may be answered; it may also be passed, as the others of 53 must.
export type Fate = "plain" | "passed" | "reply" | "untouched";

type Damage = (random: Random) => PacketParts;

const DAMAGES: readonly Damage[] = [
  (random) => ({ ipLengthError: random.below(200) - 100 }),
  (random) => ({ udpLengthError: random.below(200) - 100 }),
  (random) => ({ ipLengthError: 4, udpLengthError: random.below(9) - 4, tail: Buffer.alloc(4) }),
  (random) => ({ tail: Buffer.alloc(1 + random.below(64), random.below(256)) }),
  (random) => ({ options: Buffer.alloc(4 * (1 + random.below(10)), random.below(256)) }),
  (random) => ({ fragment: random.below(0x1_0000) }),
  (random) => ({ protocol: random.below(256) }),
  (random) => ({ etherType: random.pick([IPV6, 0x8100, 0x0806, random.below(0x1_0000)]) }),
  (random) => ({ to: [127, 0, 0, random.below(256)] }),
  (random) => ({ destinationPort: random.pick([54, 0, PROCESS_PORT, random.below(0x1_0000)]) }),
  (random) => ({ sourcePort: random.pick([0, 53, PROCESS_PORT, random.below(0x1_0000)]) }),
  (random) => ({
    from: RESOLVER,
    to: CLIENT,
    sourcePort: random.pick([PROCESS_PORT, 53]),
    destinationPort: random.below(0x1_0000),
  }),
  () => ({ from: RESOLVER, sourcePort: PROCESS_PORT }),
];

// A packet with the message, often undamaged.
export function packetOf(payload: Buffer, random: Random): Buffer {
  if (!random.once(DAMAGED_ONCE_IN)) return withChecksum(aPacket({ payload }), random);
  const packet = withChecksum(aPacket({ payload, ...random.pick(DAMAGES)(random) }), random);
  if (random.once(4)) flipBits(packet, random);
  const least = packet.readUInt16BE(12) === IPV6 ? IPV6_BYTES_MIN : IPV4_BYTES_MIN;
  if (packet.length < least) return Buffer.concat([packet, Buffer.alloc(least - packet.length)]);
  if (!random.once(4)) return packet;
  return packet.subarray(0, Math.max(least, random.below(packet.length)));
}

function withChecksum(packet: Buffer, random: Random): Buffer {
  // Zero means none. The program changes any other by the difference, as it does not know whether it is right.
  const at = UDP_AT_MIN + 6;
  if (random.once(3) && packet.length >= at + 2) packet.writeUInt16BE(random.below(0x1_0000), at);
  return packet;
}

function flipBits(packet: Buffer, random: Random): void {
  for (let count = 1 + random.below(3); count > 0; count--) {
    const at = random.below(Math.min(HEADERS_BYTES, packet.length));
    packet[at] = (packet[at] as number) ^ (1 << random.below(8));
  }
}

export function fateOf(packet: Buffer): Fate {
  if (packet.length < UDP_AT_MIN || packet.readUInt16BE(12) !== 0x0800) return "untouched";
  const words = (packet[IP_AT] as number) & 15;
  const udpAt = IP_AT + words * 4;
  const isFragment = (packet.readUInt16BE(IP_AT + 6) & FRAGMENT_BITS) !== 0;
  if (words < 5 || packet[IP_AT + 9] !== UDP || isFragment || udpAt + UDP_BYTES > packet.length) return "untouched";
  const isAt = (at: number, address: readonly number[]): boolean => address.every((byte, i) => packet[at + i] === byte);
  const [source, destination] = [packet.readUInt16BE(udpAt), packet.readUInt16BE(udpAt + 2)];
  if (isAt(IP_AT + 12, RESOLVER) && source === PROCESS_PORT) return "reply";
  if (!isAt(IP_AT + 16, RESOLVER) || destination !== DNS_PORT) return "untouched";
  const isWhole =
    packet[IP_AT] === 0x45 &&
    source !== 0 &&
    packet.readUInt16BE(IP_AT + 2) === packet.length - IP_AT &&
    packet.readUInt16BE(udpAt + 4) === packet.length - udpAt;
  return isWhole ? "plain" : "passed";
}

// The packet with another port, as the program leaves it where it does not answer.
export function withPort(packet: Buffer, fate: Exclude<Fate, "plain">): Buffer {
  if (fate === "untouched") return packet;
  const udpAt = IP_AT + ((packet[IP_AT] as number) & 15) * 4;
  const [at, to] = fate === "reply" ? [udpAt, DNS_PORT] : [udpAt + 2, PROCESS_PORT];
  const result = Buffer.from(packet);
  const [from, checksum] = [packet.readUInt16BE(at), packet.readUInt16BE(udpAt + 6)];
  result.writeUInt16BE(to, at);
  if (checksum !== 0) result.writeUInt16BE(changedChecksum(checksum, from, to), udpAt + 6);
  return result;
}

// RFC 1624; zero would mean that there is none.
function changedChecksum(checksum: number, from: number, to: number): number {
  let sum = (~checksum & 0xffff) + (~from & 0xffff) + to;
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff || 0xffff;
}
