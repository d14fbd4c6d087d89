/**
 * One TCP connection of an client: queries in, replies out, each within its time. Docker works on one query after the
 * other; otherwise several are worked on at once and answered as they are ready, because one that waits for upstream
 * need not keep the others waiting.
 *
 *   reading --(enough in work, or answers unread)--> paused --(answers gone)--> reading
 *      |  the time for a query, or for reading answers, is over; the client is done; a write fails
 *      v
 *   closed
 */
import type { Socket } from "node:net";

import { LIMITS } from "../../base/limits.ts";
import { guard } from "../../base/lib/guard.ts";
import { withLength } from "../../base/lib/framing.ts";
import type { Client } from "../client/client.ts";
import { type SyncAnswerer, DEFERRED, type Forward, type QueryMeter, SLOT_BYTES } from "../ports.ts";
import { StreamReader } from "../../base/lib/stream-reader.ts";

/** Shared by the connections of all namespaces; what can be written is exchanged when settings change. */
export interface TcpParts {
  answerer: SyncAnswerer;
  forward: Forward;
  /** Queries of one connection in work at once; 1 is Docker's way. */
  pipelinedMax: number;
  /** Memory to answer in, for the whole process: an answer is copied out of it before the next one is made. */
  readonly block: Buffer;
  readonly meter?: QueryMeter | undefined;
}

/** Memory enough for one message. */
export function streamBlock(): Buffer {
  return Buffer.allocUnsafeSlow(SLOT_BYTES);
}

export class TcpConnection {
  readonly #socket: Socket;
  readonly #client: Client;
  readonly #parts: TcpParts;
  readonly #reader = new StreamReader();
  readonly #onClosed: (connection: TcpConnection) => void;
  #inWork = 0;
  #queries = 0;
  #isEnding = false;
  #isFirst = true;
  /** Bytes of its container's share that it holds. */
  #counted = 0;
  #timer: NodeJS.Timeout;
  /** When this connection last brought or took anything, on the clock of `performance.now`. */
  lastActiveMs = performance.now();

  constructor(socket: Socket, client: Client, parts: TcpParts, onClosed: (connection: TcpConnection) => void) {
    this.#socket = socket;
    this.#client = client;
    this.#parts = parts;
    this.#onClosed = onClosed;
    this.#timer = setTimeout(() => this.#enter(() => this.#onSilence()), LIMITS.tcpFirstQueryMs);
    socket.on("data", (chunk: Buffer) => this.#enter(() => this.#onData(chunk)));
    socket.on("end", () => this.#enter(() => this.#onEnd()));
    socket.on("drain", () => this.#enter(() => this.#resume()));
    // A client that resets its connection is done with it, which is all that "close" needs to know.
    socket.on("error", () => socket.destroy());
    socket.on("close", () => {
      clearTimeout(this.#timer);
      this.#isEnding = true;
      this.#client.shares.streamBytes.give(this.#counted);
      this.#counted = 0;
      this.#onClosed(this);
    });
  }

  /** The client's port, while a query is in work or an answer not sent. */
  get busyPort(): number | undefined {
    const isBusy = this.#inWork > 0 || this.#socket.writableLength > 0;
    return isBusy ? this.#socket.remotePort : undefined;
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /** A defect costs the connection. */
  #enter(work: () => void): void {
    if (!guard.run("tcp", this.#client.number, work)) this.#socket.destroy();
  }

  #onData(chunk: Buffer): void {
    this.lastActiveMs = performance.now();
    this.#reader.push(chunk);
    if (this.#count()) this.#work();
  }

  /** The client has asked all it wanted; what it has asked is still answered. */
  #onEnd(): void {
    this.#isEnding = true;
    this.#work();
  }

  /** Takes queries from what has arrived, as many as may be in work. */
  #work(): void {
    this.#socket.cork();
    this.#client.history.tick();
    while (!this.#isFull()) {
      const message = this.#reader.next();
      if (message === undefined) break;
      this.#queries++;
      this.#expectNext();
      this.#answer(message);
    }
    this.#socket.uncork();
    if (!this.#count()) return;
    if (this.#isFull()) this.#socket.pause();
    this.#finishIfDone();
  }

  /** Whether queries that have arrived must wait, for others to be answered or for ever. */
  #isFull(): boolean {
    return (
      this.#isExhausted() ||
      this.#inWork >= this.#parts.pipelinedMax ||
      this.#socket.writableLength > LIMITS.tcpUnreadBytes
    );
  }

  #isExhausted(): boolean {
    return this.#queries >= LIMITS.tcpQueries;
  }

  #answer(message: Uint8Array): void {
    const { answerer, forward, block, meter } = this.#parts;
    meter?.begin(this.#socket.remoteFamily === "IPv6");
    block.set(message, 0);
    try {
      const result = answerer.answer(this.#client, block, 0, message.length, true);
      meter?.record(answerer.outcome);
      if (result > 0) {
        this.#socket.write(withLength(block.subarray(0, result)));
        meter?.end();
      } else if (result === DEFERRED) {
        this.#inWork++;
        forward(this.#client, answerer.takeDeferred(block), "tcp", (reply, outcome) => {
          this.#inWork--;
          meter?.record(outcome);
          if (this.#socket.destroyed) return;
          this.#socket.write(withLength(reply));
          if (!this.#count()) return;
          // Not from here: who answers may be in the middle of another answer, and there is one place for all.
          guard.defer(this.#client.number, () => this.#resume());
        });
      }
    } catch (error) {
      this.#client.counters.failed++;
      guard.report(error, "tcp", this.#client.number);
      this.#socket.destroy();
    }
  }

  /** What it has not worked off, and what its client has not taken, is its container's; whether that is within its share. */
  #count(): boolean {
    if (this.#socket.destroyed) return false;
    const held = this.#reader.bytes + this.#socket.writableLength;
    const more = held - this.#counted;
    if (more > 0 && !this.#client.shares.streamBytes.take(more)) {
      this.#socket.destroy();
      return false;
    }
    if (more < 0) this.#client.shares.streamBytes.give(-more);
    this.#counted = held;
    return true;
  }

  #resume(): void {
    if (this.#socket.destroyed) return;
    this.lastActiveMs = performance.now();
    if (!this.#isFull()) {
      this.#expectNext();
      this.#socket.resume();
    }
    this.#work();
  }

  #finishIfDone(): void {
    const isLast = this.#isExhausted() || (this.#isEnding && !this.#reader.hasWhole);
    if (isLast && this.#inWork === 0 && !this.#socket.destroyed) this.#socket.end();
  }

  /** The time for the next query begins anew. */
  #expectNext(): void {
    if (this.#isFirst) {
      this.#isFirst = false;
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#enter(() => this.#onSilence()), LIMITS.tcpIdleMs);
    } else {
      this.#timer.refresh();
    }
  }

  /** Neither a whole query came in time nor were answers read. What is being asked upstream ends by itself. */
  #onSilence(): void {
    if (this.#inWork > 0) this.#expectNext();
    else this.#socket.destroy();
  }
}
