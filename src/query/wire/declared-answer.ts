/**
 * Writes the answer to a question for a declared name over the query: the CNAMEs that lead from the queried name to
 * another one, then the records of that name.
 */
import { setU16 } from "../../base/dns/bytes.ts";
import { setTruncated } from "../../base/dns/header.ts";
import { POINTER_BYTES, pointerTo } from "../../base/dns/name.ts";
import { RECORD_FIXED_BYTES, QUESTION_POINTER, writeRecord } from "../../base/dns/record.ts";
import type { Behaviour } from "../../base/model/behaviour.ts";
import { type AliasLink, chainOf } from "./alias.ts";
import type { Question } from "./question.ts";
import { finish, roomAfter, SOA_BYTES, writeHeader, writeSoa } from "./reply.ts";

export interface AnswerRecord {
  readonly type: number;
  readonly ttlSeconds: number;
  readonly data: Uint8Array;
}

export interface DeclaredReply {
  /** From the queried name to the name that has the records. */
  readonly links: readonly AliasLink[];
  readonly records: readonly AnswerRecord[];
  readonly rcode: number;
}

/** As many records as fit; returns the length of the message. */
export function declaredAnswer(
  block: Buffer,
  question: Question,
  { links, records, rcode }: DeclaredReply,
  limit: number,
  behaviour: Behaviour,
): number {
  const { offset, end } = question;
  const room = roomAfter(question, limit, behaviour);
  const chain = chainOf(links, end - offset);
  writeHeader(block, question, rcode, true);
  if (chain.length > room) {
    setTruncated(block, offset);
    return finish(block, question, end, 0, 0, behaviour, rcode);
  }
  chain.copy(block, end);
  let at = end + chain.length;
  let answers = links.length;
  const lastTarget = links.at(-1)?.target;
  const owner = lastTarget === undefined ? QUESTION_POINTER : pointerTo(at - offset - lastTarget.length - 1);
  for (const { type, ttlSeconds, data } of records) {
    if (at + POINTER_BYTES + RECORD_FIXED_BYTES + data.length > end + room) {
      setTruncated(block, offset);
      break;
    }
    setU16(block, at, owner);
    at = writeRecord(block, at + POINTER_BYTES, type, ttlSeconds, data.length);
    block.set(data, at);
    at += data.length;
    answers++;
  }
  const isNegative = records.length === 0 && behaviour.hasNegativeSoa && at + SOA_BYTES <= end + room;
  if (isNegative) at = writeSoa(block, question, at, behaviour.ttlSeconds);
  return finish(block, question, at, answers, isNegative ? 1 : 0, behaviour, rcode);
}
