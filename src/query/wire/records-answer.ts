/**
 * Writes the answer to a question for a name with records of its own over the query: the CNAMEs that lead from the queried name to
 * another one, then the records of that name.
 */
import { setU16, u16 } from "../../base/dns/bytes.ts";
import { ADDITIONALS_AT, setAuthoritative, setTruncated } from "../../base/dns/header.ts";
import { POINTER_BYTES, pointerTo } from "../../base/dns/name.ts";
import { RECORD_FIXED_BYTES, QUESTION_POINTER, writeRecord } from "../../base/dns/record.ts";
import { RCODE } from "../../base/dns/rcode.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import type { Behaviour } from "../../base/model/behaviour.ts";
import type { OwnedRecord, ZoneAuthority } from "../../base/model/visible-names.ts";
import { type AliasLink, chainOf } from "./alias.ts";
import { addressBytesOf } from "./chain-end.ts";
import type { Question } from "./question.ts";
import { finish, roomAfter, SOA_BYTES, writeHeader, writeSoa } from "./reply.ts";

export interface AnswerRecord {
  readonly type: number;
  readonly ttlSeconds: number;
  readonly data: Uint8Array;
}

export interface RecordsReply {
  /** They lead from the queried name to the name that has the records. */
  readonly links: readonly AliasLink[];
  readonly records: readonly AnswerRecord[];
  readonly rcode: number;
  /** Added as far as they fit. */
  readonly additional?: readonly OwnedRecord[];
  /** Of the name that has the records, or does not exist. */
  readonly zone?: ZoneAuthority | undefined;
}

/** As many records as fit; returns the length of the message. */
export function recordsAnswer(
  block: Buffer,
  question: Question,
  { links, records, rcode, additional = [], zone }: RecordsReply,
  limit: number,
  behaviour: Behaviour,
): number {
  const { offset, end } = question;
  const room = roomAfter(question, limit, behaviour);
  const chain = chainOf(links, end - offset);
  const [first] = records;
  const isFull = first !== undefined && chain.length + POINTER_BYTES + RECORD_FIXED_BYTES + first.data.length > room;
  if (isFull && links.length > 0 && addressBytesOf(question.type) > 0 && question.records.optCount === 0) {
    const ttls = links.map(({ ttlSeconds }) => ttlSeconds);
    const ends = records.map((each) => ({ ...each, ttlSeconds: Math.min(each.ttlSeconds, ...ttls) }));
    const length = recordsAnswer(block, question, { links: [], records: ends, rcode }, limit, behaviour);
    setTruncated(block, offset);
    return length;
  }
  writeHeader(block, question, rcode, true);
  if (zone !== undefined && links.length === 0) setAuthoritative(block, offset);
  if (chain.length > room) {
    setTruncated(block, offset);
    return finish(block, question, end, 0, 0, behaviour, rcode);
  }
  chain.copy(block, end);
  let at = end + chain.length;
  let answers = links.length;
  let isWhole = true;
  const lastTarget = links.at(-1)?.target;
  const owner = lastTarget === undefined ? QUESTION_POINTER : pointerTo(at - offset - lastTarget.length - 1);
  for (const { type, ttlSeconds, data } of records) {
    isWhole = at + POINTER_BYTES + RECORD_FIXED_BYTES + data.length <= end + room;
    if (!isWhole) {
      setTruncated(block, offset);
      break;
    }
    setU16(block, at, owner);
    at = writeRecord(block, at + POINTER_BYTES, type, ttlSeconds, data.length);
    block.set(data, at);
    at += data.length;
    answers++;
  }
  const { ttlSeconds } = behaviour;
  const soaBytes = zone === undefined ? SOA_BYTES : zone.origin.length + RECORD_FIXED_BYTES + zone.soa.length;
  // Of a failure nothing may be cached, and it is no zone's.
  const isAnswer = rcode === RCODE.NOERROR || rcode === RCODE.NXDOMAIN;
  const isNegative = isAnswer && records.length === 0 && behaviour.hasNegativeSoa && at + soaBytes <= end + room;
  if (isNegative)
    at =
      zone === undefined
        ? writeSoa(block, at, ttlSeconds)
        : writeOwned(block, { owner: zone.origin, type: TYPE.SOA, data: zone.soa }, at, ttlSeconds);
  let extra = 0;
  for (const record of isWhole ? additional : []) {
    if (at + record.owner.length + RECORD_FIXED_BYTES + record.data.length > end + room) break;
    at = writeOwned(block, record, at, ttlSeconds);
    extra++;
  }
  const length = finish(block, question, at, answers, isNegative ? 1 : 0, behaviour, rcode);
  setU16(block, offset + ADDITIONALS_AT, u16(block, offset + ADDITIONALS_AT) + extra);
  return length;
}

function writeOwned(block: Buffer, { owner, type, data }: OwnedRecord, end: number, ttlSeconds: number): number {
  block.set(owner, end);
  const at = writeRecord(block, end + owner.length, type, ttlSeconds, data.length);
  block.set(data, at);
  return at + data.length;
}

/** What the reply says, to explain a query. */
export function recordsText({ records, links, rcode }: RecordsReply): string {
  if (records.length > 0 || links.length > 0) return "answered with its records";
  return rcode === RCODE.NXDOMAIN
    ? "no other source may have it"
    : "it has no records of this type, so the answer is empty";
}
