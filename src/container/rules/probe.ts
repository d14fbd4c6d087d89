/**
 * Probe: sends a query inside the namespace and checks that it reaches our sockets, and the answer the sender, by UDP
 * and by TCP. A list of rules cannot show whether a chain before ours, a drop or an untracked packet is in the way. The
 * nonce proves that we received the query, not Docker's resolver.
 */
import { randomBytes } from "node:crypto";

import { codeOf } from "../../base/lib/fault.ts";
import { NONCE_BYTES, probeOutcome, probeQuery } from "../../base/model/probe-message.ts";
import { type ExchangeResult, exchange } from "./exchange.ts";
import type { Within } from "../../kernel/net-namespace.ts";
import type { Protocol } from "./plan.ts";

/** The endpoint of the namespace, as the probe sees it. */
export interface ProbeTarget {
  /** Records from now on whether this nonce arrives. */
  expect(nonce: string): void;
  hasSeen(protocol: Protocol): boolean;
  /** Whether queries by UDP wait to be read. */
  isBehind(): boolean;
  /** Whether queries by UDP found a socket full since the nonce is expected. */
  hasLost(): boolean;
  /** Ends the probe. */
  reset(): void;
}

export type ProbeResult =
  | { readonly kind: "works" }
  | { readonly kind: "broken"; readonly failures: readonly string[] }
  /** No query could be sent, for lack of descriptors or memory, so the rules were not tested. */
  | { readonly kind: "unknown" };

/** Errors of this process, not of the rules. */
const RESOURCE_ERRORS = new Set(["EMFILE", "ENFILE", "ENOMEM", "ENOBUFS"]);

/** The mark of a trial probe's packets. */
export const TRIAL_MARK = 0x646e7332;

/** Where a probe is sent, and how. */
export interface ProbeRequest {
  readonly destination: string;
  readonly protocols: readonly Protocol[];
  /** Only trial rules match its packets. */
  readonly isTrial: boolean;
  readonly sourcePort?: number | undefined;
}

/** Sends a nonce query. */
export async function probe(within: Within, target: ProbeTarget, request: ProbeRequest): Promise<ProbeResult> {
  const { destination, protocols, isTrial, sourcePort } = request;
  const nonce = randomBytes(NONCE_BYTES).toString("hex");
  target.expect(nonce);
  let hasCaughtUp = false;
  try {
    const mark = isTrial ? TRIAL_MARK : undefined;
    const message = (id: number): Buffer => probeQuery(nonce, id);
    const onLook = (): void => void (hasCaughtUp ||= !target.isBehind());
    const legs = await exchange(within, { destination, protocols, message, mark, sourcePort, onLook });
    // Whatever fills the sockets does arrive. A client that floods must not get Docker's resolver back by that.
    const mayBeMissed = !isTrial && (target.hasLost() || !hasCaughtUp);
    const failures = legs.flatMap((leg) => failureOf(leg, target.hasSeen(leg.protocol), mayBeMissed));
    return failures.length === 0 ? { kind: "works" } : { kind: "broken", failures };
  } catch (error) {
    if (RESOURCE_ERRORS.has(codeOf(error) ?? "")) return { kind: "unknown" };
    throw error;
  } finally {
    target.reset();
  }
}

/** `mayBeMissed`: a query by UDP may have arrived without having been read. */
function failureOf({ protocol, id, reply, failure }: ExchangeResult, wasSeen: boolean, mayBeMissed: boolean): string[] {
  if (failure !== undefined) return [`${protocol}: ${failure}`];
  if (reply === undefined) {
    if (protocol === "udp" && !wasSeen && mayBeMissed) return [];
    return [
      `${protocol}: ${wasSeen ? "the query arrived, but the answer did not come back" : "the query did not arrive"}`,
    ];
  }
  const outcome = probeOutcome(reply, id);
  if (outcome !== "NOERROR") return [`${protocol}: another server answered (${outcome ?? "not a DNS message"})`];
  return wasSeen ? [] : [`${protocol}: another server answered`];
}
