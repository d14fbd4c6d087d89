/**
 * UpstreamSocket: one connected UDP socket to a server, shared by many queries and exchanged for another one before
 * anybody can learn its port. The kernel passes on only what the server sends; of that, a reply counts that has the id
 * and the question of a query that waits here. Several that have not are a sign that somebody is guessing.
 */
import { setU16, u16 } from "../../base/dns/bytes.ts";
import { HEADER_BYTES, ID_AT, QUESTIONS_AT, idOf, isReply, rcodeOf } from "../../base/dns/header.ts";
import { FOLD } from "../../base/dns/name.ts";
import { RCODE } from "../../base/dns/rcode.ts";
import { QUESTION_FIXED_BYTES } from "../../base/dns/record.ts";
import { MESSAGE_BYTES_MAX } from "../../base/dns/sizes.ts";
import { LIMITS } from "../../base/limits.ts";
import { errnoName, forceReceiveBuffer, lastErrno, send } from "../../kernel/libc.ts";
import type { MessageBlock } from "../../kernel/message-block.ts";
import { UdpWatch } from "../../kernel/udp-watch.ts";
import type { RandomIds } from "../../base/lib/random-ids.ts";
import { guard } from "../../base/lib/guard.ts";
import type { TurnBudget } from "./turn-budget.ts";

/** One query that waits for its reply. Exactly one of the three is called, once. */
export interface Exchange {
  /** The whole query; its id is written by the socket. Its question ends at `questionEnd`. */
  readonly message: Buffer;
  readonly questionEnd: number;
  /** The number of whose query it is. */
  readonly clientNumber: number;
  /** False where nobody waits for it any more. */
  readonly isWanted?: boolean;
  /** The bytes are valid until it returns. */
  onReply(message: Buffer): void;
  /** The server cannot be reached. */
  onUnreachable(reason: string): void;
  /** Somebody is forging replies. */
  onForgery(): void;
}

export interface SocketParts {
  readonly block: MessageBlock;
  /** Shared by all sockets to servers. */
  readonly budget: TurnBudget;
  readonly ids: RandomIds;
  readonly now: () => number;
}

const ECONNREFUSED = 111;
const EAGAIN = 11;
/** What a server may say of a query that it could not read; nothing about a name. */
const REFUSALS = new Set<number>([RCODE.FORMERR, RCODE.SERVFAIL, RCODE.NOTIMP, RCODE.REFUSED]);
/** A query that has been answered, or that nobody waits for: a late reply to it is no forgery. */
const DONE = Symbol("over");

export class UpstreamSocket {
  readonly #fd: number;
  readonly #watch: UdpWatch;
  readonly #parts: SocketParts;
  readonly #waiting = new Map<number, Exchange | typeof DONE>();
  readonly #bornMs: number;
  #pending = 0;
  #asked = 0;
  #wrong = 0;
  #lastAskedMs: number;
  #isClosed = false;

