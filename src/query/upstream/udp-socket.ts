/**
 * UpstreamSocket: one connected UDP socket to a server, shared by many queries and replaced before an attacker can
 * learn its port. The kernel only delivers packets from the server. A reply must match the id and the question of a
 * waiting query; several that do not match indicate spoofing.
 */
import { setU16, u16 } from "../../base/dns/bytes.ts";
import { HEADER_BYTES, ID_AT, QUESTIONS_AT, idOf, isReply, rcodeOf, MESSAGE_BYTES_MAX } from "../../base/dns/header.ts";
import { FOLD } from "../../base/dns/name.ts";
import { RCODE } from "../../base/dns/rcode.ts";
import { QUESTION_FIXED_BYTES } from "../../base/dns/record.ts";
import { LIMITS } from "../../base/limits.ts";
import { errnoName, forceReceiveBuffer, lastErrno, send } from "../../kernel/libc.ts";
import type { MessageBlock } from "../../kernel/message-block.ts";
import { CONNECTED, type PacketBatch, type PacketSender } from "../../kernel/packet-batch.ts";
import { UdpWatch } from "../../kernel/udp-watch.ts";
import type { RandomIds } from "../../base/lib/random-ids.ts";
import { codeOf } from "../../base/lib/fault.ts";
import { guard } from "../../base/lib/guard.ts";

/** One query that waits for its reply. Exactly one of the three callbacks is called, once. */
export interface Exchange {
  /** The whole query; the socket writes its id. Its question ends at `questionEnd`. */
  readonly message: Buffer;
  readonly questionEnd: number;
  /** The number of the client. */
  readonly clientNumber: number;
  /** False if no client waits any more. */
  readonly isWanted?: boolean;
  /** The bytes are valid until it returns. */
  onReply(message: Buffer): void;
  /** The server cannot be reached. */
  onUnreachable(reason: string): void;
  /** Forged replies are arriving. */
  onForgery(): void;
}

export interface SocketParts {
  readonly block: MessageBlock;
  readonly batch: PacketBatch;
  /** Shared by all sockets to servers. */
  readonly budget: ReplyBudget;
  readonly ids: RandomIds;
  readonly now: () => number;
}

/** Where errors are recorded. */
export interface SocketErrors {
  /** What is suspected of the server when a socket is opened. */
  readonly suspicion: number;
  recordSocketError(suspicion: number, reason: string): void;
}

const ECONNREFUSED = 111;
const EAGAIN = 11;
/** Codes with which a server rejects a query that it could not read; they do not concern the name. */
const REFUSALS = new Set<number>([RCODE.FORMERR, RCODE.SERVFAIL, RCODE.NOTIMP, RCODE.REFUSED]);
/** A query that has been answered or abandoned: a late reply to it is no forgery. */
const DONE = Symbol("done");

export class UpstreamSocket implements PacketSender<number> {
  readonly fd: number;
  readonly #watch: UdpWatch;
  readonly #parts: SocketParts;
  readonly #waiting = new Map<number, Exchange | typeof DONE>();
  readonly #openedMs: number;
  readonly #errors: SocketErrors;
  /** What was suspected of the server when it was opened. */
  readonly #suspicion: number;
  /** Replies that wait for a later turn of the event loop. */
  readonly #kept: Buffer[] = [];
  #pending = 0;
  #sent = 0;
  #wrong = 0;
  #lastSentMs: number;
  #isClosed = false;

