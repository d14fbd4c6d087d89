/**
 * RefusedReply: the reply to a query that a policy refuses: the name does not exist, with an SOA, so that search lists go on and
 * clients ask again soon, and the reason as an extended error.
 */
import { setU16 } from "../../../base/dns/bytes.ts";
import {
  ADDITIONALS_AT,
  CD,
  CODES_AT,
  FLAGS_AT,
  OPCODE_BITS,
  QR,
  RA,
  RD,
  writeCounts,
  AD,
  OPCODE,
  QUESTIONS_AT,
  opcodeOf,
} from "../../../base/dns/header.ts";
import { OPT_BYTES, writeOpt, OPT_SIZE_AT } from "../../../base/dns/opt.ts";
import { RCODE } from "../../../base/dns/rcode.ts";
import { SOA_BYTES, writeSoa } from "../../../query/wire/reply.ts";
import type { Question } from "../../../query/wire/question.ts";

/** A name may be allowed at any time. */
const TTL_SECONDS = 5;

export interface RefusedOptions {
  readonly limit: number;
  readonly hasOpt: boolean;
  readonly isDnssecOk: boolean;
  /** The extended error. */
  readonly why: Uint8Array;
}

/** Writes the refusal over a query, or a reply, whose question ends at `questionEnd` of the message. Returns its length. */
export function refusedReply(block: Buffer, offset: number, questionEnd: number, options: RefusedOptions): number {
  const { limit, hasOpt, isDnssecOk, why } = options;
  const [flags, codes] = [offset + FLAGS_AT, offset + CODES_AT];
  block[flags] = QR | ((block[flags] as number) & (OPCODE_BITS | RD));
  block[codes] = RA | ((block[codes] as number) & CD) | RCODE.NXDOMAIN;
  const hasSoa = questionEnd + SOA_BYTES + (hasOpt ? OPT_BYTES : 0) <= limit;
  writeCounts(block, offset, 0, hasSoa ? 1 : 0, 0);
  const start = offset + questionEnd;
  const at = hasSoa ? writeSoa(block, start, TTL_SECONDS) : start;
  if (!hasOpt) return at - offset;
  setU16(block, offset + ADDITIONALS_AT, 1);
  const fits = at - offset + OPT_BYTES + why.length <= limit;
  const after = writeOpt(block, at, RCODE.NXDOMAIN, isDnssecOk, fits ? why.length : 0);
  if (fits) block.set(why, after);
  return after + (fits ? why.length : 0) - offset;
}

/**
 * Takes out of a query, in place, everything in which a client can send more than the question: options, further records, flags but AD, and
 * the signature of a message that is not the same any more. The query asks for recursion, without which servers do not forward it. Reads
 * the question again.
 */
export function makeBare(block: Buffer, question: Question): void {
  const { offset, end, records } = question;
  const hasOpt = records.optCount > 0;
  const { optUdpSize, isDnssecOk } = records;
  const isQuery = opcodeOf(block, offset) === OPCODE.QUERY;
  // A message with another opcode would be understood otherwise, so it keeps none of its flags.
  block[offset + FLAGS_AT] = RD;
  block[offset + CODES_AT] = isQuery ? (block[offset + CODES_AT] as number) & AD : 0;
  setU16(block, offset + QUESTIONS_AT, 1);
  writeCounts(block, offset, 0, 0, hasOpt ? 1 : 0);
  let after = end;
  if (hasOpt) {
    after = writeOpt(block, end, 0, isDnssecOk);
    setU16(block, end + 1 + OPT_SIZE_AT, optUdpSize);
  }
  if (question.read(block, offset, after - offset) !== "answer") throw new Error("the bare query cannot be read");
}
