/**
 * AskMessage: a question to Docker's own resolver, and what its reply says. That resolver forwards what it does not know
 * to the servers it has, whatever our routes say, and its reply does not tell which of the two it did.
 *
 * So the question carries a record that its DNS library can read, but refuses to write: an SVCB record with an empty
 * protocol name. A name that it knows is answered from its own tables, without that record. To forward, it would have to
 * write the whole query again, which fails before a byte is sent: SERVFAIL, and a line in dockerd's log.
 */
import { setU16, u16, u32 } from "../../base/dns/bytes.ts";
import {
  ADDITIONALS_AT,
  ANSWERS_AT,
  AUTHORITIES_AT,
  CODES_AT,
  HEADER_BYTES,
  QUESTIONS_AT,
  RA,
  isAuthoritative,
  isReply,
  isTruncated,
  rcodeOf,
} from "../../base/dns/header.ts";
import { LABELS_MAX, LABEL_BYTES_MAX, NAME_BYTES_MAX, POINTER, pointerTarget } from "../../base/dns/name.ts";
import { OPT_BYTES, OPT_SIZE_AT, writeOpt } from "../../base/dns/opt.ts";
import { queryOf } from "../../base/dns/query.ts";
import { RCODE, rcodeName } from "../../base/dns/rcode.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import { DATA_LENGTH_AT, RECORD_FIXED_BYTES, TTL_AT, writeRecord } from "../../base/dns/record.ts";
import { LIMITS } from "../../base/limits.ts";
import type { DockerAnswer, DockerAsk } from "../../base/model/docker-ask.ts";
import { resetNameSteps, skipName } from "../wire/name.ts";

/** Priority 1, the root as target, the parameter alpn (1) with one protocol name of length 0. */
const EMPTY_ALPN = Uint8Array.of(0, 1, 0, 0, 1, 0, 1, 0);
const SVCB = 64;
/** Room for every address of a large service. */
const REPLY_BYTES = 0xffff;
/** The TTL of all that Docker's resolver answers itself. */
const DOCKER_TTL = 600;
/** Labels and pointers of a name: as many as a name has labels, each behind a pointer. */
const NAME_STEPS_MAX = 2 * LABELS_MAX;

/** What is sent to Docker's resolver, and what a reply to it must repeat. */
export interface AskMessage {
  readonly message: Buffer;
  readonly questionEnd: number;
  readonly type: number;
  readonly isGuarded: boolean;
}

/** The query, with an OPT for long replies and the guard. */
export function askMessage({ labels, isGuarded }: DockerAsk, type: number, id: number): AskMessage {
  const question = queryOf({ labels, type, id });
  const guard = Buffer.alloc(1 + RECORD_FIXED_BYTES + EMPTY_ALPN.length);
  guard.set(EMPTY_ALPN, writeRecord(guard, 1, SVCB, 0, EMPTY_ALPN.length));
  const opt = Buffer.alloc(OPT_BYTES);
  writeOpt(opt, 0, 0, false);
  setU16(opt, 1 + OPT_SIZE_AT, REPLY_BYTES);
  const message = Buffer.concat([question, ...(isGuarded ? [guard] : []), opt]);
  setU16(message, ADDITIONALS_AT, isGuarded ? 2 : 1);
  return { message, questionEnd: question.length, type, isGuarded };
}

/** What the data of the reply's records are, concatenated; "unknown" if Docker's resolver does not have the name. */
export type AskedRecords = { readonly kind: "records"; readonly data: Uint8Array } | Exclude<DockerAnswer, Known>;
type Known = { readonly kind: "known" };

/**
 * Reads a reply that has been validated, and has the id of the query. A program in the container can send one in the place of
 * Docker's resolver; then only that container is misled.
 */