  /** Takes ownership of a connected socket. */
  constructor(fd: number, family: 4 | 6, parts: SocketParts, errors: SocketErrors) {
    this.fd = fd;
    this.#errors = errors;
    this.#suspicion = errors.suspicion;
    this.#parts = parts;
    this.#openedMs = this.#lastSentMs = parts.now();
    const onPacket = (message: Buffer): void => void guard.run("upstream", 0, () => this.#onReadable(message));
    const onError = (error: Error): void =>
      void guard.run("upstream", 0, () => this.#onUnreachable(codeOf(error) ?? error.message));
    this.#watch = new UdpWatch(fd, family, onPacket, onError);
    forceReceiveBuffer(fd, LIMITS.udpReceiveBytes);
    // It stays open for later queries, which must not keep the process alive.
    this.#watch.unref();
  }

  get isIdle(): boolean {
    return this.#pending === 0;
  }

  get lastSentMs(): number {
    return this.#lastSentMs;
  }

  /** It has reached its limit of queries, wrong replies, or age. */
  isSpent(nowMs: number): boolean {
    return (
      this.#sent >= LIMITS.upstreamSocketQueries ||
      this.#wrong >= LIMITS.upstreamWrongReplies ||
      nowMs - this.#openedMs >= LIMITS.upstreamSocketMs
    );
  }

  send(exchange: Exchange, nowMs: number): void {
    const { message } = exchange;
    const id = this.#unusedId();
    setU16(message, ID_AT, id);
    this.#waiting.set(id, exchange);
    this.#pending++;
    this.#sent++;
    this.#lastSentMs = nowMs;
    const { clientNumber } = exchange;
    if (this.#parts.batch.add(this, message, CONNECTED, clientNumber) || send(this.fd, message) >= 0) return;
    this.onUnsent(clientNumber, lastErrno());
  }

  /** The ICMP error of an earlier query is reported by the next send; it applies to this server all the same. */
  onUnsent(clientNumber: number, errno: number): void {
    // Deferred: the caller must not be called back before its own call has returned.
    if (errno !== EAGAIN) guard.defer(clientNumber, () => this.#onUnreachable(errnoName(errno)));
  }

  close(): void {
    if (this.#isClosed) return;
    this.#parts.batch.flush();
    this.#isClosed = true;
    this.#waiting.clear();
    this.#watch.close();
  }

  #unusedId(): number {
    for (;;) {
      const id = this.#parts.ids.next();
      if (!this.#waiting.has(id)) return id;
    }
  }

  #onReadable(first: Buffer): void {
    const { block, budget } = this.#parts;
    this.#take(first);
    if (this.#isClosed || this.#watch.isResting) return;
    if (budget.left <= 0) return this.#watch.rest();
    const count = block.receive(this.fd, 0, MESSAGE_BYTES_MAX, budget.left);
    if (count > 0) this.#watch.rest();
    const errno = block.receiveErrno;
    for (let slot = 0; slot < count && !this.#isClosed; slot++) {
      const at = block.offsetOf(slot);
      this.#take(block.data.subarray(at, at + block.lengthOf(slot)));
    }
    if (errno === ECONNREFUSED && !this.#isClosed) this.#onUnreachable(errnoName(errno));
  }

  /** A long reply can take milliseconds, so if several come at once, most wait for later turns of the event loop. */
  #take(message: Buffer): void {
    const { budget } = this.#parts;
    if (message.length > LIMITS.upstreamReplyBytes && budget.left <= 0) return this.#keep(message);
    budget.spend(Math.ceil(message.length / LIMITS.upstreamReplyBytes));
    this.#onReply(message);
  }

  /** Keeps a reply for later. A server that sends too many loses them, as it does where a socket is full. */
  #keep(message: Buffer): void {
    if (this.#kept.length === LIMITS.upstreamBatch) return;
    if (this.#kept.push(Buffer.from(message)) === 1) this.#takeKeptLater();
  }

  #takeKeptLater(): void {
    setImmediate(
      () =>
        void guard.run("upstream", 0, () => {
          while (!this.#isClosed && this.#kept.length > 0 && this.#parts.budget.left > 0)
            this.#take(this.#kept.shift() as Buffer);
          if (!this.#isClosed && this.#kept.length > 0) this.#takeKeptLater();
        }),
    );
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
    this.#errors.recordSocketError(this.#suspicion, reason);
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

/**
 * Whether the question is the same, ignoring letter case. A server that rejects a query as malformed may omit the
 * question.
 */
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

/**
 * ReplyBudget: how many upstream replies are processed per turn of the event loop, where a long one counts as several.
 * Otherwise the replies for one container that queries as fast as it can would delay the queries of all others. The rest
 * stays in the socket until the next turn of the event loop.
 */
export class ReplyBudget {
  readonly #whole: number;
  #left: number;
  #isArmed = false;

  constructor(whole: number) {
    this.#whole = this.#left = whole;
  }

  get left(): number {
    return this.#left;
  }

  spend(count: number): void {
    this.#left -= count;
    if (this.#isArmed) return;
    this.#isArmed = true;
    setImmediate(() => {
      this.#isArmed = false;
      this.#left = this.#whole;
    });
  }
}
