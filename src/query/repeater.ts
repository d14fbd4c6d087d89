import type { ReplyStyle } from "../base/model/behaviour.ts";
import type { Outcome } from "./record/outcome.ts";
import type { Question } from "./wire/question.ts";
import type { SharedReply } from "./wire/shared-reply.ts";

/**
 * Gives answers of the process to a client again, so that such queries do not reach the process. For a client without one, each answer that
 * may be repeated costs a look at an empty field.
 */
export interface Repeater {
  /**
   * The answer has been written over `question`. It depends on nothing but the question and the names that the client sees, or is a reply
   * from the cache. The buffers are reused, so copy what is needed.
   */
  offer(block: Buffer, question: Question, reply: WrittenReply, mark: RepeatMark): void;
  /** All answers that were offered are invalid from now on. */
  forget(): void;
  /** Leaves queries from these source ports to the process, because they are dns11's own. */
  leave(ports: Iterable<number>): void;
  /** Counts what it has answered since the last call as the client's queries. */
  collect(): void;
}

export type WrittenReply = Readonly<Pick<Outcome, "length" | "rcode" | "isStream" | "lacksAddress" | "source">>;

/** How a cached reply that has been written may be repeated. */
export interface Repeatable {
  /** Undefined if it may not. */
  reply: SharedReply | undefined;
  /** How long ago its TTLs began to count. */
  sinceMs: number;
  /** For how long nothing but its TTLs changes. */
  forMs: number;
  /** How many of the last records are addresses that change their order each time. */
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

  /** The length of the data of its records, if each reply has them in another order; else 0. */
  get dataBytes(): number {
    return this.#dataBytes ?? 0;
  }

  /** Undefined unless the answer is a reply from the cache. */
  get cached(): Repeatable | undefined {
    return this.#cached;
  }

  /**
   * Marks the answer as one that may be repeated, or with undefined as one that may not. Its records are shuffled if they have data of that
   * length.
   */
  set(dataBytes: 0 | 4 | 16 | undefined): void {
    this.#dataBytes = dataBytes;
  }

  /** Marks an answer whose records keep their order. Returns `length`, for the caller to return. */
  of(length: number): number {
    this.#dataBytes = 0;
    return length;
  }

  /** Marks a reply from the cache. Returns `length`, for the caller to return. */
  ofCached(length: number, repeatable: Repeatable): number {
    this.#cached = repeatable;
    return length;
  }

  /** Removes the mark: the reply is not to this question, or not for all clients. Returns `length`, for the caller to return. */
  without(length: number): number {
    this.#dataBytes = this.#cached = undefined;
    return length;
  }

  /** Offers the reply that is written over `question`, if it is marked. Replies over TCP are not repeated. */
  offer(repeater: Repeater | undefined, block: Buffer, question: Question, reply: WrittenReply): void {
    try {
      if (repeater !== undefined && !reply.isStream) repeater.offer(block, question, reply, this);
    } finally {
      this.#dataBytes = this.#cached = undefined;
    }
  }
}
