/**
 * Matches: what the rules of policies look at, as expressions. Where a packet goes is judged by where it was sent to, before
 * a port of the machine or a service of the cluster translated it: that is what the name was answered with.
 */
import type { NetlinkWriter } from "../../kernel/netlink-message.ts";
import { NFPROTO_IPV4, NFPROTO_IPV6 } from "../../kernel/nfnetlink.ts";
import * as nft from "../../kernel/nft-constants.ts";
import {
  compare,
  loadDestinationType,
  loadImmediate,
  loadMeta,
  loadPayload,
  loadTracked,
  lookUp,
  maskBytes,
  nativeU32,
  networkU16,
  setTracked,
  updateSet,
  ofProtocol,
} from "../../kernel/nft-expressions.ts";
import { RTN_UNICAST } from "../../kernel/rtnetlink-constants.ts";
import type { AddressBlock } from "../../base/model/address.ts";
import type { AddressLength } from "./layout.ts";

export const PROTOCOLS = { icmp: 1, tcp: 6, udp: 17, icmpv6: 58 } as const;
export const ETHER_TYPES = { 4: 0x0800, 16: 0x86dd, arp: 0x0806 } as const;
const FAMILIES = { 4: NFPROTO_IPV4, 16: NFPROTO_IPV6 } as const;
const SOURCE_AT = { 4: 12, 16: 8 } as const;
const DESTINATION_AT = { 4: 16, 16: 24 } as const;
const MAC_BYTES = 6;
/** IFNAMSIZ, with the zero at its end. */
const LINK_NAME_BYTES = 16;
const LABEL_BYTES = 16;

export function ofFamily(w: NetlinkWriter, length: AddressLength): void {
  loadMeta(w, nft.NFT_META_NFPROTO);
  compare(w, Buffer.of(FAMILIES[length]));
}

/** Not for the machine itself. */
export function passesThrough(w: NetlinkWriter): void {
  loadMeta(w, nft.NFT_META_OIF);
  compare(w, nativeU32(0), nft.NFT_CMP_NEQ);
}

/** For the machine itself. */
export function arrivesHere(w: NetlinkWriter): void {
  loadMeta(w, nft.NFT_META_OIF);
  compare(w, nativeU32(0));
}

/** It came in by the link of this name, which need not exist yet. */
export function enteredBy(w: NetlinkWriter, link: string): void {
  const name = Buffer.alloc(LINK_NAME_BYTES);
  name.write(link, "latin1");
  loadMeta(w, nft.NFT_META_IIFNAME);
  compare(w, name);
}

/** In any of these states of connection tracking. */
export function inState(w: NetlinkWriter, states: number): void {
  loadTracked(w, nft.NFT_CT_STATE);
  maskBytes(w, nativeU32(states));
  compare(w, nativeU32(0), nft.NFT_CMP_NEQ);
}

/** Sent by the end that the connection was opened to. */
export function isReply(w: NetlinkWriter): void {
  loadTracked(w, nft.NFT_CT_DIRECTION);
  compare(w, Buffer.of(nft.IP_CT_DIR_REPLY));
}

/** A published port or a service of a cluster has given it another destination. */
export function isTranslated(w: NetlinkWriter): void {
  compareTranslation(w, nft.NFT_CMP_NEQ);
}

/** It still has the destination that it was sent to. */
export function isUntranslated(w: NetlinkWriter): void {
  compareTranslation(w, nft.NFT_CMP_EQ);
}

function compareTranslation(w: NetlinkWriter, operation: number): void {
  loadTracked(w, nft.NFT_CT_STATUS);
  maskBytes(w, nativeU32(nft.IPS_DST_NAT));
  compare(w, nativeU32(0), operation);
}

/** The address that it has now belongs to one host elsewhere: it is not the machine's, no group's, and no network's. */
export function goesElsewhere(w: NetlinkWriter): void {
  loadDestinationType(w);
  compare(w, nativeU32(RTN_UNICAST));
}

/**
 * Labels of connections: a policy has let it through; one that only records has; it was sent to an address that is not the
 * machine's. They are the last ones of all, because others count from the first.
 */
export const LABELS = { allowed: 1 << 6, recorded: 1 << 7, elsewhere: 1 << 5 } as const;

function labelBits(labels: number): Buffer {
  const bits = Buffer.alloc(LABEL_BYTES);
  bits[LABEL_BYTES - 1] = labels;
  return bits;
}

/** Of a connection that has one of these labels. */
export function hasLabel(w: NetlinkWriter, labels: number): void {
  compareLabels(w, labels, nft.NFT_CMP_NEQ);
}

/** Of a connection that has none of these labels. */
export function lacksLabel(w: NetlinkWriter, labels: number): void {
  compareLabels(w, labels, nft.NFT_CMP_EQ);
}

