/**
 * Question: the question of a query, parsed before anything is decided. One object is reused for all queries; nothing
 * is allocated, and the name is lower-cased, measured and hashed label by label in one pass.
 *
 * An unusual encoding of the question (a compressed name, a missing type) is rewritten in place into the usual one, so
 * that the rest of the program sees only one form.
 */
import { u16 } from "../../base/dns/bytes.ts";
import {
  ADDITIONALS_AT,
  ANSWERS_AT,
  AUTHORITIES_AT,
  HEADER_BYTES,
  OPCODE,
  QUESTIONS_AT,
  isReply,
  opcodeOf,
} from "../../base/dns/header.ts";
import { FOLD, LABELS_MAX, LABEL_BYTES_MAX, NAME_BYTES_MAX, POINTER, pointerTarget } from "../../base/dns/name.ts";
import { CLASS_AT, QUESTION_FIXED_BYTES } from "../../base/dns/record.ts";
import { HASH_BASIS, hashByte } from "../../base/model/label-table.ts";
import type { QuestionName } from "../../base/model/visible-names.ts";
import { resetNameSteps, skipName } from "./name.ts";
import { Records } from "./records.ts";

/** What to do with a message, in the order in which it is checked. */
export type QuestionResult =
  | "answer"
  /** It is no query and gets no reply. */
  | "ignore"
  /** Unsupported opcode: NOTIMP, header only. */
  | "not-implemented"
  /** Invalid header or question: FORMERR, header only. */
  | "malformed"
  /** A valid question with invalid records after it: FORMERR with the question. */
  | "malformed-after-question";

export class Question implements QuestionName {
  /** The offset of the message in its block. */
  offset = 0;
  length = 0;
  /** The offsets after the name and after type and class, in the block. */
  nameEnd = 0;
  end = 0;
  /** The offset after the last record; trailing bytes are not part of the message. */
  messageEnd = 0;
  type = 0;
  class = 0;
  /** The name in lower case, without the root label. */
  readonly folded = Buffer.alloc(256);
  foldedLength = 0;
  labelCount = 0;
  hasUpperCase = false;
  /** The name in its original letter case. */
  spelled: Uint8Array = this.folded;
  spelledAt = 0;
  /** Length and hash of the first n labels; index 0 is the empty name. */
  readonly lengthOf = new Uint8Array(LABELS_MAX + 1);
  readonly hashOf = new Int32Array(LABELS_MAX + 1);
  readonly records = new Records();
  readonly #isChecking: boolean;

  /** `isChecking`: accept only opcode QUERY, and no pointers in the question. */
  constructor(isChecking = false) {
    this.#isChecking = isChecking;
  }

  get hash(): number {
    return this.hashOf[this.labelCount] as number;
  }

  /** Lowers the UDP payload size that the query announces to at most this, and returns it; 0 without an OPT. */
  limitUdpSize(bytes: number): number {
    this.records.optUdpSize = Math.min(this.records.optUdpSize, bytes);
    return this.records.optUdpSize;
  }

