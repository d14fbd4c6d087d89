/**
 * Attempt: one query to one server, as one of many on a shared socket or on its own socket. It ends exactly once,
 * with a reply that can be parsed or with the reason why there is none.
 */
import { createSocket } from "node:dgram";
import { Socket } from "node:net";

import { FLAGS_AT, idOf, MESSAGE_BYTES_MAX, UDP_BYTES_MIN } from "../../base/dns/header.ts";
import { errnoName, lastErrno, send } from "../../kernel/libc.ts";
import type { DeferredQuery } from "../ports.ts";
import { StreamReader, withLength } from "../../base/lib/stream-reader.ts";
import type { StreamBudget } from "../client/stream-budget.ts";
import { TlsConnection, type TlsTarget } from "../upstream/tls-connection.ts";
import type { Exchange } from "../upstream/udp-socket.ts";
import { type UpstreamReply, readReply } from "../wire/scrub.ts";

export type AttemptResult =
  | { readonly kind: "reply"; readonly reply: UpstreamReply }
  | { readonly kind: "failed"; readonly reason: string; readonly isTimeout?: boolean };

type OnEnd = (outcome: AttemptResult) => void;

/** Receives the result of each attempt, with the server and the time of sending. */
export interface AttemptListener<To> {
  onReply(to: To, message: Buffer, sentMs: number, isStream: boolean, sent: Buffer): void;
  onUnreachable(to: To, reason: string, sentMs: number, isStream: boolean): void;
  onForgery(to: To): void;
  /** The upstream query has ended. */
  readonly isDone: boolean;
}

/**
 * One transmission of a query. Each has its own id, so that a late reply to the first one still gives its response
 * time.
 */
export class Attempt<To> implements Exchange {
  readonly message: Buffer;
  readonly questionEnd: number;
  readonly clientNumber: number;
  readonly #listener: AttemptListener<To>;
  readonly #to: To;
  readonly #sentMs: number;
  readonly #isStream: boolean;

  constructor(
    { message, questionEnd, clientNumber }: Pick<Exchange, "message" | "questionEnd" | "clientNumber">,
    listener: AttemptListener<To>,
    to: To,
    sentMs: number,
    isStream: boolean,
  ) {
    this.message = message;
    this.questionEnd = questionEnd;
    this.clientNumber = clientNumber;
    this.#listener = listener;
    this.#to = to;
    this.#sentMs = sentMs;
    this.#isStream = isStream;
  }

  get isWanted(): boolean {
    return !this.#listener.isDone;
  }

  onReply(message: Buffer): void {
    this.#listener.onReply(this.#to, message, this.#sentMs, this.#isStream, this.message);
  }

  onUnreachable(reason: string): void {
    this.#listener.onUnreachable(this.#to, reason, this.#sentMs, this.#isStream);
  }

  onForgery(): void {
    this.#listener.onForgery(this.#to);
  }
}

/** Sends over a connected UDP socket. Replies with another id are stray or forged and are ignored. */
export function queryUdp(
  fd: number,
  family: 4 | 6,
  deferred: Pick<DeferredQuery, "query" | "hasOpt" | "udpSize">,
  timeoutMs: number,
  onEnd: OnEnd,
): void {
  const socket = createSocket(family === 4 ? "udp4" : "udp6");
  const bytesMax = deferred.hasOpt ? Math.max(UDP_BYTES_MIN, deferred.udpSize) : MESSAGE_BYTES_MAX;
  const end = once((outcome) => {
    clearTimeout(timer);
    socket.close();
    onEnd(outcome);
  });
  // Timers run before sockets: after this process was blocked, the reply may be waiting in the socket.
  const timer = setTimeout(
    () => setImmediate(end, { kind: "failed", reason: "timed out", isTimeout: true }),
    timeoutMs,
  );
  socket.on("error", (error) => end(failed(error.message)));
  socket.on("message", (message) => {
    if (!hasSameId(message, deferred.query)) return;
    end(judge(message.length > bytesMax ? message.subarray(0, bytesMax) : message));
  });
  socket.bind({ fd });
  if (send(fd, deferred.query) < 0) end(failed(`send: ${errnoName(lastErrno())}`));
}

/** A server that is queried over TLS, and the budget of the container that queries it. */
interface TlsParts {
  readonly target: TlsTarget;
  readonly budget: StreamBudget;
}

/**
 * Sends over a TCP socket that may still be connecting, plainly or over TLS. Another id there means a broken server, not a stray
 * packet.
 */
export function queryTcp(
  fd: number,
  query: Buffer,
  timeoutMs: number,
  onEnd: OnEnd,
  tls?: TlsParts,
): { destroy(): void } {
  if (tls !== undefined) return queryTls(fd, tls, query, timeoutMs, onEnd);
  const socket = new Socket({ fd, readable: true, writable: true });
  const { end, onData } = streamEnd(socket, query, timeoutMs, onEnd);
  socket.on("error", (error) => end(failed(error.message)));
  socket.on("close", () => end(failed(CLOSED)));
  socket.on("data", onData);
  socket.write(withLength(query));
  return socket;
}

function queryTls(
  fd: number,
  { target, budget }: TlsParts,
  query: Buffer,
  timeoutMs: number,
  onEnd: OnEnd,
): { destroy(): void } {
  // The connection calls back only after the constructor has returned.
  const connection: TlsConnection = new TlsConnection(fd, target, budget, {
    onSecure: () => connection.write(withLength(query)),
    onData: (chunk) => onData(chunk),
    isAwaiting: () => true,
    onEnd: () => end(failed(CLOSED)),
    onFailed: (reason) => end(failed(reason)),
  });
  const { end, onData } = streamEnd(connection, query, timeoutMs, onEnd);
  // A TlsConnection, unlike a socket, does not call back when it is destroyed.
  return { destroy: () => end(failed(CLOSED)) };
}

const CLOSED = "connection closed without a reply";

interface StreamEnd {
  readonly end: OnEnd;
  readonly onData: (chunk: Buffer) => void;
}

function streamEnd(connection: { destroy(): void }, query: Buffer, timeoutMs: number, onEnd: OnEnd): StreamEnd {
  const reader = new StreamReader();
  const end = once((outcome) => {
    clearTimeout(timer);
    connection.destroy();
    onEnd(outcome);
  });
  const timer = setTimeout(() => setImmediate(end, failed("timed out")), timeoutMs);
  const onData = (chunk: Buffer): void => {
    reader.push(chunk);
    const message = reader.next();
    if (message === undefined) return;
    end(hasSameId(message, query) ? judge(message) : failed("the reply has another id"));
  };
  return { end, onData };
}

function judge(message: Buffer): AttemptResult {
  const reply = readReply(message);
  return reply === undefined ? failed("the reply cannot be parsed") : { kind: "reply", reply };
}

function failed(reason: string): AttemptResult {
  return { kind: "failed", reason };
}

function hasSameId(message: Uint8Array, query: Uint8Array): boolean {
  return message.length >= FLAGS_AT && idOf(message) === idOf(query);
}

/** Only the first call counts: timer, error and close all end the same attempt. */
function once(act: OnEnd): OnEnd {
  let isDone = false;
  return (outcome) => {
    if (isDone) return;
    isDone = true;
    act(outcome);
  };
}
