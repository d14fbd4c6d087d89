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
import type {
  AskedQuestion,
  BriefKernelAnswer,
  KernelAnswerMemory,
  KernelAnswer,
} from "../../base/model/kernel-answer.ts";
import type { ReplyStyle } from "../../base/model/behaviour.ts";
import type { LocalSource } from "../../base/model/local-source.ts";
import type { Question } from "./question.ts";
import type { SharedReply } from "./shared-reply.ts";

/** A reply that has been written, and the source of its name. */
interface WrittenReply {
  readonly length: number;
  readonly rcode: number;
  /** By TCP, which the kernel does not answer. */
  readonly isStream: boolean;
  /** It has no IPv4 address, although one was queried. */
  readonly lacksAddress: boolean;
  readonly source: LocalSource;
}

/** How a cached reply that has been written may be repeated. */
export interface Repeatable {
  /** Undefined if it may not. */
  reply: SharedReply | undefined;
  /** Its TTLs began to count so long ago. */
  sinceMs: number;
  /** For so long nothing but its TTLs changes. */
  forMs: number;
}

const NONE = -1;
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

/** Tells the kernel what the process has answered, where the answer is marked as repeatable. */
export class KernelAnswerMarker {
  readonly #style: ReplyStyle;
  #dataBytes = NONE;
  #cached: Repeatable | undefined;
  /** Reused for every question. */
  readonly #asked: { -readonly [Key in keyof AskedQuestion]: AskedQuestion[Key] } = {
    type: 0,
    name: new Uint8Array(0),
    nameBytes: 0,
    isDnssecOk: false,
    isUnchecked: false,
  };

  constructor(style: ReplyStyle) {
    this.#style = style;
  }

  get isMarked(): boolean {
    return this.#dataBytes !== NONE || this.#cached !== undefined;
  }

  /** The answer being written may be repeated. Its records are shuffled if they have data of that length. */
  mark(dataBytes: 0 | 4 | 16 | undefined): void {
    this.#dataBytes = dataBytes ?? NONE;
  }

  /** The same for a reply of `length` bytes, which is returned. */
  marked(length: number): number {
    this.mark(0);
    return length;
  }

  /** The same for a reply of the cache. */
  markedCached(length: number, repeatable: Repeatable): number {
    this.#cached = repeatable;
    return length;
  }

  /** Returns it, too: the reply is not to this question. */
  unmarked(length: number): number {
    this.mark(undefined);
    this.#cached = undefined;
    return length;
  }

  /** The reply is written over `question`. */
  tell(memory: KernelAnswerMemory | undefined, block: Buffer, question: Question, reply: WrittenReply): void {
    const [dataBytes, cached] = [this.#dataBytes, this.#cached];
    this.#dataBytes = NONE;
    this.#cached = undefined;
    if (memory === undefined || reply.isStream) return;
    if (cached !== undefined) {
      if (!isWhole(question, reply, cached) || !this.#isAskedAgain(memory, block, question)) return;
      memory.rememberBriefly(cachedAnswer(block, question, reply, cached));
      return;
    }
    if (reply.rcode !== RCODE.NOERROR || reply.lacksAddress) {
      // Of a probe of our own the process must see each query.
      if (question.type === TYPE.TXT || !this.#isAskedAgain(memory, block, question)) return;
      const failure = localFailure(block, question, reply, this.#style);
      if (failure !== undefined) memory.rememberBriefly(failure);
      return;
    }
    const known = kernelAnswer(block, question, reply, { dataBytes, ...this.#style });
    if (known !== undefined) memory.remember(known);
  }

  /** Nothing is allocated for a question that is asked once. */
  #isAskedAgain(memory: KernelAnswerMemory, block: Buffer, question: Question): boolean {
    if (!isPlain(question, block[question.offset + FLAGS_AT] as number)) return false;
    const asked = this.#asked;
    asked.type = question.type;
    asked.name = question.folded;
    asked.nameBytes = question.foldedLength;
    asked.isDnssecOk = question.records.isDnssecOk;
    asked.isUnchecked = ((block[question.offset + CODES_AT] as number) & CD) !== 0;
    return memory.isAskedAgain(asked);
  }
}

/** Whether nothing was left out because it did not fit: another client may take more. The kernel adds no options. */
function isWhole({ offset, end, records }: Question, { length }: WrittenReply, { reply }: Repeatable): boolean {
  return reply !== undefined && length === end - offset + reply.length + records.optCount * OPT_BYTES;
}

/** Undefined if another query for it may get another answer. */
function kernelAnswer(
  block: Buffer,
  question: Question,
  { length, rcode, source }: WrittenReply,
  { dataBytes, compresses, ignoresCase, speaksEdns }: ReplyStyle & { readonly dataBytes: number },
): KernelAnswer | undefined {
  const { offset, records, hasUpperCase } = question;
  // Where letter case decides, or is repeated, names in lower case are those that matter.
  if (hasUpperCase && !(compresses && ignoresCase)) return undefined;
  const flags = block[offset + FLAGS_AT] as number;
  const opts = speaksEdns && records.optCount > 0 ? 1 : 0;
  // The kernel adds no records.
  if (!isPlain(question, flags) || u16(block, offset + ADDITIONALS_AT) !== opts) return undefined;
  const answers = u16(block, offset + ANSWERS_AT);
  const isShuffled = answers > 1 && dataBytes > 0;
  // It shuffles records of one length, with a pointer as their owner.
  if (isShuffled && !compresses) return undefined;
  return {
    ...repeated(block, question, length - opts * OPT_BYTES, rcode),
    shuffledBytes: isShuffled ? POINTER_BYTES + RECORD_FIXED_BYTES + dataBytes : 0,
    source,
  };
}

function cachedAnswer(
  block: Buffer,
  question: Question,
  { length, rcode }: WrittenReply,
  { reply, sinceMs, forMs }: Repeatable,
): BriefKernelAnswer {
  const { offset, records } = question;
  return {
    ...repeated(block, question, length - records.optCount * OPT_BYTES, rcode),
    ...askedFor(block, question),
    source: "cache",
    isFailure: rcode !== RCODE.NOERROR,
    additionals: u16(block, offset + ADDITIONALS_AT) - records.optCount,
    ttlOffsets: reply?.ttlOffsets ?? [],
    isAuthentic: reply?.isAuthentic === true,
    lasting: { sinceMs, forMs },
  };
}

/** Our own denial, which is the same until the names change; the kernel counts it. */
function localFailure(
  block: Buffer,
  question: Question,
  { length, rcode, source }: WrittenReply,
  { speaksEdns }: ReplyStyle,
): BriefKernelAnswer | undefined {
  const { offset, records } = question;
  const opts = speaksEdns ? records.optCount : 0;
  const [answers, authorities] = [u16(block, offset + ANSWERS_AT), u16(block, offset + AUTHORITIES_AT)];
  if (answers > 0 || authorities > 1) return undefined;
  return {
    ...repeated(block, question, length - opts * OPT_BYTES, rcode),
    ...askedFor(block, question),
    source,
    isFailure: true,
    additionals: 0,
    ttlOffsets: [],
    isAuthentic: false,
    lasting: undefined,
  };
}

function askedFor(block: Buffer, { offset, records }: Question): Pick<BriefKernelAnswer, "isDnssecOk" | "isUnchecked"> {
  return {
    isDnssecOk: records.isDnssecOk,
    isUnchecked: ((block[offset + CODES_AT] as number) & CD) !== 0,
  };
}

/** Whether the kernel takes such a question, and sets the flags of the reply: none beside these, as for one that is truncated. */
function isPlain({ type, class: ofClass }: Question, flags: number): boolean {
  return REPEATED_TYPES.has(type) && ofClass === CLASS.IN && (flags & ~(QR | AA | RD)) === 0;
}

/** What all have in common; the reply without OPT is so long. */
function repeated(
  block: Buffer,
  { offset, end, type, folded, foldedLength, labelCount }: Question,
  length: number,
  rcode: number,
): Omit<KernelAnswer, "shuffledBytes" | "source"> {
  return {
    type,
    name: folded,
    nameBytes: foldedLength,
    labels: labelCount,
    rcode,
    isAuthoritative: ((block[offset + FLAGS_AT] as number) & AA) !== 0,
    answers: u16(block, offset + ANSWERS_AT),
    authorities: u16(block, offset + AUTHORITIES_AT),
    message: block,
    from: end,
    to: offset + length,
  };
}
