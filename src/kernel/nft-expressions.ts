/**
 * NftExpressions: rules of nf_tables as lists of expressions, which are values until they are written as netlink attributes. A value is
 * loaded into the first register unless another one is named; a comparison that fails ends the rule.
 */
import type { NetlinkWriter } from "./netlink-message.ts";
import * as nft from "./nft-constants.ts";

/** What the kernel does with a packet in one step of a rule. */
export interface Expression {
  readonly name: string;
  readonly write: (w: NetlinkWriter) => void;
}

/** Expressions in their order; several that belong together are a list of their own. */
export type Rule = readonly (Expression | Rule)[];

export function writeRule(w: NetlinkWriter, rule: Rule): void {
  for (const part of rule) {
    if ("write" in part) w.nested(nft.NFTA_LIST_ELEM, () => writeExpression(w, part));
    else writeRule(w, part);
  }
}

export function writeExpression(w: NetlinkWriter, { name, write }: Expression): void {
  w.text(nft.NFTA_EXPR_NAME, name);
  w.nested(nft.NFTA_EXPR_DATA, () => write(w));
}

export function expression(name: string, write: Expression["write"] = () => undefined): Expression {
  return { name, write };
}

export function loadMeta(key: number, register: number = nft.NFT_REG_1): Expression {
  return expression("meta", (w) => {
    w.u32(nft.NFTA_META_DREG, register);
    w.u32(nft.NFTA_META_KEY, key);
  });
}

export function setMeta(key: number, value: Uint8Array): Rule {
  const set = expression("meta", (w) => {
    w.u32(nft.NFTA_META_KEY, key);
    w.u32(nft.NFTA_META_SREG, nft.NFT_REG_1);
  });
  return [loadImmediate(value), set];
}

/** A part of the packet: in which header, at which offset, and how many bytes. */
export interface PacketPart {
  readonly base: number;
  readonly offset: number;
  readonly length: number;
}

/** Loads a part of the packet. Ends the rule if the packet has no such bytes. */
export function loadPayload({ base, offset, length }: PacketPart, register: number = nft.NFT_REG_1): Expression {
  return expression("payload", (w) => {
    w.u32(nft.NFTA_PAYLOAD_DREG, register);
    w.u32(nft.NFTA_PAYLOAD_BASE, base);
    w.u32(nft.NFTA_PAYLOAD_OFFSET, offset);
    w.u32(nft.NFTA_PAYLOAD_LEN, length);
  });
}

/** Writes into the packet, and corrects the checksum at `checksumAt` of the same header. */
export function setPayload({ base, offset, length }: PacketPart, value: Uint8Array, checksumAt?: number): Rule {
  const set = expression("payload", (w) => {
    w.u32(nft.NFTA_PAYLOAD_SREG, nft.NFT_REG_1);
    w.u32(nft.NFTA_PAYLOAD_BASE, base);
    w.u32(nft.NFTA_PAYLOAD_OFFSET, offset);
    w.u32(nft.NFTA_PAYLOAD_LEN, length);
    if (checksumAt === undefined) return;
    w.u32(nft.NFTA_PAYLOAD_CSUM_TYPE, nft.NFT_PAYLOAD_CSUM_INET);
    w.u32(nft.NFTA_PAYLOAD_CSUM_OFFSET, checksumAt);
  });
  return [loadImmediate(value), set];
}

/** Loads what connection tracking knows of the packet; `direction` selects one of the two directions. */
export function loadTracked(key: number, direction?: number, register: number = nft.NFT_REG_1): Expression {
  return expression("ct", (w) => {
    w.u32(nft.NFTA_CT_KEY, key);
    w.u32(nft.NFTA_CT_DREG, register);
    if (direction !== undefined) w.attribute(nft.NFTA_CT_DIRECTION, Buffer.of(direction));
  });
}

/** Changes what connection tracking knows of the packet. Labels are added to those that are there. */
export function setTracked(key: number, value: Uint8Array): Rule {
  const set = expression("ct", (w) => {
    w.u32(nft.NFTA_CT_KEY, key);
    w.u32(nft.NFTA_CT_SREG, nft.NFT_REG_1);
  });
  return [loadImmediate(value), set];
}

/** Loads the type of the destination address, as the kernel's routes say: one of the RTN_ constants. */
export function loadDestinationType(): Expression {
  return expression("fib", (w) => {
    w.u32(nft.NFTA_FIB_DREG, nft.NFT_REG_1);
    w.u32(nft.NFTA_FIB_RESULT, nft.NFT_FIB_RESULT_ADDRTYPE);
    w.u32(nft.NFTA_FIB_FLAGS, nft.NFTA_FIB_F_DADDR);
  });
}

/** Loads one byte: whether a packet has the IPv4 option, or the IPv6 extension header, of this number. */
export function loadHasHeader(version: 4 | 6, type: number): Expression {
  return expression("exthdr", (w) => {
    w.u32(nft.NFTA_EXTHDR_DREG, nft.NFT_REG_1);
    w.attribute(nft.NFTA_EXTHDR_TYPE, Buffer.of(type));
    w.u32(nft.NFTA_EXTHDR_OFFSET, 0);
    w.u32(nft.NFTA_EXTHDR_LEN, 1);
    w.u32(nft.NFTA_EXTHDR_FLAGS, nft.NFT_EXTHDR_F_PRESENT);
    w.u32(nft.NFTA_EXTHDR_OP, version === 4 ? nft.NFT_EXTHDR_OP_IPV4 : nft.NFT_EXTHDR_OP_IPV6);
  });
}

