/**
 * BareQuery: a query without anything in which a client can send more than the question: options, further records, flags but AD,
 * and the signature of a message that is not the same any more. It asks for recursion: servers do not forward without that.
 */
import { setU16 } from "../../base/dns/bytes.ts";
import { AD, CODES_AT, FLAGS_AT, OPCODE, QUESTIONS_AT, RD, opcodeOf, writeCounts } from "../../base/dns/header.ts";
import { OPT_SIZE_AT, writeOpt } from "../../base/dns/opt.ts";
import type { Question } from "./question.ts";

/** Takes them out in place, and reads the question again. */
export function makeBare(block: Buffer, question: Question): void {
  const { offset, end, records } = question;
  const hasOpt = records.optCount > 0;
  const { optUdpSize, isDnssecOk } = records;
  const isQuery = opcodeOf(block, offset) === OPCODE.QUERY;
  // Of another opcode nothing is repeated that would be understood.
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
