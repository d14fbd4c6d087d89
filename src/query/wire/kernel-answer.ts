/**
 * A kernel answer: an answer that has just been written, as the kernel can repeat it. It must not depend on anything but the
 * name, the type and the names that the namespace sees: not on the size or the flags of this query, nor on its letter
 * case unless the kernel compares that, too.
 */
import { u16 } from "../../base/dns/bytes.ts";
import { AA, ADDITIONALS_AT, ANSWERS_AT, AUTHORITIES_AT, FLAGS_AT, QR, RD } from "../../base/dns/header.ts";
import { POINTER_BYTES } from "../../base/dns/name.ts";
import { OPT_BYTES } from "../../base/dns/opt.ts";
import { RCODE } from "../../base/dns/rcode.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import { CLASS, RECORD_FIXED_BYTES } from "../../base/dns/record.ts";
import type { KernelAnswerMemory, KernelAnswer } from "../../base/model/kernel-answer.ts";
import type { ReplyStyle } from "../../base/model/behaviour.ts";
import type { LocalSource } from "../../base/model/local-source.ts";
import type { Question } from "./question.ts";

/** A reply that has been written, and the source of its name. */
interface WrittenReply {
  readonly length: number;
  readonly rcode: number;
  /** It has no IPv4 address, although one was queried. */
  readonly lacksAddress: boolean;
  readonly source: LocalSource;
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

  constructor(style: ReplyStyle) {
    this.#style = style;
  }

  get isMarked(): boolean {
    return this.#dataBytes !== NONE;
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

  /** Returns it, too: the reply is not to this question. */
  unmarked(length: number): number {
    this.mark(undefined);
    return length;
  }

  /** The reply is written over `question`. */
  tell(memory: KernelAnswerMemory | undefined, block: Buffer, question: Question, reply: WrittenReply): void {
    const dataBytes = this.#dataBytes;
    this.#dataBytes = NONE;
    // The process records each lookup that fails.
    if (memory === undefined || reply.rcode !== RCODE.NOERROR || reply.lacksAddress) return;
    const known = kernelAnswer(block, question, reply, { dataBytes, ...this.#style });
    if (known !== undefined) memory.remember(known);
  }
}

/** Undefined if another query for it may get another answer. */
function kernelAnswer(
  block: Buffer,
  question: Question,
  { length, rcode, source }: WrittenReply,
  { dataBytes, compresses, ignoresCase, speaksEdns }: ReplyStyle & { readonly dataBytes: number },
): KernelAnswer | undefined {
  const { offset, end, type, folded, foldedLength, labelCount, records, hasUpperCase } = question;
  if (!REPEATED_TYPES.has(type)) return undefined;
  // Where letter case decides, or is repeated, names in lower case are those that matter.
  if (question.class !== CLASS.IN || (hasUpperCase && !(compresses && ignoresCase))) return undefined;
  const flags = block[offset + FLAGS_AT] as number;
  const opts = speaksEdns && records.optCount > 0 ? 1 : 0;
  // The kernel sets no other flags, as for a reply that is truncated, and adds no records.
  if ((flags & ~(QR | AA | RD)) !== 0 || u16(block, offset + ADDITIONALS_AT) !== opts) return undefined;
  const answers = u16(block, offset + ANSWERS_AT);
  const isShuffled = answers > 1 && dataBytes > 0;
  // It shuffles records of one length, with a pointer as their owner.
  if (isShuffled && !compresses) return undefined;
  return {
    type,
    name: folded,
    nameBytes: foldedLength,
    labels: labelCount,
    rcode,
    isAuthoritative: (flags & AA) !== 0,
    answers,
    authorities: u16(block, offset + AUTHORITIES_AT),
    message: block,
    from: end,
    to: offset + length - opts * OPT_BYTES,
    shuffledBytes: isShuffled ? POINTER_BYTES + RECORD_FIXED_BYTES + dataBytes : 0,
    source,
  };
}
