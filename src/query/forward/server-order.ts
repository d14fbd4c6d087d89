/**
 * LineUp: the servers of one flight in the order in which they are asked: healthy ones as they are listed, then those that
 * are down; a server that leads back to us is not among them.
 */
import type { ForwardPolicy } from "../../base/model/upstream-policy.ts";
import type { UpstreamJournal } from "../trace.ts";
import type { Nameserver } from "../upstream/nameserver.ts";

export const FORWARDING_LOOP = "it leads back to dns11";

/** A server in its place in this flight. */
export interface UpstreamCandidate {
  readonly nameserver: Nameserver;
  state: "unasked" | "asked" | "bad";
  tries: number;
  reason: string;
  /** It could not be reached at all, which is what lets a backup in. */
  isUnreachable: boolean;
  /** It is asked without EDNS, which it could not read. */
  isWithoutEdns: boolean;
}

interface OrderParts {
  readonly nameservers: readonly Nameserver[];
  /** Left out of them: they lead back to who asks. */
  readonly looping: readonly Nameserver[];
  readonly policy: ForwardPolicy;
  /** Who asks; servers may be down for one alone. */
  readonly clientNumber: number;
  /** With which of them to begin, where they take turns. */
  readonly turn: number;
}

export function orderServers(
  { nameservers, looping: leadingBack, policy, turn, clientNumber: by }: OrderParts,
  now: number,
): UpstreamCandidate[] {
  const [only] = nameservers;
  // Most lists have one server, and no order.
  if (nameservers.length === 1 && only !== undefined && leadingBack.length === 0) return [candidateOf(only)];
  const usable = nameservers.filter((nameserver) => !leadingBack.includes(nameserver));
  const start = policy.rotates && usable.length > 0 ? turn % usable.length : 0;
  const rotated = [...usable.slice(start), ...usable.slice(0, start)];
  const rank = (nameserver: Nameserver): number =>
    Number(nameserver.server.isBackup === true) * 2 +
    Number(policy.order === "adaptive" && nameserver.health.checkIsDown(now, by));
  const ordered = rotated.length > 1 ? rotated.toSorted((a, b) => rank(a) - rank(b)) : rotated;
  return ordered.map(candidateOf);
}

function candidateOf(nameserver: Nameserver): UpstreamCandidate {
  return {
    nameserver,
    state: "unasked",
    tries: 0,
    reason: "no answer in time",
    isUnreachable: false,
    isWithoutEdns: false,
  };
}

// By loops: a function for each of these looks, in each of thousands of flights, would be one object more.

export function isAnyUp(line: readonly UpstreamCandidate[], now: number, by: number): boolean {
  for (const { nameserver } of line) if (!nameserver.health.checkIsDown(now, by)) return true;
  return false;
}

export function isAnyPending(line: readonly UpstreamCandidate[]): boolean {
  for (const { state } of line) if (state === "asked") return true;
  return false;
}

/** Whether nobody else is left to be asked. */
export function isLastUntried(line: readonly UpstreamCandidate[], nameserver: Nameserver): boolean {
  for (const one of line) if (one.state === "unasked" && one.nameserver !== nameserver) return false;
  return true;
}

/** How it came to be in this order, for whoever has it explained. */
export function noteOrder(
  { looping: leadingBack, policy, clientNumber: by }: OrderParts,
  line: readonly UpstreamCandidate[],
  journal: UpstreamJournal,
  now: number,
): void {
  const turns = policy.rotates && line.length > 1 ? ", taking turns" : "";
  if (line.length > 1 || policy.order !== "adaptive") journal.note(now, undefined, `order ${policy.order}${turns}`);
  for (const [place, { nameserver }] of line.entries()) {
    const { server, health } = nameserver;
    const backup = server.isBackup === true ? ", a backup for when nobody else can be reached" : "";
    journal.note(now, server, `place ${place + 1}: ${healthText(health, now, by)}${backup}`);
  }
  for (const { server } of leadingBack) journal.note(now, server, `left out: ${FORWARDING_LOOP}`);
}

function healthText(health: Nameserver["health"], now: number, by: number): string {
  const { rttMs, reason } = health;
  const usual = rttMs === undefined ? "has not answered yet" : `usually answers in ${rttMs.toFixed(1)} ms`;
  return health.checkIsDown(now, by) ? `down (${reason ?? "unknown"}), ${usual}` : `up, ${usual}`;
}
