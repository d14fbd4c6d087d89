/**
 * KnownAnswer: an answer that has just been written, as the kernel can repeat it. It must not depend on anything but the
 * name, the type and the names that the namespace sees: not on the letter case, the size or the flags of this query.
 */
import { u16 } from "../../base/dns/bytes.ts";
import { ANSWERS_AT, AUTHORITIES_AT, FLAGS_AT, QR, RD, rcodeOf } from "../../base/dns/header.ts";
import { POINTER_BYTES } from "../../base/dns/name.ts";
import { OPT_BYTES } from "../../base/dns/opt.ts";
import { CLASS, RECORD_FIXED_BYTES } from "../../base/dns/record.ts";
import type { AnswerMemory, KnownAnswer } from "../../base/model/answer-memory.ts";
import type { Behaviour } from "../../base/model/behaviour.ts";
import type { LocalSource } from "../../base/model/local-source.ts";
import type { Question } from "./question.ts";

/** The length of a reply that has been written, and the source of its name. */
interface WrittenReply {
  readonly length: number;
  readonly source: LocalSource;
}

const NONE = -1;

/** Tells the kernel what the process has answered, where the answer is marked as repeatable. */
export class Repeats {
  /** Owner names are pointers to the question, letter case does not decide, and OPT is answered as the kernel does. */
  readonly #isOn: boolean;
  #dataBytes = NONE;

  constructor({ compresses, ignoresCase, speaksEdns }: Behaviour) {
    this.#isOn = compresses && ignoresCase && speaksEdns;
  }

  get isMarked(): boolean {
    return this.#dataBytes !== NONE;
  }

  /** The answer being written may be repeated. Its records are shuffled if they have data of that length. */
  mark(dataBytes: 0 | 4 | 16): void {
    this.#dataBytes = dataBytes;
  }

  /** The reply is written over `question`. */
  tell(memory: AnswerMemory | undefined, block: Buffer, question: Question, reply: WrittenReply): void {
    const dataBytes = this.#dataBytes;
    this.#dataBytes = NONE;
    if (memory === undefined || !this.#isOn) return;
    const known = knownAnswer(block, question, reply, dataBytes);
    if (known !== undefined) memory.remember(known);
  }
}

/** Undefined if another query for it may get another answer. */
function knownAnswer(
  block: Buffer,
  question: Question,
  { length, source }: WrittenReply,
  dataBytes: number,
): KnownAnswer | undefined {
  const { offset, end, type, folded, foldedLength, labelCount, records } = question;
  // The kernel sets no others: not for a reply that is truncated, or that a zone vouches for.
  const hasOtherFlags = ((block[offset + FLAGS_AT] as number) & ~(QR | RD)) !== 0;
  if (question.class !== CLASS.IN || hasOtherFlags) return undefined;
  const answers = u16(block, offset + ANSWERS_AT);
  return {
    type,
    name: folded,
    nameBytes: foldedLength,
    labels: labelCount,
    rcode: rcodeOf(block, offset),
    answers,
    authorities: u16(block, offset + AUTHORITIES_AT),
    message: block,
    from: end,
    to: offset + length - (records.optCount > 0 ? OPT_BYTES : 0),
    shuffledBytes: answers > 1 && dataBytes > 0 ? POINTER_BYTES + RECORD_FIXED_BYTES + dataBytes : 0,
    source,
  };
}