  /** Takes over a connected socket. */
  constructor(fd: number, family: 4 | 6, parts: SocketParts) {
    this.#fd = fd;
    this.#parts = parts;
    this.#bornMs = this.#lastAskedMs = parts.now();
    const onPacket = (message: Buffer): void => void guard.run("upstream", 0, () => this.#onReadable(message));
    const onError = (error: Error): void => void guard.run("upstream", 0, () => this.#onUnreachable(error.message));
    this.#watch = new UdpWatch(fd, family, onPacket, onError);
    forceReceiveBuffer(fd, LIMITS.udpReceiveBytes);
    // It is kept open for queries to come; that is no reason for the process to live.
    this.#watch.unref();
  }

  /** Nobody waits for anything here. */
  get isIdle(): boolean {
    return this.#pending === 0;
  }

  get lastAskedMs(): number {
    return this.#lastAskedMs;
  }

  /** It has had its queries, or its time. */
  isSpent(nowMs: number): boolean {
    return (
      this.#asked >= LIMITS.upstreamSocketQueries ||
      this.#wrong >= LIMITS.upstreamWrongReplies ||
      nowMs - this.#bornMs >= LIMITS.upstreamSocketMs
    );
  }

  ask(exchange: Exchange): void {
    const { message } = exchange;
    const id = this.#freshId();
    setU16(message, ID_AT, id);
    this.#waiting.set(id, exchange);
    this.#pending++;
    this.#asked++;
    this.#lastAskedMs = this.#parts.now();
    // A refusal that came for an earlier query is told by the next send; it is one of this server's all the same.
    if (send(this.#fd, message) >= 0) return;
    const errno = lastErrno();
    // Nobody is called back before this call has returned: whoever asks may be in the middle of something else.
    if (errno !== EAGAIN) guard.defer(exchange.clientNumber, () => this.#onUnreachable(errnoName(errno)));
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#waiting.clear();
    this.#watch.close();
  }

  #freshId(): number {
    for (;;) {
      const id = this.#parts.ids.next();
      if (!this.#waiting.has(id)) return id;
    }
  }

  #onReadable(first: Buffer): void {
    const { block, budget } = this.#parts;
    this.#onReply(first);
    budget.spend(1);
    if (this.#isClosed || this.#watch.isResting) return;
    if (budget.left <= 0) return this.#watch.rest();
    const count = block.receive(this.#fd, 0, MESSAGE_BYTES_MAX, budget.left);
    if (count > 0) this.#watch.rest();
    budget.spend(count);
    const errno = block.receiveErrno;
    for (let slot = 0; slot < count && !this.#isClosed; slot++) {
      const at = block.offsetOf(slot);
      this.#onReply(block.data.subarray(at, at + block.lengthOf(slot)));
    }
    if (errno === ECONNREFUSED && !this.#isClosed) this.#onUnreachable(errnoName(errno));
  }

  #onReply(message: Buffer): void {
    if (message.length < HEADER_BYTES) return this.#onWrong();
    const id = idOf(message);
    const exchange = this.#waiting.get(id);
    if (exchange === DONE) return;
    if (exchange === undefined || !isReplyTo(message, exchange)) return this.#onWrong();
    this.#end(id);
    guard.run("upstream", exchange.clientNumber, () => exchange.onReply(message));
  }

  #end(id: number): void {
    this.#waiting.set(id, DONE);
    this.#pending--;
  }

  #onWrong(): void {
    this.#wrong++;
    if (this.#wrong !== LIMITS.upstreamWrongReplies) return;
    for (const [id, exchange] of this.#takeAll()) {
      this.#waiting.set(id, DONE);
      guard.run("upstream", exchange.clientNumber, () => exchange.onForgery());
    }
  }

  #onUnreachable(reason: string): void {
    for (const [id, exchange] of this.#takeAll()) {
      this.#waiting.set(id, DONE);
      guard.run("upstream", exchange.clientNumber, () => exchange.onUnreachable(reason));
    }
  }

  #takeAll(): [number, Exchange][] {
    const all: [number, Exchange][] = [];
    for (const [id, exchange] of this.#waiting) if (exchange !== DONE) all.push([id, exchange]);
    this.#pending = 0;
    return all;
  }
}

/** The same question, in whatever letter case. A server that refuses a query as malformed may leave the question out. */
export function isReplyTo(reply: Buffer, { message, questionEnd }: Pick<Exchange, "message" | "questionEnd">): boolean {
  if (!isReply(reply)) return false;
  const questions = u16(reply, QUESTIONS_AT);
  if (questions === 0) return reply.length === HEADER_BYTES && REFUSALS.has(rcodeOf(reply));
  if (questions !== 1 || reply.length < questionEnd) return false;
  const nameEnd = questionEnd - QUESTION_FIXED_BYTES;
  for (let at = HEADER_BYTES; at < nameEnd; at++) {
    if (FOLD[reply[at] as number] !== FOLD[message[at] as number]) return false;
  }
  return reply.compare(message, nameEnd, questionEnd, nameEnd, questionEnd) === 0;
}