function compareLabels(w: NetlinkWriter, labels: number, operation: number): void {
  loadTracked(w, nft.NFT_CT_LABELS);
  maskBytes(w, labelBits(labels));
  compare(w, Buffer.alloc(LABEL_BYTES), operation);
}

/** A connection that is older than the first rule with a label has no room for one: each packet of it is judged. */
export function setLabel(w: NetlinkWriter, label: number): void {
  loadImmediate(w, nft.NFT_REG_1, labelBits(label));
  setTracked(w, nft.NFT_CT_LABELS);
}

export function loadSource(w: NetlinkWriter, length: AddressLength): void {
  loadPayload(w, { base: nft.NETWORK_HEADER, offset: SOURCE_AT[length], length });
}

function loadSentTo(w: NetlinkWriter, length: AddressLength): void {
  const key = length === 4 ? nft.NFT_CT_DST_IP : nft.NFT_CT_DST_IP6;
  loadTracked(w, key, nft.IP_CT_DIR_ORIGINAL);
}

function loadPort(w: NetlinkWriter, register?: number): void {
  loadTracked(w, nft.NFT_CT_PROTO_DST, nft.IP_CT_DIR_ORIGINAL, register);
}

/** Loads what a key of a port set consists of. */
function loadPortKey(w: NetlinkWriter, length: AddressLength): void {
  loadSentTo(w, length);
  const next = nft.NFT_REG32_00 + length / 4;
  loadMeta(w, nft.NFT_META_L4PROTO, next);
  loadPort(w, next + 1);
}

/** Sent to an address of the set. */
export function sentToAddressIn(w: NetlinkWriter, set: string, length: AddressLength): void {
  ofFamily(w, length);
  loadSentTo(w, length);
  lookUp(w, set);
}

/** Sent to an address with protocol and port of the set. */
export function sentToPortIn(w: NetlinkWriter, set: string, length: AddressLength): void {
  ofFamily(w, length);
  loadPortKey(w, length);
  lookUp(w, set);
}

/** Records where it was sent to. */
export function recordIn(w: NetlinkWriter, set: string, length: AddressLength, timeoutMs: number): void {
  ofFamily(w, length);
  loadPortKey(w, length);
  updateSet(w, set, timeoutMs);
}

function inBlock(w: NetlinkWriter, { bytes, prefix }: AddressBlock): void {
  if (prefix === 0) return;
  if (prefix < bytes.length * 8) maskBytes(w, maskOf(bytes.length, prefix));
  compare(w, bytes);
}

function maskOf(length: number, prefix: number): Uint8Array {
  return Uint8Array.from({ length }, (_, index) => (0xff00 >> Math.max(0, Math.min(8, prefix - index * 8))) & 0xff);
}

export function sentTo(w: NetlinkWriter, block: AddressBlock, protocol?: number, port?: number): void {
  const length = lengthOf(block.bytes);
  ofFamily(w, length);
  if (block.prefix > 0) loadSentTo(w, length);
  inBlock(w, block);
  if (protocol !== undefined) ofProtocol(w, protocol);
  if (port === undefined) return;
  loadPort(w);
  compare(w, networkU16(port));
}

/** By the packet itself: neighbour messages are not tracked. */
export function isDestinedTo(w: NetlinkWriter, block: AddressBlock): void {
  const length = lengthOf(block.bytes);
  ofFamily(w, length);
  loadPayload(w, { base: nft.NETWORK_HEADER, offset: DESTINATION_AT[length], length });
  inBlock(w, block);
}

export function fromBlock(w: NetlinkWriter, block: AddressBlock): void {
  const length = lengthOf(block.bytes);
  ofFamily(w, length);
  if (block.prefix > 0) loadSource(w, length);
  inBlock(w, block);
}

export function lengthOf(address: Uint8Array): AddressLength {
  return address.length === 4 ? 4 : 16;
}

/** What the frame carries, by its own word: of a tagged one, that it is tagged. */
export function ofEtherType(w: NetlinkWriter, type: number): void {
  loadPayload(w, { base: nft.LINK_HEADER, offset: 2 * MAC_BYTES, length: 2 });
  compare(w, networkU16(type));
}

export function fromMac(w: NetlinkWriter, mac: Uint8Array, operation?: number): void {
  loadPayload(w, { base: nft.LINK_HEADER, offset: MAC_BYTES, length: MAC_BYTES });
  compare(w, mac, operation);
}

export function toMac(w: NetlinkWriter, mac: Uint8Array, operation?: number): void {
  loadPayload(w, { base: nft.LINK_HEADER, offset: 0, length: MAC_BYTES });
  compare(w, mac, operation);
}
