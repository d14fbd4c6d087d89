/**
 * LineUp: the servers of one flight in the order in which they are asked: healthy ones as they are listed, then those that
 * are down; a server that leads back to us is not among them.
 */
import type { AskPolicy } from "../../base/model/upstream-policy.ts";
import type { FlightJournal } from "../trace.ts";
import type { Nameserver } from "../upstream/nameserver.ts";

export const LEADS_BACK = "it leads back to dns11";

/** A server in its place in this flight. */
export interface Candidate {
  readonly nameserver: Nameserver;
  state: "unasked" | "asked" | "bad";
  asks: number;
  reason: string;
  /** It could not be reached at all, which is what lets a backup in. */
  isUnreachable: boolean;
  /** It is asked without EDNS, which it could not read. */
  isPlain: boolean;
}

interface LineParts {
  readonly nameservers: readonly Nameserver[];
  /** Left out of them: they lead back to who asks. */
  readonly leadingBack: readonly Nameserver[];
  readonly policy: AskPolicy;
  /** Who asks; servers may be down for one alone. */
  readonly by: number;
  /** With which of them to begin, where they take turns. */
  readonly turn: number;
}

export function lineUp({ nameservers, leadingBack, policy, turn, by }: LineParts, now: number): Candidate[] {
  const [only] = nameservers;
  // Most lists have one server, and no order.
  if (nameservers.length === 1 && only !== undefined && leadingBack.length === 0) return [candidateOf(only)];
  const usable = nameservers.filter((nameserver) => !leadingBack.includes(nameserver));
  const start = policy.rotates && usable.length > 0 ? turn % usable.length : 0;
  const rotated = [...usable.slice(start), ...usable.slice(0, start)];
  const rank = (nameserver: Nameserver): number =>
    Number(nameserver.server.isBackup === true) * 2 +
    Number(policy.order === "adaptive" && nameserver.health.isDown(now, by));
  const ordered = rotated.length > 1 ? rotated.toSorted((a, b) => rank(a) - rank(b)) : rotated;
  return ordered.map(candidateOf);
}

function candidateOf(nameserver: Nameserver): Candidate {
  return { nameserver, state: "unasked", asks: 0, reason: "no answer in time", isUnreachable: false, isPlain: false };
}

// By loops: a function for each of these looks, in each of thousands of flights, would be one object more.

export function isAnyUp(line: readonly Candidate[], now: number, by: number): boolean {
  for (const { nameserver } of line) if (!nameserver.health.isDown(now, by)) return true;
  return false;
}

export function isAnyAsked(line: readonly Candidate[]): boolean {
  for (const { state } of line) if (state === "asked") return true;
  return false;
}

/** Whether nobody else is left to be asked. */
export function isLastUnasked(line: readonly Candidate[], nameserver: Nameserver): boolean {
  for (const one of line) if (one.state === "unasked" && one.nameserver !== nameserver) return false;
  return true;
}

/** How it came to be in this order, for whoever has it explained. */
export function tellLine(
  { leadingBack, policy, by }: LineParts,
  line: readonly Candidate[],
  journal: FlightJournal,
  now: number,
): void {
  const turns = policy.rotates && line.length > 1 ? ", taking turns" : "";
  if (line.length > 1 || policy.order !== "adaptive") journal.note(now, undefined, `order ${policy.order}${turns}`);
  for (const [place, { nameserver }] of line.entries()) {
    const { server, health } = nameserver;
    const backup = server.isBackup === true ? ", a backup for when nobody else can be reached" : "";
    journal.note(now, server, `place ${place + 1}: ${healthText(health, now, by)}${backup}`);
  }
  for (const { server } of leadingBack) journal.note(now, server, `left out: ${LEADS_BACK}`);
}

function healthText(health: Nameserver["health"], now: number, by: number): string {
  const { rttMs, reason } = health;
  const usual = rttMs === undefined ? "has not answered yet" : `usually answers in ${rttMs.toFixed(1)} ms`;
  return health.isDown(now, by) ? `down (${reason ?? "unknown"}), ${usual}` : `up, ${usual}`;
}