  /** Parses the message at `offset`. */
  read(block: Buffer, offset: number, length: number): QuestionResult {
    this.offset = offset;
    this.length = length;
    this.spelled = block;
    this.spelledAt = offset + HEADER_BYTES;
    if (length < HEADER_BYTES) return "ignore";
    resetNameSteps(length);
    if (isReply(block, offset)) return "ignore";
    const opcode = opcodeOf(block, offset);
    if (opcode !== OPCODE.QUERY && (opcode !== OPCODE.NOTIFY || this.#isChecking)) return "not-implemented";
    if (u16(block, offset + QUESTIONS_AT) !== 1) return "malformed";
    const answers = u16(block, offset + ANSWERS_AT);
    const authorities = u16(block, offset + AUTHORITIES_AT);
    const additionals = u16(block, offset + ADDITIONALS_AT);
    if (answers > 1 || authorities > 1 || additionals > 2) return "malformed";
    // A bare header announces a question and has none, so there is nothing to reply to.
    if (length === HEADER_BYTES) return "ignore";
    if (!this.#readName(block, offset + HEADER_BYTES) || !this.#readType(block)) return "malformed";
    return this.#readRecords(block, answers, authorities, additionals);
  }

  #readName(block: Buffer, start: number): boolean {
    const end = this.offset + this.length;
    const { folded, lengthOf, hashOf } = this;
    let at = start;
    let out = 0;
    let labels = 0;
    let hash = HASH_BASIS;
    let changed = 0;
    for (;;) {
      if (at >= end) return false;
      const size = block[at] as number;
      if (size === 0) break;
      if (size > LABEL_BYTES_MAX) {
        // The first name of a message has no earlier name to point to.
        if (size < POINTER || this.#isChecking) return false;
        return this.#unfoldPointers(block, start) && this.#readName(block, start);
      }
      const labelEnd = at + size + 1;
      if (labelEnd > end || out + size + 1 > NAME_BYTES_MAX) return false;
      while (at < labelEnd) {
        const byte = block[at++] as number;
        const lower = FOLD[byte] as number;
        changed |= byte ^ lower;
        folded[out++] = lower;
        hash = hashByte(hash, lower);
      }
      labels++;
      lengthOf[labels] = out;
      hashOf[labels] = hash;
    }
    hashOf[0] = HASH_BASIS;
    this.nameEnd = at + 1;
    this.foldedLength = out;
    this.labelCount = labels;
    this.hasUpperCase = changed !== 0;
    return true;
  }

  /** Writes the name out in place and moves the following bytes. */
  #unfoldPointers(block: Buffer, start: number): boolean {
    const end = this.offset + this.length;
    const after = skipName(block, this.offset, start, end);
    if (after === -1) return false;
    const name = Buffer.alloc(NAME_BYTES_MAX + 1);
    let out = 0;
    for (let at = start; ;) {
      const size = block[at] as number;
      if (size >= POINTER) {
        at = this.offset + pointerTarget(block, at);
        continue;
      }
      block.copy(name, out, at, at + size + 1);
      out += size + 1;
      if (size === 0) break;
      at += size + 1;
    }
    block.copyWithin(start + out, after, end);
    name.copy(block, start, 0, out);
    this.length += start + out - after;
    return true;
  }

  /** Type and class; a message may end before either, which then is zero. */
  #readType(block: Buffer): boolean {
    const left = this.offset + this.length - this.nameEnd;
    this.end = this.nameEnd + QUESTION_FIXED_BYTES;
    if (left < QUESTION_FIXED_BYTES) {
      if (left % 2 !== 0) return false;
      block.fill(0, this.nameEnd + left, this.end);
      this.length += QUESTION_FIXED_BYTES - left;
    }
    this.type = u16(block, this.nameEnd);
    this.class = u16(block, this.nameEnd + CLASS_AT);
    return true;
  }

  #readRecords(block: Buffer, answers: number, authorities: number, additionals: number): QuestionResult {
    const { records } = this;
    const end = this.offset + this.length;
    records.reset();
    let at = this.end;
    if (answers + authorities + additionals > 0) {
      at = this.#readSection(block, ANSWERS_AT, at, end, answers);
      if (at !== -1) at = this.#readSection(block, AUTHORITIES_AT, at, end, authorities);
      // An OPT counts only in the additional section.
      records.reset();
      if (at !== -1) at = this.#readSection(block, ADDITIONALS_AT, at, end, additionals);
      if (at === -1) return "malformed-after-question";
    }
    this.messageEnd = at;
    return "answer";
  }

  /** Reads a section and corrects its count if the message ends early. */
  #readSection(block: Buffer, countAt: number, at: number, end: number, announced: number): number {
    const after = this.records.walk(block, this.offset, at, end, announced);
    block[this.offset + countAt + 1] = this.records.count;
    return after;
  }
}
