/**
 * Exchange: one message to an address by UDP and by TCP, sent from inside a namespace, and the replies. Only the
 * sockets are created inside the namespace; sending and polling happen outside, because nothing may wait inside.
 */
import { randomInt } from "node:crypto";
import { setImmediate as nextRound, setTimeout as sleep } from "node:timers/promises";

import { LIMITS } from "../../base/limits.ts";
import {
  AF_INET,
  AF_INET6,
  SOCK_DGRAM,
  SOCK_STREAM,
  addressOf,
  bindTo,
  closeQuietly,
  connectTo,
  disconnect,
  errnoName,
  lastErrno,
  receive,
  scopeOf,
  send,
  setMark,
  socket,
  localPort,
} from "../../kernel/libc.ts";
import { StreamReader, withLength } from "../../base/lib/stream-reader.ts";
import { addressBytes, socketAddress } from "../../base/model/address.ts";
import type { Within } from "../../kernel/net-namespace.ts";
import type { Protocol } from "./plan.ts";

interface ExchangeRequest {
  readonly destination: string;
  /** The default is 53. */
  readonly port?: number;
  /** Builds the message with this id. */
  readonly message: (id: number) => Buffer;
  /** The source port; by default any. */
  readonly sourcePort?: number | undefined;
  /** The mark of the packets; by default none. */
  readonly mark?: number | undefined;
  /** The default is UDP and TCP. */
  readonly protocols?: readonly Protocol[];
  /** The timeout. */
  readonly waitMs?: number;
  /** Called with the source ports before anything is sent. */
  readonly announce?: ((ports: SourcePorts) => Promise<void>) | undefined;
  /** Called after each look for replies, until all are there. */
  readonly onLook?: (() => void) | undefined;
}

/** The ports of each transport; none if no socket could be opened. */
export interface SourcePorts {
  readonly udp: readonly number[];
  readonly tcp: readonly number[];
}

/** The result of one protocol: a reply, a failure, or neither after a timeout. */
export interface ExchangeResult {
  readonly protocol: Protocol;
  readonly id: number;
  readonly reply: Buffer | undefined;
  readonly failure: string | undefined;
  /** The time until the reply. */
  readonly tookMs: number;
}

const EAGAIN = 11;
const ENOTCONN = 107;
const DNS_PORT = 53;
const REPLY_BYTES_MAX = 4096;
/** Most replies arrive within the next rounds of the event loop; after that the poll interval doubles. */
const ROUNDS_BEFORE_SLEEPING = 8;
const SLEEP_MS_MAX = 32;
/** A pause between two polls counts as at most this. */
const PAUSE_MS_MAX = 2 * SLEEP_MS_MAX;

/** The query of one protocol. */
interface Leg {
  readonly protocol: Protocol;
  /** -1 once it is closed. */
  fd: number;
  readonly id: number;
  readonly query: Buffer;
  /** What has arrived by TCP, in any pieces. */
  readonly reader: StreamReader;
  isSent: boolean;
  reply: Buffer | undefined;
  failure: string | undefined;
  readonly startMs: number;
  tookMs: number;
}

/** Throws if a socket cannot be created. */
export async function exchange(within: Within, request: ExchangeRequest): Promise<readonly ExchangeResult[]> {
  const memory = Buffer.allocUnsafeSlow(REPLY_BYTES_MAX);
  const legs: Leg[] = [];
  try {
    within(() => {
      for (const protocol of request.protocols ?? (["udp", "tcp"] as const)) legs.push(startLeg(protocol, request));
    });
    await request.announce?.({ udp: portsOf(legs, "udp"), tcp: portsOf(legs, "tcp") });
    await pollUntilDone(legs, memory, request);
    return legs.map(({ protocol, id, reply, failure, tookMs }) => ({ protocol, id, reply, failure, tookMs }));
  } finally {
    for (const leg of legs) endLeg(leg);
  }
}

function portsOf(legs: readonly Leg[], protocol: Protocol): number[] {
  return legs.filter((leg) => leg.protocol === protocol && leg.failure === undefined).map(({ fd }) => localPort(fd));
}

