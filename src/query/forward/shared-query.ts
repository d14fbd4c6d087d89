/**
 * SharedQuery: the query that goes out for all who ask the same, whoever asked first and however.
 */
import { copyBytes } from "../../lib/bytes.ts";
import type { Key } from "../cache/key.ts";
import { isDnssecOk, upstreamFlags } from "../cache/shareable.ts";

const HEADER_BYTES = 12;
const QUESTION_FIXED_BYTES = 4;
const CLASS_IN = 1;
const OPT_BYTES = 11;
const OUR_UDP_BYTES = 1232;
const TYPE_OPT = 41;
const RD = 0x01;

/** What is asked for an entry anew: a header without anything in it, and the question. */
export function questionOf({ name, type }: Key): Buffer {
  const message = Buffer.alloc(HEADER_BYTES + name.length + 1 + QUESTION_FIXED_BYTES);
  message.write(name, HEADER_BYTES, "latin1");
  message.writeUInt16BE(type, message.length - QUESTION_FIXED_BYTES);
  message.writeUInt16BE(CLASS_IN, message.length - 2);
  return message;
}

/** Header and question of one of them, and an OPT of ours. */
export function queryFor(message: Buffer, questionEnd: number, bits: number): Buffer {
  // Of the pool: memory of its own would be one more thing for the collector to look after.
  const query = Buffer.allocUnsafe(questionEnd + OPT_BYTES).fill(0);
  copyBytes(message, HEADER_BYTES, questionEnd, query, HEADER_BYTES);
  query[2] = RD;
  query[3] = upstreamFlags(bits);
  query[5] = 1;
  query[11] = 1;
  query.writeUInt16BE(TYPE_OPT, questionEnd + 1);
  query.writeUInt16BE(OUR_UDP_BYTES, questionEnd + 3);
  query[questionEnd + 7] = isDnssecOk(bits) ? 0x80 : 0;
  return query;
}
