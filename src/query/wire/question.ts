/**
 * Question: what a query asks, read from its bytes before anything is decided. One object is read into again and again;
 * nothing is allocated, and the name is folded, measured and hashed label by label on the way.
 *
 * A query whose question is written in an unusual way (a compressed name, a type that is not there) is rewritten in
 * place into the usual one, so that nobody behind this file ever sees two forms of the same thing.
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

/** What to do with a message, in the order in which the reasons are looked for. */
export type Verdict =
  | "answer"
  /** Not a query at all: silence. */
  | "ignore"
  /** An opcode nobody serves: NOTIMP, header only. */
  | "not-implemented"
  /** A header or a question that cannot be: FORMERR, header only. */
  | "malformed"
  /** A question that can be read, followed by what cannot: FORMERR with the question. */
  | "malformed-behind-question";

export class Question implements QuestionName {
  /** The message's place in its block. */
  offset = 0;
  length = 0;
  /** The offset behind the name, and behind type and class, in the block. */
  nameEnd = 0;
  end = 0;
  /** The offset behind the last record; what follows is not part of the message. */
  messageEnd = 0;
  type = 0;
  class = 0;
  /** The name in lower case, without the zero at its end. */
  readonly folded = Buffer.alloc(256);
  foldedLength = 0;
  labelCount = 0;
  hasUpperCase = false;
  /** The same in the letter case in which it was asked. */
  spelled: Uint8Array = this.folded;
  spelledAt = 0;
  /** After how many bytes the first n labels end, and their hash; index 0 is the empty name. */
  readonly lengthOf = new Uint8Array(LABELS_MAX + 1);
  readonly hashOf = new Int32Array(LABELS_MAX + 1);
  readonly records = new Records();
  readonly #isChecking: boolean;

  /** Whether to take for a question only what can be one for a name: by QUERY, and without pointers. */
  constructor(isChecking = false) {
    this.#isChecking = isChecking;
  }

  get hash(): number {
    return this.hashOf[this.labelCount] as number;
  }

  /** Reads the message at `offset`. `wasCut` says that the network brought more bytes than `length`. */
  read(block: Buffer, offset: number, length: number): Verdict {
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
    // A bare header announces a question and has none: nobody can be told what went wrong with it.
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
        // The first name of a message has nothing in front of it to point to.
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

  /** Writes the name out where it stands and moves what follows it. */
  #unfoldPointers(block: Buffer, start: number): boolean {
    const end = this.offset + this.length;
    const behind = skipName(block, this.offset, start, end);
    if (behind === -1) return false;
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
    block.copyWithin(start + out, behind, end);
    name.copy(block, start, 0, out);
    this.length += start + out - behind;
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

  #readRecords(block: Buffer, answers: number, authorities: number, additionals: number): Verdict {
    const { records } = this;
    const end = this.offset + this.length;
    records.reset();
    let at = this.end;
    if (answers + authorities + additionals > 0) {
      at = this.#readSection(block, ANSWERS_AT, at, end, answers);
      if (at !== -1) at = this.#readSection(block, AUTHORITIES_AT, at, end, authorities);
      // Elsewhere than among the additional records an OPT says nothing.
      records.reset();
      if (at !== -1) at = this.#readSection(block, ADDITIONALS_AT, at, end, additionals);
      if (at === -1) return "malformed-behind-question";
    }
    this.messageEnd = at;
    return "answer";
  }

  /** Walks a section and corrects its count where the message ended early. */
  #readSection(block: Buffer, countAt: number, at: number, end: number, announced: number): number {
    const behind = this.records.walk(block, this.offset, at, end, announced);
    block[this.offset + countAt + 1] = this.records.count;
    return behind;
  }
}
