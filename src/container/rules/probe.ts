/**
 * Probe: does a query that leaves inside the namespace arrive at our sockets, and the answer back there, by UDP and by
 * TCP? A list of rules shows only what was written; a chain before ours, a drop, or a packet that is not tracked shows
 * only when a query is really sent. The nonce proves that it was us who got it, and not the resolver behind us.
 */
import { randomBytes, randomInt } from "node:crypto";
import { setImmediate as nextRound, setTimeout as sleep } from "node:timers/promises";

import { LIMITS } from "../../config/limits.ts";
import {
  AF_INET,
  SOCK_DGRAM,
  SOCK_STREAM,
  addressOf,
  closeQuietly,
  connectTo,
  errnoName,
  lastErrno,
  receive,
  send,
  setMark,
  socket,
} from "../../kernel/libc.ts";
import { codeOf } from "../../lib/fault.ts";
import { withLength } from "../../lib/framing.ts";
import { addressBytes, socketAddress } from "../../model/address.ts";
import { probeOutcome, probeQuery } from "../../model/probe-message.ts";
import type { Protocol } from "./plan.ts";

/** The listeners of the namespace, as the probe sees them. */
export interface ProbeTarget {
  /** From now on, note whether this nonce arrives. */
  expect(nonce: string): void;
  hasSeen(protocol: Protocol): boolean;
  /** The probe is over. */
  forget(): void;
}

/** Does something inside the namespace that is probed. */
export type Within = <T>(work: () => T) => T;

export type ProbeResult =
  | { readonly kind: "works" }
  | { readonly kind: "broken"; readonly failures: readonly string[] }
  /** We could not even ask, for want of descriptors or memory: that says nothing of the rules. */
  | { readonly kind: "unknown" };

/** What the kernel says when we, and not the rules, lack something. */
const WANTS = new Set(["EMFILE", "ENFILE", "ENOMEM", "ENOBUFS"]);
const EAGAIN = 11;
const ENOTCONN = 107;
const DNS_PORT = 53;
const REPLY_BYTES_MAX = 512;
/** Most answers are there in the next rounds of the event loop; after that, looking more and more rarely is enough. */
const ROUNDS_BEFORE_SLEEPING = 8;
const SLEEP_MS_MAX = 32;

/** One query on its way by one protocol. */
interface Leg {
  readonly protocol: Protocol;
  readonly fd: number;
  readonly id: number;
  readonly query: Buffer;
  isSent: boolean;
  /** undefined while nothing is known; true when the answer came back; else what went wrong. */
  outcome: true | string | undefined;
}

/** Packets of a probe that is on trial carry it. */
export const TRIAL_MARK = 0x646e7332;

/** Sends a nonce query to `destination`, by both protocols; on trial, in packets that only rules on trial look at. */
export async function probe(
  within: Within,
  destination: string,
  target: ProbeTarget,
  isTrial: boolean,
): Promise<ProbeResult> {
  const nonce = randomBytes(12).toString("hex");
  const memory = Buffer.allocUnsafeSlow(REPLY_BYTES_MAX);
  const legs: Leg[] = [];
  target.expect(nonce);
  try {
    within(() => {
      for (const protocol of ["udp", "tcp"] as const) legs.push(depart(protocol, destination, nonce, isTrial));
    });
    await untilOver(legs, addressOf(memory), memory);
    const failures = legs.flatMap((leg) => failureOf(leg, target.hasSeen(leg.protocol)));
    return failures.length === 0 ? { kind: "works" } : { kind: "broken", failures };
  } catch (error) {
    if (WANTS.has(codeOf(error) ?? "")) return { kind: "unknown" };
    throw error;
  } finally {
    target.forget();
    for (const leg of legs) closeQuietly(leg.fd);
  }
}

function depart(protocol: Protocol, destination: string, nonce: string, isTrial: boolean): Leg {
  const fd = socket(AF_INET, protocol === "udp" ? SOCK_DGRAM : SOCK_STREAM);
  const id = randomInt(0x10000);
  const message = probeQuery(nonce, id);
  const query = protocol === "udp" ? message : withLength(message);
  const leg: Leg = { protocol, fd, id, query, isSent: false, outcome: undefined };
  try {
    if (isTrial) setMark(fd, TRIAL_MARK);
    connectTo(fd, socketAddress(addressBytes(destination) as Uint8Array, DNS_PORT), destination);
  } catch (error) {
    leg.outcome = error instanceof Error ? error.message : String(error);
  }
  return leg;
}

async function untilOver(legs: readonly Leg[], address: number, memory: Buffer): Promise<void> {
  const deadlineMs = performance.now() + LIMITS.probeMs;
  for (let round = 0; ; round++) {
    for (const leg of legs) step(leg, address, memory);
    if (legs.every((leg) => leg.outcome !== undefined) || performance.now() > deadlineMs) return;
    if (round < ROUNDS_BEFORE_SLEEPING) await nextRound();
    else await sleep(Math.min(SLEEP_MS_MAX, 2 ** (round - ROUNDS_BEFORE_SLEEPING)));
  }
}

function step(leg: Leg, address: number, memory: Buffer): void {
  if (leg.outcome !== undefined) return;
  if (!leg.isSent) {
    if (send(leg.fd, leg.query) < 0) {
      leg.outcome = failureWord();
      return;
    }
    leg.isSent = true;
  }
  const length = receive(leg.fd, address, REPLY_BYTES_MAX);
  if (length < 0) {
    leg.outcome = failureWord();
    return;
  }
  const start = leg.protocol === "tcp" ? 2 : 0;
  const outcome = probeOutcome(memory.subarray(start, length), leg.id);
  leg.outcome = outcome === "NOERROR" ? true : `answered by somebody else (${outcome ?? "no DNS"})`;
}

/** The word for an errno that ends a leg; nothing for one that means "not yet". */
function failureWord(): string | undefined {
  const errno = lastErrno();
  return errno === EAGAIN || errno === ENOTCONN ? undefined : errnoName(errno);
}

function failureOf(leg: Leg, wasSeen: boolean): string[] {
  if (leg.outcome === true) return wasSeen ? [] : [`${leg.protocol}: answered by somebody else`];
  if (leg.outcome !== undefined) return [`${leg.protocol}: ${leg.outcome}`];
  return [
    `${leg.protocol}: ${wasSeen ? "the query arrived, the answer did not come back" : "the query did not arrive"}`,
  ];
}
