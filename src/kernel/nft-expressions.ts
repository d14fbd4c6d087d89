/**
 * NftExpressions: the expressions that rules consist of, as nf_tables netlink attributes. What is loaded goes to the first
 * register unless another is named; a comparison that fails ends the rule.
 */
import type { NetlinkWriter } from "./netlink-message.ts";
import * as nft from "./nft-constants.ts";

export function expression(w: NetlinkWriter, name: string, body: () => void): void {
  w.nested(nft.NFTA_LIST_ELEM, () => {
    w.text(nft.NFTA_EXPR_NAME, name);
    w.nested(nft.NFTA_EXPR_DATA, body);
  });
}

export function loadMeta(w: NetlinkWriter, key: number, register: number = nft.NFT_REG_1): void {
  expression(w, "meta", () => {
    w.u32(nft.NFTA_META_DREG, register);
    w.u32(nft.NFTA_META_KEY, key);
  });
}

/** A part of the packet: of which header, from where, and how many bytes. */
export interface PacketPart {
  readonly base: number;
  readonly offset: number;
  readonly length: number;
}

export function loadPayload(
  w: NetlinkWriter,
  { base, offset, length }: PacketPart,
  register: number = nft.NFT_REG_1,
): void {
  expression(w, "payload", () => {
    w.u32(nft.NFTA_PAYLOAD_DREG, register);
    w.u32(nft.NFTA_PAYLOAD_BASE, base);
    w.u32(nft.NFTA_PAYLOAD_OFFSET, offset);
    w.u32(nft.NFTA_PAYLOAD_LEN, length);
  });
}

/** What connection tracking knows; `direction` for what it knows of both. */
export function loadTracked(w: NetlinkWriter, key: number, direction?: number, register: number = nft.NFT_REG_1): void {
  expression(w, "ct", () => {
    w.u32(nft.NFTA_CT_KEY, key);
    w.u32(nft.NFTA_CT_DREG, register);
    if (direction !== undefined) w.attribute(nft.NFTA_CT_DIRECTION, Buffer.of(direction));
  });
}

/** Loads what kind of address a packet is for, as the kernel's routes say: one of the RTN_ constants. */
export function loadDestinationType(w: NetlinkWriter): void {
  expression(w, "fib", () => {
    w.u32(nft.NFTA_FIB_DREG, nft.NFT_REG_1);
    w.u32(nft.NFTA_FIB_RESULT, nft.NFT_FIB_RESULT_ADDRTYPE);
    w.u32(nft.NFTA_FIB_FLAGS, nft.NFTA_FIB_F_DADDR);
  });
}

/** Loads whether a packet has the IPv4 option, or the IPv6 extension header, of this number: one byte. */
export function loadHasHeader(w: NetlinkWriter, version: 4 | 6, type: number): void {
  expression(w, "exthdr", () => {
    w.u32(nft.NFTA_EXTHDR_DREG, nft.NFT_REG_1);
    w.attribute(nft.NFTA_EXTHDR_TYPE, Buffer.of(type));
    w.u32(nft.NFTA_EXTHDR_OFFSET, 0);
    w.u32(nft.NFTA_EXTHDR_LEN, 1);
    w.u32(nft.NFTA_EXTHDR_FLAGS, nft.NFT_EXTHDR_F_PRESENT);
    w.u32(nft.NFTA_EXTHDR_OP, version === 4 ? nft.NFT_EXTHDR_OP_IPV4 : nft.NFT_EXTHDR_OP_IPV6);
  });
}

/** Changes what connection tracking knows: of labels, it adds those that are loaded. */
export function setTracked(w: NetlinkWriter, key: number): void {
  expression(w, "ct", () => {
    w.u32(nft.NFTA_CT_KEY, key);
    w.u32(nft.NFTA_CT_SREG, nft.NFT_REG_1);
  });
}

