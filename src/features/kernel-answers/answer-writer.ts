/**
 * A kernel answer: an answer that has just been written, as the kernel can repeat it. It must not depend on anything but the
 * name, the type and the names that the namespace sees, or for a cached reply on DO and CD: not on the size or other flags
 * of this query, nor on its letter case unless the kernel compares that, too.
 */
import { u16 } from "../../base/dns/bytes.ts";
import {
  AA,
  ADDITIONALS_AT,
  ANSWERS_AT,
  AUTHORITIES_AT,
  CD,
  CODES_AT,
  FLAGS_AT,
  QR,
  RD,
} from "../../base/dns/header.ts";
import { POINTER_BYTES } from "../../base/dns/name.ts";
import { OPT_BYTES } from "../../base/dns/opt.ts";
import { RCODE } from "../../base/dns/rcode.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import { CLASS, RECORD_FIXED_BYTES } from "../../base/dns/record.ts";
import type { ReplyStyle } from "../../base/model/behaviour.ts";
import type { KernelQuestion, BriefKernelAnswer, KernelAnswer, KernelAnswerMemory } from "./kernel/kernel-answer.ts";
import type { RepeatMark, Repeatable, WrittenReply } from "../../query/repeater.ts";
import type { Question } from "../../query/wire/question.ts";

/** What all kernel answers have in common. */
type PlainAnswer = Omit<KernelAnswer, "shuffledBytes" | "source">;
type Writable<T> = { -readonly [Key in keyof T]: T[Key] };

const NOTHING = new Uint8Array(0);
const NOTHING_ASKED: KernelQuestion = { type: 0, name: NOTHING, nameBytes: 0, isDnssecOk: false, isUnchecked: false };
const NOTHING_SAID: PlainAnswer = {
  type: 0,
  name: NOTHING,
  nameBytes: 0,
  labels: 0,
  rcode: 0,
  isAuthoritative: false,
  answers: 0,
  authorities: 0,
  message: NOTHING,
  from: 0,
  to: 0,
};
/** What clients query. The kernel counts answers by type and source, and whoever queries all types must not use that up. */
const REPEATED_TYPES: ReadonlySet<number> = new Set([
  TYPE.A,
  TYPE.AAAA,
  TYPE.PTR,
  TYPE.CNAME,
  TYPE.MX,
  TYPE.TXT,
  TYPE.SRV,
  TYPE.SVCB,
  TYPE.HTTPS,
]);

