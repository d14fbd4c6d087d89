/**
 * TcpConnection: one TCP connection of a client, with time limits for queries and replies. Docker handles its queries
 * one after the other; in default mode several are handled at once and answered as they are ready, so that one that
 * waits for upstream does not delay the others.
 *
 *   reading --(enough queries in progress, or replies unread)--> paused --(replies sent)--> reading
 *      |  --(enough done for the container in this turn of the event loop)--> paused --(a later turn)--> reading
 *      |  timeout for a query or for reading replies; the client closes; a write fails
 *      v
 *   closed
 */
import type { Socket } from "node:net";

import { LIMITS } from "../../base/limits.ts";
import { guard } from "../../base/lib/guard.ts";
import type { Client } from "../client/client.ts";
import { type SyncAnswerer, DEFERRED, type Forward, type QueryMeter, SLOT_BYTES } from "../ports.ts";
import { StreamReader, withLength } from "../../base/lib/stream-reader.ts";

/** Shared by the connections of all namespaces; the writable fields change with the settings. */
export interface TcpParts {
  answerer: SyncAnswerer;
  forward: Forward;
  /** Queries of one connection in progress at once; 1 as in Docker. */
  pipelinedMax: number;
  /** Queries of one connection, then it is closed. */
  queriesMax: number;
  /** Buffer to answer in, for the whole process: a reply is copied out of it before the next one is built. */
  readonly block: Buffer;
  readonly meter?: QueryMeter | undefined;
}

/** Buffer for one message. */
export function streamBlock(): Buffer {
  return Buffer.allocUnsafeSlow(SLOT_BYTES);
}

export class TcpConnection {
  readonly #socket: Socket;
  readonly #client: Client;
  readonly #parts: TcpParts;
  readonly #reader = new StreamReader();
  readonly #onClosed: (connection: TcpConnection) => void;
  #inProgress = 0;
  #queries = 0;
  readonly #goOn = (): void => this.#guarded(() => this.#work());
  /** It has read so much at once that other connections of the container are read first. */
  #hasReadMuch = false;
  #isEnding = false;
  #isFirst = true;
  /** Bytes held of the container's share. */
  #counted = 0;
  #timer: NodeJS.Timeout;
  /** Last time data was received or sent, on the clock of `performance.now`. */
  lastActiveMs = performance.now();

  constructor(socket: Socket, client: Client, parts: TcpParts, onClosed: (connection: TcpConnection) => void) {
    this.#socket = socket;
    this.#client = client;
    this.#parts = parts;
    this.#onClosed = onClosed;
    this.#timer = setTimeout(() => this.#guarded(() => this.#onTimeout()), LIMITS.tcpFirstQueryMs);
    socket.on("data", (chunk: Buffer) => this.#guarded(() => this.#onData(chunk)));
    socket.on("end", () => this.#guarded(() => this.#onEnd()));
    socket.on("drain", () => this.#guarded(() => this.#resume()));
    // A client that resets its connection is done with it; "close" does the rest.
    socket.on("error", () => socket.destroy());
    socket.on("close", () => {
      clearTimeout(this.#timer);
      this.#isEnding = true;
      this.#client.shares.streamBytes.give(this.#counted);
      this.#counted = 0;
      this.#onClosed(this);
    });
    client.streamBudget.spend(LIMITS.streamBudget.read);
    client.streamBudget.read(socket, this.#goOn);
  }

  /** The client's port, while a query is in progress or a reply is unsent. */
  get busyPort(): number | undefined {
    const isBusy = this.#inProgress > 0 || this.#socket.writableLength > 0;
    return isBusy ? this.#socket.remotePort : undefined;
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /** An internal error costs the connection. */
  #guarded(work: () => void): void {
    if (!guard.run("tcp", this.#client.number, work)) this.#socket.destroy();
  }

  #onData(chunk: Buffer): void {
    this.lastActiveMs = performance.now();
    this.#hasReadMuch = chunk.length > LIMITS.streamReadBytes;
    this.#reader.push(chunk);
    if (this.#count()) this.#work();
  }

  /** The client has closed its side; its queries are still answered. */
  #onEnd(): void {
    this.#isEnding = true;
    this.#work();
  }

  /** Takes queries from the received data, as many as may be in progress. */
  #work(): void {
    if (this.#socket.destroyed) return;
    const { streamBudget } = this.#client;
    this.#socket.cork();
    this.#client.history.tick();
    while (!this.#isFull() && streamBudget.hasLeft) {
      const message = this.#reader.next();
      if (message === undefined) break;
      streamBudget.spend(message.length + LIMITS.streamBudget.each);
      this.#queries++;
      this.#expectNext();
      this.#answer(message);
    }
    this.#socket.uncork();
    if (!this.#count()) return;
    if (this.#isFull()) this.#socket.pause();
    else streamBudget.read(this.#socket, this.#goOn, streamBudget.hasLeft && !this.#hasReadMuch);
    this.#hasReadMuch = false;
    this.#finishIfDone();
  }

  /** Whether queries that have arrived must wait for others, or will never be answered. */
  #isFull(): boolean {
    return (
      this.#isExhausted() ||
      this.#inProgress >= this.#parts.pipelinedMax ||
      this.#socket.writableLength > LIMITS.tcpUnreadBytes
    );
  }

  #isExhausted(): boolean {
    return this.#queries >= this.#parts.queriesMax;
  }

  #answer(message: Uint8Array): void {
    const { answerer, forward, block, meter } = this.#parts;
    meter?.begin(this.#socket.remoteFamily === "IPv6");
    block.set(message, 0);
    const { ownQueries } = this.#client;
    const isOwn = ownQueries.areExpected && ownQueries.take(true, this.#socket.remotePort ?? 0);
    try {
      const result = answerer.answer(this.#client, block, 0, message.length, true, isOwn);
      meter?.record(answerer.outcome);
      if (result > 0) {
        this.#client.streamBudget.spend(result);
        this.#socket.write(withLength(block.subarray(0, result)));
        meter?.end();
      } else if (result === DEFERRED) {
        this.#inProgress++;
        this.#client.streamBudget.spend(LIMITS.streamBudget.deferred);
        forward(this.#client, answerer.takeDeferred(block), "tcp", (reply, outcome) => {
          this.#inProgress--;
          meter?.record(outcome);
          if (this.#socket.destroyed) return;
          this.#socket.write(withLength(reply));
          if (!this.#count()) return;
          // Deferred: the caller may be in the middle of another reply, and there is one buffer for all.
          guard.defer(this.#client.number, () => this.#resume());
        });
      }
    } catch (error) {
      this.#client.counters.failed++;
      guard.report(error, "tcp", this.#client.number);
      this.#socket.destroy();
    }
  }

  /** Charges unprocessed data and unsent replies to the container; returns whether that is within its share. */
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
    if (!this.#isFull()) this.#expectNext();
    this.#work();
  }

  #finishIfDone(): void {
    const isLast = this.#isExhausted() || (this.#isEnding && !this.#reader.hasWhole);
    if (isLast && this.#inProgress === 0 && !this.#socket.destroyed) this.#socket.end();
  }

  /** Restarts the timeout for the next query. */
  #expectNext(): void {
    if (this.#isFirst) {
      this.#isFirst = false;
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#guarded(() => this.#onTimeout()), LIMITS.tcpIdleMs);
    } else {
      this.#timer.refresh();
    }
  }

  /** No complete query arrived in time, and no replies were read. Queries that went upstream have their own timeout. */
  #onTimeout(): void {
    if (this.#inProgress > 0) this.#expectNext();
    else this.#socket.destroy();
  }
}
