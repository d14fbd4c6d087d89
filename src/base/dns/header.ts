/**
 * The header of a DNS message (RFC 1035, 4.1.1): the offsets of its fields and its bits.
 *
 *   0  id        2  QR opcode AA TC RD        3  RA Z AD CD rcode
 *   4  questions        6  answers        8  authorities        10  additionals
 */
import { u16 } from "./bytes.ts";

export const HEADER_BYTES = 12;
export const ID_AT = 0;
/** The byte with QR, opcode, AA, TC and RD. */
export const FLAGS_AT = 2;
/** The byte with RA, AD, CD and the response code. */
export const CODES_AT = 3;
export const QUESTIONS_AT = 4;
export const ANSWERS_AT = 6;
export const AUTHORITIES_AT = 8;
export const ADDITIONALS_AT = 10;
/** Answer, authority and additional: the sections that hold records. */
export const SECTIONS = 3;

/** The flags of the byte at FLAGS_AT. */
export const QR = 0x80;
export const OPCODE_BITS = 0x78;
export const AA = 0x04;
export const TC = 0x02;
export const RD = 0x01;
const OPCODE_SHIFT = 3;
/** The flags of the byte at CODES_AT. */
export const RA = 0x80;
export const AD = 0x20;
export const CD = 0x10;
export const RCODE_BITS = 0x0f;

export const OPCODE = { QUERY: 0, NOTIFY: 4 } as const;

export function isReply(message: Uint8Array, offset = 0): boolean {
  return ((message[offset + FLAGS_AT] as number) & QR) !== 0;
}

export function opcodeOf(message: Uint8Array, offset = 0): number {
  return ((message[offset + FLAGS_AT] as number) & OPCODE_BITS) >> OPCODE_SHIFT;
}

export function isAuthoritative(message: Uint8Array): boolean {
  return ((message[FLAGS_AT] as number) & AA) !== 0;
}

export function setAuthoritative(message: Uint8Array, offset = 0): void {
  message[offset + FLAGS_AT] = (message[offset + FLAGS_AT] as number) | AA;
}

export function isTruncated(message: Uint8Array, offset = 0): boolean {
  return ((message[offset + FLAGS_AT] as number) & TC) !== 0;
}

export function setTruncated(message: Uint8Array, offset = 0): void {
  message[offset + FLAGS_AT] = (message[offset + FLAGS_AT] as number) | TC;
}

/** The response code in the header; an OPT record may extend it. */
export function rcodeOf(message: Uint8Array, offset = 0): number {
  return (message[offset + CODES_AT] as number) & RCODE_BITS;
}

/** Sets the response code to NOERROR. */
export function clearRcode(message: Uint8Array): void {
  message[CODES_AT] = (message[CODES_AT] as number) & ~RCODE_BITS;
}

export function idOf(message: Uint8Array): number {
  return u16(message, ID_AT);
}

/** Writes the number of records in each section. */
export function writeCounts(
  message: Uint8Array,
  offset: number,
  answers: number,
  authorities: number,
  additionals: number,
): void {
  message[offset + ANSWERS_AT] = answers >> 8;
  message[offset + ANSWERS_AT + 1] = answers;
  message[offset + AUTHORITIES_AT] = authorities >> 8;
  message[offset + AUTHORITIES_AT + 1] = authorities;
  message[offset + ADDITIONALS_AT] = additionals >> 8;
  message[offset + ADDITIONALS_AT + 1] = additionals;
}

/** The offset of a section's record count: 0 for answers, 1 for authorities, 2 for additionals. */
export function countAt(section: number): number {
  return ANSWERS_AT + section * 2;
}

/** The limit over TCP, which has a length of two bytes. */
export const MESSAGE_BYTES_MAX = 65_535;
/** The limit over UDP for a client that announces no other size (RFC 1035, 4.2.1). */
export const UDP_BYTES_MIN = 512;
/** The largest payload of a UDP packet over IPv4. */
export const UDP_BYTES_MAX = 65_507;