/** Writes what the process has answered into the kernel's memory of answers. */
export class AnswerWriter {
  /** Reused for every question and answer: after a change of names thousands of them may come at once. */
  readonly #asked: Writable<KernelQuestion> = { ...NOTHING_ASKED };
  readonly #answer: Writable<KernelAnswer> = { ...NOTHING_SAID, shuffledBytes: 0, source: undefined };
  readonly #brief: Writable<BriefKernelAnswer> = {
    ...NOTHING_SAID,
    ...NOTHING_ASKED,
    source: "cache",
    isFailure: false,
    additionals: 0,
    rotated: 0,
    ttlOffsets: [],
    isAuthentic: false,
    lasting: undefined,
  };

  /** The reply is written over `question`, and may be repeated. */
  write(memory: KernelAnswerMemory, block: Buffer, question: Question, reply: WrittenReply, mark: RepeatMark): void {
    const { cached, style } = mark;
    if (cached !== undefined) {
      if (!isWhole(question, reply, cached) || !this.#isAskedAgain(memory, block, question)) return;
      describeCached(this.#brief, block, question, reply, cached);
      memory.rememberBriefly(this.#brief);
      return;
    }
    if (reply.rcode !== RCODE.NOERROR || reply.lacksAddress) {
      // Of a probe of our own the process must see each query.
      if (question.type === TYPE.TXT || !this.#isAskedAgain(memory, block, question)) return;
      if (describeFailure(this.#brief, block, question, reply, style)) memory.rememberBriefly(this.#brief);
      return;
    }
    if (describe(this.#answer, block, question, reply, mark.dataBytes, style)) memory.remember(this.#answer);
  }

  /** Nothing is allocated for a question that is asked once. */
  #isAskedAgain(memory: KernelAnswerMemory, block: Buffer, question: Question): boolean {
    if (!isPlain(question, block[question.offset + FLAGS_AT] as number)) return false;
    describeQuestion(this.#asked, block, question);
    return memory.isAskedAgain(this.#asked);
  }
}

/** Whether nothing was left out because it did not fit: another client may take more. The kernel adds no options. */
function isWhole({ offset, end, records }: Question, { length }: WrittenReply, { reply }: Repeatable): boolean {
  return reply !== undefined && length === end - offset + reply.length + records.optCount * OPT_BYTES;
}

/** Returns whether each query for it gets this answer. */
function describe(
  answer: Writable<KernelAnswer>,
  block: Buffer,
  question: Question,
  { length, rcode, source }: WrittenReply,
  dataBytes: number,
  { compresses, ignoresCase, speaksEdns }: ReplyStyle,
): boolean {
  const { offset, records, hasUpperCase } = question;
  // Where letter case decides, or is repeated, names in lower case are those that matter.
  if (hasUpperCase && !(compresses && ignoresCase)) return false;
  const opts = speaksEdns && records.optCount > 0 ? 1 : 0;
  // The kernel adds no records.
  if (!isPlain(question, block[offset + FLAGS_AT] as number) || u16(block, offset + ADDITIONALS_AT) !== opts) {
    return false;
  }
  const isShuffled = u16(block, offset + ANSWERS_AT) > 1 && dataBytes > 0;
  // It shuffles records of one length, with a pointer as their owner.
  if (isShuffled && !compresses) return false;
  describeReply(answer, block, question, length - opts * OPT_BYTES, rcode);
  answer.shuffledBytes = isShuffled ? POINTER_BYTES + RECORD_FIXED_BYTES + dataBytes : 0;
  answer.source = source;
  return true;
}

function describeCached(
  answer: Writable<BriefKernelAnswer>,
  block: Buffer,
  question: Question,
  { length, rcode }: WrittenReply,
  { reply, sinceMs, forMs, rotated }: Repeatable,
): void {
  const { offset, records } = question;
  describeQuestion(answer, block, question);
  describeReply(answer, block, question, length - records.optCount * OPT_BYTES, rcode);
  answer.source = "cache";
  answer.isFailure = rcode !== RCODE.NOERROR;
  answer.additionals = u16(block, offset + ADDITIONALS_AT) - records.optCount;
  answer.rotated = rotated;
  answer.ttlOffsets = reply?.ttlOffsets ?? [];
  answer.isAuthentic = reply?.isAuthentic === true;
  answer.lasting = { sinceMs, forMs };
}

/** Our own denial, which is the same until the names change; the kernel counts it. Returns whether the kernel can repeat it. */
function describeFailure(
  answer: Writable<BriefKernelAnswer>,
  block: Buffer,
  question: Question,
  { length, rcode, source }: WrittenReply,
  { speaksEdns }: ReplyStyle,
): boolean {
  const { offset, records } = question;
  if (u16(block, offset + ANSWERS_AT) > 0 || u16(block, offset + AUTHORITIES_AT) > 1) return false;
  const opts = speaksEdns ? records.optCount : 0;
  describeQuestion(answer, block, question);
  describeReply(answer, block, question, length - opts * OPT_BYTES, rcode);
  answer.source = source;
  answer.isFailure = true;
  answer.additionals = answer.rotated = 0;
  answer.ttlOffsets = [];
  answer.isAuthentic = false;
  answer.lasting = undefined;
  return true;
}

function describeQuestion(
  asked: Writable<KernelQuestion>,
  block: Buffer,
  { offset, type, folded, foldedLength, records }: Question,
): void {
  asked.type = type;
  asked.name = folded;
  asked.nameBytes = foldedLength;
  asked.isDnssecOk = records.isDnssecOk;
  asked.isUnchecked = ((block[offset + CODES_AT] as number) & CD) !== 0;
}

/** Whether the kernel takes such a question, and sets the flags of the reply: none beside these, as for one that is truncated. */
function isPlain({ type, class: ofClass }: Question, flags: number): boolean {
  return REPEATED_TYPES.has(type) && ofClass === CLASS.IN && (flags & ~(QR | AA | RD)) === 0;
}

/** The reply without OPT is so long. */
function describeReply(
  answer: Writable<PlainAnswer>,
  block: Buffer,
  { offset, end, type, folded, foldedLength, labelCount }: Question,
  length: number,
  rcode: number,
): void {
  answer.type = type;
  answer.name = folded;
  answer.nameBytes = foldedLength;
  answer.labels = labelCount;
  answer.rcode = rcode;
  answer.isAuthoritative = ((block[offset + FLAGS_AT] as number) & AA) !== 0;
  answer.answers = u16(block, offset + ANSWERS_AT);
  answer.authorities = u16(block, offset + AUTHORITIES_AT);
  answer.message = block;
  answer.from = end;
  answer.to = offset + length;
}
