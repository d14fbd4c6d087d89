/**
 * RewrittenPort: port 53 of an address of the host as the rules write it. The sockets behind it have ports that the kernel chose, so
 * that dns11 needs no right to port 53; rules write the port of a query, and that of its reply, in the packet.
 */
import * as nft from "../../kernel/nft-constants.ts";
import {
  type PacketPart,
  type Rule,
  compare,
  loadPayload,
  networkU16,
  ofProtocol,
  setPayload,
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

export function matchAddress(family: IpFamily, which: "source" | "destination", address: Uint8Array): Rule {
  const { [which]: offset, length } = ADDRESSES[family];
  return [loadPayload({ base: nft.NETWORK_HEADER, offset, length }), compare(address)];
}

export function matchPort(protocol: Protocol, which: keyof typeof PORT_AT, port: number): Rule {
  return [ofProtocol(PROTOCOL_NUMBER[protocol]), loadPayload(portAt(which)), compare(networkU16(port))];
}

/** Zero is the checksum of a sender that makes none, and must stay so. */
export function matchNoChecksum(): Rule {
  const checksum = { base: nft.TRANSPORT_HEADER, offset: CHECKSUM_AT.udp, length: 2 };
  return [loadPayload(checksum), compare(networkU16(0))];
}

/** Without `checksumAt` the checksum stays as it is. */
export function writePort(which: keyof typeof PORT_AT, port: number, checksumAt: number | undefined): Rule {
  return setPayload(portAt(which), networkU16(port), checksumAt);
}

function portAt(which: keyof typeof PORT_AT): PacketPart {
  return { base: nft.TRANSPORT_HEADER, offset: PORT_AT[which], length: 2 };
}
