/**
 * ToldQuery: a query that tells its server who asks, and what is left of its reply. Whatever the client has sent beside its question is
 * left out, because it may claim to be somebody else; and what cannot be changed, because it is signed, could claim that, too.
 */
import { setU16, u16 } from "../../base/dns/bytes.ts";
import { ADDITIONALS_AT, ANSWERS_AT, HEADER_BYTES, SECTIONS, countAt } from "../../base/dns/header.ts";
import { OPTION, OPTION_FIXED_BYTES, OPT_BYTES, writeOpt } from "../../base/dns/opt.ts";
import { copyBytes } from "../../base/lib/bytes.ts";
import { resetNameSteps } from "./name.ts";
import { Records } from "./records.ts";

const records = new Records();

/** Header and question of a query, with our OPT and the option; without one, with our OPT alone. */
export function toldQuery(message: Buffer, questionEnd: number, option: Uint8Array): Buffer {
  const query = Buffer.allocUnsafe(questionEnd + OPT_BYTES + option.length);
  copyBytes(message, 0, questionEnd, query, 0);
  query.fill(0, ANSWERS_AT, HEADER_BYTES);
  setU16(query, ADDITIONALS_AT, 1);
  const isDnssecOk = readRecords(message, questionEnd) && records.isDnssecOk;
  const at = writeOpt(query, questionEnd, 0, isDnssecOk, option.length);
  copyBytes(option, 0, option.length, query, at);
  return query;
}

/** A reply as the client would have got it without us: without the option, and without an OPT if its query had none. */
export function untoldReply(message: Buffer, questionEnd: number, hasOpt: boolean): Buffer {
  if (!readRecords(message, questionEnd) || records.optDataAt === 0) return message;
  const { optDataAt, optDataEnd } = records;
  const optAt = optDataAt - OPT_BYTES;
  const additionals = u16(message, ADDITIONALS_AT);
  // As every server writes it: the last record, with the shortest name.
  if (!hasOpt && message[optAt] === 0 && optDataEnd === message.length && additionals > 0) {
    const shorter = Buffer.from(message.subarray(0, optAt));
    setU16(shorter, ADDITIONALS_AT, additionals - 1);
    return shorter;
  }
  const kept: Buffer[] = [];
  for (let at = optDataAt; at + OPTION_FIXED_BYTES <= optDataEnd;) {
    const end = at + OPTION_FIXED_BYTES + u16(message, at + 2);
    if (u16(message, at) !== OPTION.CLIENT_SUBNET) kept.push(message.subarray(at, end));
    at = end;
  }
  const shorter = Buffer.concat([message.subarray(0, optDataAt), ...kept, message.subarray(optDataEnd)]);
  setU16(shorter, optDataAt - 2, optDataEnd - optDataAt - (message.length - shorter.length));
  return shorter;
}

function readRecords(message: Buffer, questionEnd: number): boolean {
  let count = 0;
  for (let section = 0; section < SECTIONS; section++) count += u16(message, countAt(section));
  resetNameSteps(message.length);
  records.reset();
  return records.walk(message, 0, questionEnd, message.length, count) !== -1;
}
