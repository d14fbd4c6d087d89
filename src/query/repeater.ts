import type { ReplyStyle } from "../base/model/behaviour.ts";
import type { Outcome } from "./record/outcome.ts";
import type { Question } from "./wire/question.ts";
import type { SharedReply } from "./wire/shared-reply.ts";

/**
 * Gives answers of the process to a client again, so that such queries do not reach the process. A client without one costs a look at an
 * empty field for each answer that may be repeated.
 */
export interface Repeater {
  /**
   * This answer has been written over `question`. It depends on nothing but the question and the names that the client sees, or is a reply of
   * the cache. What is wanted of it is copied.
   */
  offer(block: Buffer, question: Question, reply: WrittenReply, mark: RepeatMark): void;
  /** No answer that was offered is valid any more. */
  forget(): void;
  /** Queries from these source ports are dns11's own, and are for the process. */
  leave(ports: Iterable<number>): void;
  /** Counts what it has answered meanwhile as the client's. */
  collect(): void;
}

export type WrittenReply = Readonly<Pick<Outcome, "length" | "rcode" | "isStream" | "lacksAddress" | "source">>;

/** How a cached reply that has been written may be repeated. */
export interface Repeatable {
  /** Undefined if it may not. */
  reply: SharedReply | undefined;
  /** Its TTLs began to count so long ago. */
  sinceMs: number;
  /** For so long nothing but its TTLs changes. */
  forMs: number;
  /** The last records, as many as this, are addresses, of which another one is the first each time. */
  rotated: number;
}

/** Whether the answer that is being written may be repeated, and how. */
export class RepeatMark {
  readonly style: ReplyStyle;
  #dataBytes: number | undefined;
  #cached: Repeatable | undefined;

  constructor(style: ReplyStyle) {
    this.style = style;
  }

  get isSet(): boolean {
    return this.#dataBytes !== undefined || this.#cached !== undefined;
  }

  /** Each reply has its records in another order, if they have data of this length; else 0. */
  get dataBytes(): number {
    return this.#dataBytes ?? 0;
  }

  /** Undefined where it is not a reply of the cache. */
  get cached(): Repeatable | undefined {
    return this.#cached;
  }

  /** The answer being written may be repeated. Its records are shuffled if they have data of that length. */
  set(dataBytes: 0 | 4 | 16 | undefined): void {
    this.#dataBytes = dataBytes;
  }

  /** The same for a reply of `length` bytes, which is returned. */
  of(length: number): number {
    this.#dataBytes = 0;
    return length;
  }

  /** The same for a reply of the cache. */
  ofCached(length: number, repeatable: Repeatable): number {
    this.#cached = repeatable;
    return length;
  }

  /** Returns it, too: the reply is not to this question, or not to all who ask it. */
  without(length: number): number {
    this.#dataBytes = this.#cached = undefined;
    return length;
  }

  /** The reply is written over `question`. By TCP nothing is repeated. */
  offer(repeater: Repeater | undefined, block: Buffer, question: Question, reply: WrittenReply): void {
    try {
      if (repeater !== undefined && !reply.isStream) repeater.offer(block, question, reply, this);
    } finally {
      this.#dataBytes = this.#cached = undefined;
    }
  }
}
