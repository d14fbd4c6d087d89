/**
 * Probe: does a query that leaves inside the namespace arrive at our sockets, and the answer back there, by UDP and by
 * TCP? A list of rules shows only what was written; a chain before ours, a drop, or a packet that is not tracked shows
 * only when a query is really sent. The nonce proves that it was us who got it, and not the resolver behind us.
 */
import { randomBytes } from "node:crypto";

import { codeOf } from "../../base/lib/fault.ts";
import { probeOutcome, probeQuery } from "../../base/model/probe-message.ts";
import { type ExchangeResult, type Within, exchange } from "./exchange.ts";
import type { Protocol } from "./plan.ts";

/** The listeners of the namespace, as the probe sees them. */
export interface ProbeTarget {
  /** From now on, note whether this nonce arrives. */
  expect(nonce: string): void;
  hasSeen(protocol: Protocol): boolean;
  /** The probe is over. */
  reset(): void;
}

export type ProbeResult =
  | { readonly kind: "works" }
  | { readonly kind: "broken"; readonly failures: readonly string[] }
  /** We could not even ask, for want of descriptors or memory: that says nothing of the rules. */
  | { readonly kind: "unknown" };

/** What the kernel says when we, and not the rules, lack something. */
const RESOURCE_ERRORS = new Set(["EMFILE", "ENFILE", "ENOMEM", "ENOBUFS"]);

/** Packets of a probe that is on trial carry it. */
export const TRIAL_MARK = 0x646e7332;

/** Sends a nonce query to `destination`, by both protocols; on trial, in packets that only rules on trial look at. */
export async function probe(
  within: Within,
  destination: string,
  target: ProbeTarget,
  isTrial: boolean,
  sourcePort?: number,
): Promise<ProbeResult> {
  const nonce = randomBytes(12).toString("hex");
  target.expect(nonce);
  try {
    const mark = isTrial ? TRIAL_MARK : undefined;
    const legs = await exchange(within, { destination, message: (id) => probeQuery(nonce, id), mark, sourcePort });
    const failures = legs.flatMap((leg) => failureOf(leg, target.hasSeen(leg.protocol)));
    return failures.length === 0 ? { kind: "works" } : { kind: "broken", failures };
  } catch (error) {
    if (RESOURCE_ERRORS.has(codeOf(error) ?? "")) return { kind: "unknown" };
    throw error;
  } finally {
    target.reset();
  }
}

function failureOf({ protocol, id, reply, failure }: ExchangeResult, wasSeen: boolean): string[] {
  if (failure !== undefined) return [`${protocol}: ${failure}`];
  if (reply === undefined) {
    return [`${protocol}: ${wasSeen ? "the query arrived, the answer did not come back" : "the query did not arrive"}`];
  }
  const outcome = probeOutcome(reply, id);
  if (outcome !== "NOERROR") return [`${protocol}: answered by somebody else (${outcome ?? "no DNS"})`];
  return wasSeen ? [] : [`${protocol}: answered by somebody else`];
}