/**
 * Closes a socket. TCP is reset first: a normal close goes on sending FIN packets, which in a namespace that is being
 * removed leave by the default route.
 */
function endLeg(leg: Leg): void {
  const { fd, protocol } = leg;
  if (fd < 0) return;
  leg.fd = -1;
  try {
    if (protocol === "tcp") disconnect(fd);
  } catch {
    // It was never connected.
  }
  closeQuietly(fd);
}

function startLeg(protocol: Protocol, { destination, port, sourcePort, message, mark }: ExchangeRequest): Leg {
  const address = addressBytes(destination) as Uint8Array;
  const fd = socket(address.length === 4 ? AF_INET : AF_INET6, protocol === "udp" ? SOCK_DGRAM : SOCK_STREAM);
  const id = randomInt(0x10000);
  const query = protocol === "udp" ? message(id) : withLength(message(id));
  const startMs = performance.now();
  const reader = new StreamReader();
  const begun = { isSent: false, reply: undefined, failure: undefined, startMs, tookMs: 0 };
  const leg: Leg = { protocol, fd, id, query, reader, ...begun };
  try {
    if (mark !== undefined) setMark(fd, mark);
    if (sourcePort !== undefined) bindTo(fd, socketAddress(new Uint8Array(address.length), sourcePort), protocol);
    connectTo(fd, socketAddress(address, port ?? DNS_PORT, scopeOf(destination)), destination);
  } catch (error) {
    leg.failure = error instanceof Error ? error.message : String(error);
  }
  return leg;
}

/**
 * Counts only time in which this process could run: on a busy machine it may stand still for longer than the timeout,
 * which says nothing about the rules or the server. The listener of a probe is in this process, too.
 */
async function pollUntilDone(
  legs: readonly Leg[],
  memory: Buffer,
  { waitMs = LIMITS.probeMs, onLook }: Pick<ExchangeRequest, "waitMs" | "onLook">,
): Promise<void> {
  const address = addressOf(memory);
  let waitedMs = 0;
  for (let round = 0; ; round++) {
    for (const leg of legs) step(leg, address, memory);
    if (legs.every(isDone) || waitedMs > waitMs) return;
    onLook?.();
    const pausedMs = performance.now();
    if (round < ROUNDS_BEFORE_SLEEPING) await nextRound();
    else await sleep(Math.min(SLEEP_MS_MAX, 2 ** (round - ROUNDS_BEFORE_SLEEPING)));
    waitedMs += Math.min(performance.now() - pausedMs, PAUSE_MS_MAX);
  }
}

function isDone({ reply, failure }: Leg): boolean {
  return reply !== undefined || failure !== undefined;
}

function step(leg: Leg, address: number, memory: Buffer): void {
  if (isDone(leg)) return;
  if (!leg.isSent) {
    if (send(leg.fd, leg.query) < 0) {
      leg.failure = failureName();
      return;
    }
    leg.isSent = true;
  }
  const length = receive(leg.fd, address, REPLY_BYTES_MAX);
  leg.tookMs = performance.now() - leg.startMs;
  if (length < 0) leg.failure = failureName();
  else leg.reply = replyIn(leg, memory.subarray(0, length));
  // A server may do nothing else until a connection ends: dnsmasq without its child processes.
  if (isDone(leg) && leg.protocol === "tcp") endLeg(leg);
}

/** A copy; empty where the connection was closed before the reply was whole, and undefined while it is not. */
function replyIn({ protocol, reader }: Leg, received: Buffer): Buffer | undefined {
  if (protocol === "udp" || received.length === 0) return Buffer.from(received);
  reader.push(received);
  const message = reader.next();
  return message && Buffer.from(message);
}

/** The name of an errno that ends a leg; undefined for one that means "not yet". */
function failureName(): string | undefined {
  const errno = lastErrno();
  return errno === EAGAIN || errno === ENOTCONN ? undefined : errnoName(errno);
}