export function compare(value: Uint8Array, operation: number = nft.NFT_CMP_EQ): Expression {
  return expression("cmp", (w) => {
    w.u32(nft.NFTA_CMP_SREG, nft.NFT_REG_1);
    w.u32(nft.NFTA_CMP_OP, operation);
    w.nested(nft.NFTA_CMP_DATA, () => w.attribute(nft.NFTA_DATA_VALUE, value));
  });
}

/** Ends the rule unless the packet has this transport protocol. */
export function ofProtocol(protocol: number): Rule {
  return [loadMeta(nft.NFT_META_L4PROTO), compare(Buffer.of(protocol))];
}

/** Masks the loaded value. */
export function maskBytes(mask: Uint8Array): Expression {
  return expression("bitwise", (w) => {
    w.u32(nft.NFTA_BITWISE_SREG, nft.NFT_REG_1);
    w.u32(nft.NFTA_BITWISE_DREG, nft.NFT_REG_1);
    w.u32(nft.NFTA_BITWISE_LEN, mask.length);
    w.nested(nft.NFTA_BITWISE_MASK, () => w.attribute(nft.NFTA_DATA_VALUE, mask));
    w.nested(nft.NFTA_BITWISE_XOR, () => w.attribute(nft.NFTA_DATA_VALUE, new Uint8Array(mask.length)));
  });
}

/** Masks a loaded address of so many bytes to its first bits. */
export function maskPrefix(length: number, prefix: number): Expression {
  return maskBytes(
    Uint8Array.from({ length }, (_, index) => (0xff00 >> Math.max(0, Math.min(8, prefix - index * 8))) & 0xff),
  );
}

export function loadImmediate(value: Uint8Array, register: number = nft.NFT_REG_1): Expression {
  return expression("immediate", (w) => {
    w.u32(nft.NFTA_IMMEDIATE_DREG, register);
    w.nested(nft.NFTA_IMMEDIATE_DATA, () => w.attribute(nft.NFTA_DATA_VALUE, value));
  });
}

function verdict(code: number, chain?: string): Expression {
  return expression("immediate", (w) => {
    w.u32(nft.NFTA_IMMEDIATE_DREG, nft.NFT_REG_VERDICT);
    w.nested(nft.NFTA_IMMEDIATE_DATA, () => writeVerdict(w, code, chain));
  });
}

export const accept = verdict(nft.NF_ACCEPT);
export const drop = verdict(nft.NF_DROP);
export const counter = expression("counter");
export const notrack = expression("notrack");

/** Goes on in the other chain, and returns after its end. */
export function jump(chain: string): Expression {
  return verdict(nft.NFT_JUMP, chain);
}

/** Goes on in the other chain, and does not return. */
export function goTo(chain: string): Expression {
  return verdict(nft.NFT_GOTO, chain);
}

/** A verdict as data, in an expression or an element of a map. */
export function writeVerdict(w: NetlinkWriter, code: number, chain?: string): void {
  w.nested(nft.NFTA_DATA_VERDICT, () => {
    w.u32(nft.NFTA_VERDICT_CODE, code);
    if (chain !== undefined) w.text(nft.NFTA_VERDICT_CHAIN, chain);
  });
}

/** Ends the rule unless the loaded value is in the set. */
export function lookUp(set: string, isVerdictMap = false): Expression {
  return expression("lookup", (w) => {
    w.text(nft.NFTA_LOOKUP_SET, set);
    w.u32(nft.NFTA_LOOKUP_SREG, nft.NFT_REG_1);
    if (isVerdictMap) w.u32(nft.NFTA_LOOKUP_DREG, nft.NFT_REG_VERDICT);
  });
}

/** Adds the loaded value to the set, or renews it; ends the rule if the set is full. `each`: an expression for each element. */
export function updateSet(set: string, timeoutMs: number, each?: Expression): Expression {
  return expression("dynset", (w) => {
    w.text(nft.NFTA_DYNSET_SET_NAME, set);
    w.u32(nft.NFTA_DYNSET_OP, nft.NFT_DYNSET_OP_UPDATE);
    w.u32(nft.NFTA_DYNSET_SREG_KEY, nft.NFT_REG_1);
    w.u64(nft.NFTA_DYNSET_TIMEOUT, timeoutMs);
    if (each !== undefined) w.nested(nft.NFTA_DYNSET_EXPR, () => writeExpression(w, each));
  });
}

/** Ends the rule if there are more packets than this in a second; `burst` may come at once. */
export function limit(rate: number, burst: number): Expression {
  return expression("limit", (w) => {
    w.attribute(nft.NFTA_LIMIT_RATE, networkU64(rate));
    w.attribute(nft.NFTA_LIMIT_UNIT, networkU64(1));
    w.u32(nft.NFTA_LIMIT_BURST, burst);
  });
}

/** A rule of the machine has given the connection another destination, as for a published port or a service of a cluster. */
export const isTranslated: Rule = compareTranslation(nft.NFT_CMP_NEQ);

/** It still has the destination that it was sent to. */
export const isUntranslated: Rule = compareTranslation(nft.NFT_CMP_EQ);

function compareTranslation(operation: number): Rule {
  return [loadTracked(nft.NFT_CT_STATUS), maskBytes(nativeU32(nft.IPS_DST_NAT)), compare(nativeU32(0), operation)];
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

function networkU64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(value));
  return bytes;
}
