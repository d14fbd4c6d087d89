/**
 * Matches: what the rules of policies look at, as expressions. Where a packet goes is judged by where it was sent to, before
 * a port of the machine or a service of the cluster translated it: that is what the name was answered with.
 */
import { NFPROTO_IPV4, NFPROTO_IPV6 } from "../../../kernel/nfnetlink.ts";
import * as nft from "../../../kernel/nft-constants.ts";
import {
  type Expression,
  type Rule,
  compare,
  loadDestinationType,
  loadMeta,
  loadPayload,
  loadTracked,
  lookUp,
  maskBytes,
  maskPrefix,
  nativeU32,
  networkU16,
  ofProtocol,
  setTracked,
  updateSet,
} from "../../../kernel/nft-expressions.ts";
import { RTN_UNICAST } from "../../../kernel/rtnetlink-constants.ts";
import type { AddressBlock } from "../../../base/model/address.ts";
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

export function ofFamily(length: AddressLength): Rule {
  return [loadMeta(nft.NFT_META_NFPROTO), compare(Buffer.of(FAMILIES[length]))];
}

/** Not for the machine itself. */
export const passesThrough: Rule = [loadMeta(nft.NFT_META_OIF), compare(nativeU32(0), nft.NFT_CMP_NEQ)];

/** For the machine itself. */
export const arrivesHere: Rule = [loadMeta(nft.NFT_META_OIF), compare(nativeU32(0))];

/** It came in by the link of this name, which need not exist yet. */
export function enteredBy(link: string): Rule {
  const name = Buffer.alloc(LINK_NAME_BYTES);
  name.write(link, "latin1");
  return [loadMeta(nft.NFT_META_IIFNAME), compare(name)];
}

/** In any of these states of connection tracking. */
export function inState(states: number): Rule {
  return [loadTracked(nft.NFT_CT_STATE), maskBytes(nativeU32(states)), compare(nativeU32(0), nft.NFT_CMP_NEQ)];
}

/** Sent by the end that the connection was opened to. */
export const isReply: Rule = [loadTracked(nft.NFT_CT_DIRECTION), compare(Buffer.of(nft.IP_CT_DIR_REPLY))];

/** The address that it has now belongs to one host elsewhere: it is not the machine's, no group's, and no network's. */
export const goesElsewhere: Rule = [loadDestinationType(), compare(nativeU32(RTN_UNICAST))];

/**
 * Labels of connections: a policy has let it through; one that only records has; it was sent to an address that is not the
 * machine's. They are the last ones of all, because others count from the first.
 */
export const LABELS = { allowed: 1 << 6, recorded: 1 << 7, elsewhere: 1 << 5 } as const;

/** Before these, labels say which run of which container a policy has let it through for: others may have its address later. */
export const RUN_BYTES = 8;
const RUN_AT = LABEL_BYTES - 1 - RUN_BYTES;

function labelBits(labels: number, run?: Uint8Array): Buffer {
  const bits = Buffer.alloc(LABEL_BYTES);
  if (run !== undefined) bits.set(run, RUN_AT);
  bits[LABEL_BYTES - 1] = labels;
  return bits;
}

/** Of a connection that was labelled for this run, and for no other. */
export function isOfRun(run: Uint8Array): Rule {
  const mask = labelBits(0, Buffer.alloc(RUN_BYTES, 0xff));
  return [loadTracked(nft.NFT_CT_LABELS), maskBytes(mask), compare(labelBits(0, run))];
}

/** Of a connection that has one of these labels. */
export function hasLabel(labels: number): Rule {
  return compareLabels(labels, nft.NFT_CMP_NEQ);
}

/** Of a connection that has none of these labels. */
export function lacksLabel(labels: number): Rule {
  return compareLabels(labels, nft.NFT_CMP_EQ);
}

function compareLabels(labels: number, operation: number): Rule {
  return [loadTracked(nft.NFT_CT_LABELS), maskBytes(labelBits(labels)), compare(Buffer.alloc(LABEL_BYTES), operation)];
}

/** A connection that is older than the first rule with a label has no room for one: each packet of it is judged. */
export function setLabel(label: number, run?: Uint8Array): Rule {
  return setTracked(nft.NFT_CT_LABELS, labelBits(label, run));
}

export function loadSource(length: AddressLength): Expression {
  return loadPayload({ base: nft.NETWORK_HEADER, offset: SOURCE_AT[length], length });
}

function loadSentTo(length: AddressLength): Expression {
  const key = length === 4 ? nft.NFT_CT_DST_IP : nft.NFT_CT_DST_IP6;
  return loadTracked(key, nft.IP_CT_DIR_ORIGINAL);
}

function loadPort(register?: number): Expression {
  return loadTracked(nft.NFT_CT_PROTO_DST, nft.IP_CT_DIR_ORIGINAL, register);
}

/** Loads what a key of a port set consists of. */
function loadPortKey(length: AddressLength): Rule {
  const next = nft.NFT_REG32_00 + length / 4;
  return [loadSentTo(length), loadMeta(nft.NFT_META_L4PROTO, next), loadPort(next + 1)];
}

/** Sent to an address of the set. */
export function sentToAddressIn(set: string, length: AddressLength): Rule {
  return [ofFamily(length), loadSentTo(length), lookUp(set)];
}

/** Sent to an address with protocol and port of the set. */
export function sentToPortIn(set: string, length: AddressLength): Rule {
  return [ofFamily(length), loadPortKey(length), lookUp(set)];
}

/** Records where it was sent to. */
export function recordIn(set: string, length: AddressLength, timeoutMs: number): Rule {
  return [ofFamily(length), loadPortKey(length), updateSet(set, timeoutMs)];
}

function inBlock({ bytes, prefix }: AddressBlock, load: (length: AddressLength) => Expression): Rule {
  if (prefix === 0) return [];
  const isWhole = prefix === bytes.length * 8;
  return [load(lengthOf(bytes)), isWhole ? [] : [maskPrefix(bytes.length, prefix)], compare(bytes)];
}

export function sentTo(block: AddressBlock, protocol?: number, port?: number): Rule {
  return [
    ofFamily(lengthOf(block.bytes)),
    inBlock(block, loadSentTo),
    protocol === undefined ? [] : ofProtocol(protocol),
    port === undefined ? [] : [loadPort(), compare(networkU16(port))],
  ];
}

/** By the packet itself: neighbour messages are not tracked. */
export function isDestinedTo(block: AddressBlock): Rule {
  const load = (length: AddressLength): Expression =>
    loadPayload({ base: nft.NETWORK_HEADER, offset: DESTINATION_AT[length], length });
  return [ofFamily(lengthOf(block.bytes)), inBlock(block, load)];
}

export function fromBlock(block: AddressBlock): Rule {
  return [ofFamily(lengthOf(block.bytes)), inBlock(block, loadSource)];
}

export function lengthOf(address: Uint8Array): AddressLength {
  return address.length === 4 ? 4 : 16;
}

/** What the frame carries, by its own word: of a tagged one, that it is tagged. */
export function ofEtherType(type: number): Rule {
  return [loadPayload({ base: nft.LINK_HEADER, offset: 2 * MAC_BYTES, length: 2 }), compare(networkU16(type))];
}

export function fromMac(mac: Uint8Array, operation?: number): Rule {
  return [loadPayload({ base: nft.LINK_HEADER, offset: MAC_BYTES, length: MAC_BYTES }), compare(mac, operation)];
}

export function toMac(mac: Uint8Array, operation?: number): Rule {
  return [loadPayload({ base: nft.LINK_HEADER, offset: 0, length: MAC_BYTES }), compare(mac, operation)];
}