export function compare(w: NetlinkWriter, value: Uint8Array, operation: number = nft.NFT_CMP_EQ): void {
  expression(w, "cmp", () => {
    w.u32(nft.NFTA_CMP_SREG, nft.NFT_REG_1);
    w.u32(nft.NFTA_CMP_OP, operation);
    w.nested(nft.NFTA_CMP_DATA, () => w.attribute(nft.NFTA_DATA_VALUE, value));
  });
}

/** Of the transport protocol with this number. */
export function ofProtocol(w: NetlinkWriter, protocol: number): void {
  loadMeta(w, nft.NFT_META_L4PROTO);
  compare(w, Buffer.of(protocol));
}

/** Masks what is loaded. */
export function maskBytes(w: NetlinkWriter, mask: Uint8Array): void {
  expression(w, "bitwise", () => {
    w.u32(nft.NFTA_BITWISE_SREG, nft.NFT_REG_1);
    w.u32(nft.NFTA_BITWISE_DREG, nft.NFT_REG_1);
    w.u32(nft.NFTA_BITWISE_LEN, mask.length);
    w.nested(nft.NFTA_BITWISE_MASK, () => w.attribute(nft.NFTA_DATA_VALUE, mask));
    w.nested(nft.NFTA_BITWISE_XOR, () => w.attribute(nft.NFTA_DATA_VALUE, new Uint8Array(mask.length)));
  });
}

export function loadImmediate(w: NetlinkWriter, register: number, value: Uint8Array): void {
  expression(w, "immediate", () => {
    w.u32(nft.NFTA_IMMEDIATE_DREG, register);
    w.nested(nft.NFTA_IMMEDIATE_DATA, () => w.attribute(nft.NFTA_DATA_VALUE, value));
  });
}

/** `chain` is where a jump or goto leads. */
export function verdict(w: NetlinkWriter, code: number, chain?: string): void {
  expression(w, "immediate", () => {
    w.u32(nft.NFTA_IMMEDIATE_DREG, nft.NFT_REG_VERDICT);
    w.nested(nft.NFTA_IMMEDIATE_DATA, () => writeVerdict(w, code, chain));
  });
}

/** A verdict as data, in an expression or an element of a map. */
export function writeVerdict(w: NetlinkWriter, code: number, chain?: string): void {
  w.nested(nft.NFTA_DATA_VERDICT, () => {
    w.u32(nft.NFTA_VERDICT_CODE, code);
    if (chain !== undefined) w.text(nft.NFTA_VERDICT_CHAIN, chain);
  });
}

/** Ends the rule unless what is loaded is in the set. */
export function lookUp(w: NetlinkWriter, set: string, isVerdictMap = false): void {
  expression(w, "lookup", () => {
    w.text(nft.NFTA_LOOKUP_SET, set);
    w.u32(nft.NFTA_LOOKUP_SREG, nft.NFT_REG_1);
    if (isVerdictMap) w.u32(nft.NFTA_LOOKUP_DREG, nft.NFT_REG_VERDICT);
  });
}

/** Adds what is loaded to the set, or renews it; ends the rule if the set is full. `each`: an expression that an element has. */
export function updateSet(w: NetlinkWriter, set: string, timeoutMs: number, each?: () => void): void {
  expression(w, "dynset", () => {
    w.text(nft.NFTA_DYNSET_SET_NAME, set);
    w.u32(nft.NFTA_DYNSET_OP, nft.NFT_DYNSET_OP_UPDATE);
    w.u32(nft.NFTA_DYNSET_SREG_KEY, nft.NFT_REG_1);
    w.u64(nft.NFTA_DYNSET_TIMEOUT, timeoutMs);
    each?.();
  });
}

/** Registers with kernel numbers, as opposed to packet data, are in host byte order. */
export function nativeU16(value: number): Uint8Array {
  return new Uint8Array(Uint16Array.of(value).buffer);
}

export function nativeU32(value: number): Uint8Array {
  return new Uint8Array(Uint32Array.of(value).buffer);
}

export function nativeU64(value: bigint): Uint8Array {
  return new Uint8Array(BigUint64Array.of(value).buffer);
}

export function networkU16(value: number): Buffer {
  return Buffer.of(value >> 8, value & 0xff);
}
