/**
 * RewrittenPort: port 53 of an address of the host as the rules write it. The sockets behind it have ports that the kernel chose, so
 * that dns11 needs no right to port 53; rules write the port of a query, and that of its reply, in the packet.
 */
import type { NetlinkWriter } from "../../kernel/netlink-message.ts";
import * as nft from "../../kernel/nft-constants.ts";
import {
  compare,
  expression,
  loadImmediate,
  loadPayload,
  networkU16,
  ofProtocol,
  verdict,
} from "../../kernel/nft-expressions.ts";
import { ADDRESSES, PROTOCOL_NUMBER } from "./nft-commands.ts";
import type { IpFamily, ListenAddress, Protocol } from "./plan.ts";

export const DNS_PORT = 53;
export const PROTOCOLS: readonly Protocol[] = ["udp", "tcp"];
/** Offsets of a port in a transport header, and of the checksums. */
const PORT_AT = { source: 0, destination: 2 } as const;
export const CHECKSUM_AT: Readonly<Record<Protocol, number>> = { udp: 6, tcp: 16 };

export function portOf({ udpPort, tcpPort }: ListenAddress, protocol: Protocol): { protocol: Protocol; port: number } {
  return { protocol, port: protocol === "udp" ? udpPort : tcpPort };
}

export function matchAddress(
  w: NetlinkWriter,
  family: IpFamily,
  which: "source" | "destination",
  address: Uint8Array,
): void {
  const { [which]: offset, length } = ADDRESSES[family];
  loadPayload(w, { base: nft.NETWORK_HEADER, offset, length });
  compare(w, address);
}

export function matchPort(w: NetlinkWriter, protocol: Protocol, which: keyof typeof PORT_AT, port: number): void {
  ofProtocol(w, PROTOCOL_NUMBER[protocol]);
  loadPayload(w, { base: nft.TRANSPORT_HEADER, offset: PORT_AT[which], length: 2 });
  compare(w, networkU16(port));
}

/** Zero is the checksum of a sender that makes none, and must stay so. */
export function matchNoChecksum(w: NetlinkWriter): void {
  loadPayload(w, { base: nft.TRANSPORT_HEADER, offset: CHECKSUM_AT.udp, length: 2 });
  compare(w, networkU16(0));
}

/** Without `checksumAt` it stays as it is. */
export function writePort(
  w: NetlinkWriter,
  which: keyof typeof PORT_AT,
  port: number,
  checksumAt: number | undefined,
): void {
  loadImmediate(w, nft.NFT_REG_1, networkU16(port));
  expression(w, "payload", () => {
    w.u32(nft.NFTA_PAYLOAD_SREG, nft.NFT_REG_1);
    w.u32(nft.NFTA_PAYLOAD_BASE, nft.TRANSPORT_HEADER);
    w.u32(nft.NFTA_PAYLOAD_OFFSET, PORT_AT[which]);
    w.u32(nft.NFTA_PAYLOAD_LEN, 2);
    if (checksumAt === undefined) return;
    w.u32(nft.NFTA_PAYLOAD_CSUM_TYPE, nft.NFT_PAYLOAD_CSUM_INET);
    w.u32(nft.NFTA_PAYLOAD_CSUM_OFFSET, checksumAt);
  });
}

/** Of a limit expression: packets in a second, and at once. */
export function writeLimit(w: NetlinkWriter, rate: number, burst: number): void {
  w.attribute(nft.NFTA_LIMIT_RATE, networkU64(rate));
  w.attribute(nft.NFTA_LIMIT_UNIT, networkU64(1));
  w.u32(nft.NFTA_LIMIT_BURST, burst);
}

/** Counts the packet, and drops it. */
export function dropCounted(w: NetlinkWriter): void {
  expression(w, "counter", () => undefined);
  verdict(w, nft.NF_DROP);
}

function networkU64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(value));
  return bytes;
}