export function readAsked(reply: Buffer, asked: AskMessage): AskedRecords {
  const rcode = rcodeOf(reply);
  if (rcode === RCODE.FORMERR || rcode === RCODE.REFUSED || rcode === RCODE.NOTIMP)
    return { kind: "away", reason: `Docker's resolver answered ${rcodeName(rcode)}` };
  if (!isOfQuestion(reply, asked)) return { kind: "away", reason: "Docker's resolver answered another question" };
  if (rcode !== RCODE.NOERROR) return { kind: "unknown" };
  // With the guard, only a name of Docker's own has an answer without an error.
  if (!asked.isGuarded && !isDockers(reply)) return { kind: "unknown" };
  // What is left of a truncated answer is some of the addresses, as for any client of Docker's; none is no answer.
  if (isTruncated(reply) && u16(reply, ANSWERS_AT) === 0)
    return { kind: "away", reason: "Docker's resolver truncated the whole answer" };
  return recordsOf(reply, asked);
}

/** Docker's resolver repeats the question byte by byte. */
function isOfQuestion(reply: Buffer, { message, questionEnd }: AskMessage): boolean {
  if (!isReply(reply) || u16(reply, QUESTIONS_AT) !== 1 || reply.length < questionEnd) return false;
  return reply.compare(message, HEADER_BYTES, questionEnd, HEADER_BYTES, questionEnd) === 0;
}

/**
 * Says without the guard whether Docker's resolver wrote the reply itself. Servers answer a query with an OPT with one.
 */
function isDockers(message: Buffer): boolean {
  const isPlain = u16(message, AUTHORITIES_AT) === 0 && u16(message, ADDITIONALS_AT) === 0;
  return isPlain && u16(message, ANSWERS_AT) > 0 && !isAuthoritative(message) && hasRecursion(message);
}

function hasRecursion(message: Buffer): boolean {
  return ((message[CODES_AT] as number) & RA) !== 0;
}

function recordsOf(message: Buffer, { questionEnd, type, isGuarded }: AskMessage): AskedRecords {
  const end = message.length;
  resetNameSteps(end);
  let at = questionEnd;
  const all: Uint8Array[] = [];
  for (let left = u16(message, ANSWERS_AT); left > 0 && all.length < LIMITS.swarmAddresses; left--) {
    const fixed = skipName(message, 0, at, end);
    const data = fixed + RECORD_FIXED_BYTES;
    if (fixed === -1 || data > end) break;
    at = data + u16(message, fixed + DATA_LENGTH_AT);
    if (at > end) break;
    if (!isGuarded && u32(message, fixed + TTL_AT) !== DOCKER_TTL) return { kind: "unknown" };
    const each = u16(message, fixed) === type ? dataOf(message, type, data, at) : undefined;
    if (each !== undefined) all.push(each);
  }
  return { kind: "records", data: type === TYPE.PTR ? (all[0] ?? new Uint8Array(0)) : Buffer.concat(all) };
}

function dataOf(message: Buffer, type: number, at: number, end: number): Uint8Array | undefined {
  if (type === TYPE.PTR) return expandedName(message, at);
  return end - at === (type === TYPE.A ? 4 : 16) ? Uint8Array.from(message.subarray(at, end)) : undefined;
}

/** The name at `start`, without compression and with its terminating zero; undefined if it is none, or too long. */
function expandedName(message: Buffer, start: number): Uint8Array | undefined {
  const labels: Uint8Array[] = [];
  let bytes = 0;
  let at = start;
  for (let step = 0; step < NAME_STEPS_MAX; step++) {
    const length = message[at];
    if (length === undefined) return undefined;
    if (length === 0) return Buffer.concat([...labels, Uint8Array.of(0)]);
    if (length >= POINTER) at = pointerTarget(message, at);
    else {
      bytes += 1 + length;
      if (length > LABEL_BYTES_MAX || bytes > NAME_BYTES_MAX) return undefined;
      labels.push(Uint8Array.from(message.subarray(at, at + 1 + length)));
      at += 1 + length;
    }
  }
  return undefined;
}
