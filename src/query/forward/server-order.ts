/**
 * The order of servers for one upstream query: healthy ones in the order of the list, then those that are down. Servers
 * that loop back to the client are left out.
 */
import type { ForwardPolicy } from "../../base/model/upstream-policy.ts";
import type { UpstreamJournal } from "../trace.ts";
import type { Nameserver } from "../upstream/nameserver.ts";

export const FORWARDING_LOOP = "forwarding loop back to dns11";

/** A server of the list, and its state in this upstream query. */
export interface UpstreamCandidate {
  readonly nameserver: Nameserver;
  state: "untried" | "pending" | "failed";
  tries: number;
  reason: string;
  /** It could not be reached at all, which is the condition for using a backup. */
  isUnreachable: boolean;
  /** It is queried without EDNS, which it rejected. */
  isWithoutEdns: boolean;
}

interface OrderParts {
  readonly nameservers: readonly Nameserver[];
  /** Left out because they loop back to the client. */
  readonly looping: readonly Nameserver[];
  readonly policy: ForwardPolicy;
  /** The client; a server may be down for one client only. */
  readonly clientNumber: number;
  /** Where to start in the list, if servers rotate. */
  readonly turn: number;
}

export function orderServers(
  { nameservers, looping, policy, turn, clientNumber }: OrderParts,
  now: number,
): UpstreamCandidate[] {
  const [only] = nameservers;
  // Most lists have one server, and so no order.
  if (nameservers.length === 1 && only !== undefined && looping.length === 0) return [candidateOf(only)];
  const usable = nameservers.filter((nameserver) => !looping.includes(nameserver));
  const start = policy.rotates && usable.length > 0 ? turn % usable.length : 0;
  const rotated = [...usable.slice(start), ...usable.slice(0, start)];
  const rank = (nameserver: Nameserver): number =>
    Number(nameserver.server.isBackup === true) * 2 +
    Number(policy.order === "adaptive" && nameserver.health.checkIsDown(now, clientNumber));
  const ordered = rotated.length > 1 ? rotated.toSorted((a, b) => rank(a) - rank(b)) : rotated;
  return ordered.map(candidateOf);
}

function candidateOf(nameserver: Nameserver): UpstreamCandidate {
  return { nameserver, state: "untried", tries: 0, reason: "timed out", isUnreachable: false, isWithoutEdns: false };
}

// Loops instead of callbacks: closures for thousands of queries in flight would be thousands of objects.

export function isAnyUp(candidates: readonly UpstreamCandidate[], now: number, clientNumber: number): boolean {
  for (const { nameserver } of candidates) if (!nameserver.health.checkIsDown(now, clientNumber)) return true;
  return false;
}

export function isAnyPending(candidates: readonly UpstreamCandidate[]): boolean {
  for (const { state } of candidates) if (state === "pending") return true;
  return false;
}

/** Whether no other server is left to be tried. */
export function isLastUntried(candidates: readonly UpstreamCandidate[], nameserver: Nameserver): boolean {
  for (const candidate of candidates)
    if (candidate.state === "untried" && candidate.nameserver !== nameserver) return false;
  return true;
}

/** Records the order and its reasons, for a query that is being explained. */
export function noteOrder(
  { looping, policy, clientNumber }: OrderParts,
  candidates: readonly UpstreamCandidate[],
  journal: UpstreamJournal,
  now: number,
): void {
  const turns = policy.rotates && candidates.length > 1 ? ", rotated" : "";
  if (candidates.length > 1 || policy.order !== "adaptive")
    journal.note(now, undefined, `order: ${policy.order}${turns}`);
  for (const [index, { nameserver }] of candidates.entries()) {
    const { server, health } = nameserver;
    const backup = server.isBackup === true ? ", backup for when all others are unreachable" : "";
    journal.note(now, server, `position ${index + 1}: ${healthText(health, now, clientNumber)}${backup}`);
  }
  for (const { server } of looping) journal.note(now, server, `skipped: ${FORWARDING_LOOP}`);
}

function healthText(health: Nameserver["health"], now: number, clientNumber: number): string {
  const { rttMs, reason } = health;
  const usual = rttMs === undefined ? "no reply yet" : `usual response time ${rttMs.toFixed(1)} ms`;
  return health.checkIsDown(now, clientNumber) ? `down (${reason ?? "unknown"}), ${usual}` : `up, ${usual}`;
}
