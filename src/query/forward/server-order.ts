/**
 * The order of servers for one upstream query: healthy ones in the order of the list, then those that are down. Servers
 * that loop back to the client are left out.
 */
import { HEADER_BYTES } from "../../base/dns/header.ts";
import { RCODE, rcodeName } from "../../base/dns/rcode.ts";
import { LIMITS } from "../../base/limits.ts";
import { serverText } from "../../base/model/server-text.ts";
import type { ForwardPolicy } from "../../base/model/upstream-policy.ts";
import type { DeferredQuery } from "../ports.ts";
import type { UpstreamJournal } from "../trace.ts";
import type { ServerFailure, UpstreamQueryPlan } from "./upstream-query-plan.ts";
import type { Nameserver } from "../upstream/nameserver.ts";
import type { QueuedQuery, ServerQueue } from "../upstream/server-queue.ts";

const FORWARDING_LOOP = "forwarding loop back to dns11";

export const TIMED_OUT = "timed out";
export const WAITS_IN_QUEUE = "too many queries of the container wait for it";

/** A server of the list, and its state in this upstream query. */
export interface UpstreamCandidate extends QueuedQuery {
  readonly nameserver: Nameserver;
  /**
   * Its index in the list, counted from the first one to try if servers rotate. A server that is down is tried later and keeps its rank.
   */
  readonly rank: number;
  /** The client's queries to it, once it is tried. */
  queue: ServerQueue | undefined;
  /** `waiting`: in the container's queue to the server. `held`: its reply waits for servers before it in the list. */
  state: "untried" | "waiting" | "pending" | "held" | "failed";
  tries: number;
  /** It was asked a second time when the next server was asked. */
  isAskedAgain: boolean;
  /** It has declined to answer, which is its last word. */
  hasRefused: boolean;
  reason: string;
  /** Errors of the sockets on which it was queried. */
  socketErrors: number;
  /** It could not be reached at all, which is the condition for using a backup. */
  isUnreachable: boolean;
  /** What its queries leave out, EDNS and AD, because it rejected them or was silent. */
  omitted: number;
  silentTo: number;
  /** When it was queried over TCP, and whether nothing but TCP may still bring its reply. */
  tcpMs: number | undefined;
  isTcpOnly: boolean;
}

/** A good reply, which may have to wait for servers before its own in the list. */
export interface GoodReply {
  readonly candidate: UpstreamCandidate;
  readonly message: Buffer;
  readonly rcode: number;
  readonly isWhole: boolean;
  readonly lacksExtras: boolean;
  /** It replied to another client's query, and the cache may have been flushed since. */
  readonly isEarlier?: boolean;
}

interface OrderParts {
  readonly nameservers: readonly Nameserver[];
  /** Servers that are left out because they loop back to the client. */
  readonly looping: readonly Nameserver[];
  readonly policy: ForwardPolicy;
  /** The client; a server may be down for one client only. */
  readonly clientNumber: number;
  /** The index in the list to start at, if servers rotate. */
  readonly rotation: number;
}

export function orderServers(
  { nameservers, looping, policy, rotation, clientNumber }: OrderParts,
  now: number,
): UpstreamCandidate[] {
  const [only] = nameservers;
  // Most lists have one server, and so no order.
  if (nameservers.length === 1 && only !== undefined && looping.length === 0) return [candidateOf(only, 0)];
  const usable = nameservers.filter((nameserver) => !looping.includes(nameserver));
  const start = policy.rotates && usable.length > 0 ? rotation % usable.length : 0;
  const rotated = [...usable.slice(start), ...usable.slice(0, start)];
  const rank = (nameserver: Nameserver): number =>
    Number(nameserver.server.isBackup === true) * 2 +
    Number(policy.order === "adaptive" && nameserver.health.checkIsDown(now, clientNumber));
  const candidates = rotated.map(candidateOf);
  return candidates.length > 1 ? candidates.toSorted((a, b) => rank(a.nameserver) - rank(b.nameserver)) : candidates;
}

function candidateOf(nameserver: Nameserver, rank: number): UpstreamCandidate {
  return {
    nameserver,
    rank,
    queue: undefined,
    state: "untried",
    tries: 0,
    isAskedAgain: false,
    hasRefused: false,
    socketErrors: 0,
    reason: TIMED_OUT,
    isUnreachable: false,
    omitted: 0,
    silentTo: 0,
    tcpMs: undefined,
    isTcpOnly: false,
    older: undefined,
    newer: undefined,
    isOutstanding: false,
    sentMs: 0,
    epoch: 0,
    send: undefined,
  };
}

// Loops instead of callbacks: closures for thousands of queries in flight would be thousands of objects.

export function isAnyUp(candidates: readonly UpstreamCandidate[], now: number, clientNumber: number): boolean {
  for (const { nameserver } of candidates) if (!nameserver.health.checkIsDown(now, clientNumber)) return true;
  return false;
}

export function isAny(candidates: readonly UpstreamCandidate[], wanted: UpstreamCandidate["state"]): boolean {
  for (const { state } of candidates) if (state === wanted) return true;
  return false;
}

/** Whether any server may still answer. */
export function isAnyOpen(candidates: readonly UpstreamCandidate[]): boolean {
  return isAny(candidates, "pending") || isAny(candidates, "waiting");
}

/**
 * A local stub resolver knows which server is right for which name. The servers behind it do not, so they are used
 * only if it is unreachable. Docker's resolver only passes on what others say, so those behind it are used if it fails, too.
 */
export function isEligible(candidates: readonly UpstreamCandidate[], { nameserver }: UpstreamCandidate): boolean {
  if (nameserver.server.isBackup !== true) return true;
  return candidates.every(
    (candidate) =>
      candidate.nameserver.server.isBackup === true || candidate.isUnreachable || hasDockerFailed(candidate),
  );
}

/** Whether it is down and gets this query to try it, which a backup gets only where it may be used. */
export function takesTrial(
  candidates: readonly UpstreamCandidate[],
  candidate: UpstreamCandidate,
  now: number,
  clientNumber: number,
): boolean {
  if (candidate.state !== "untried" || !isEligible(candidates, candidate)) return false;
  return candidate.nameserver.health.takeTrial(now, clientNumber);
}

const DOCKER_FAILURES = new Set([rcodeName(RCODE.SERVFAIL), rcodeName(RCODE.REFUSED)]);

function hasDockerFailed({ nameserver, state, reason }: UpstreamCandidate): boolean {
  return nameserver.server.from === "docker" && state === "failed" && DOCKER_FAILURES.has(reason);
}

/**
 * Which servers may be asked where Docker's resolver is the first: those of the host not for a name without a dot, nor for a container's
 * name, nor in the background, where it is unknown what kind of name it is.
 */
export function besideDocker(
  nameservers: readonly Nameserver[],
  message: Uint8Array,
  deferred: Pick<DeferredQuery, "isLocalName"> | undefined,
): readonly Nameserver[] {
  const isForHost = deferred !== undefined && !deferred.isLocalName && hasDot(message);
  return isForHost ? nameservers : nameservers.filter(({ server }) => server.isBackup !== true);
}

/** Whether the name of its question has at least two labels. */
function hasDot(message: Uint8Array): boolean {
  const first = message[HEADER_BYTES] ?? 0;
  return first > 0 && (message[HEADER_BYTES + 1 + first] ?? 0) > 0;
}

/** The next server to try, before this rank in the list. */
export function firstUntried(
  candidates: readonly UpstreamCandidate[],
  rank = Number.POSITIVE_INFINITY,
): UpstreamCandidate | undefined {
  for (const candidate of candidates)
    if (candidate.state === "untried" && candidate.rank < rank && isEligible(candidates, candidate)) return candidate;
  return undefined;
}

/** Whether the order of the list decides which reply counts: with rotation and in parallel order, all servers are equal. */
export function isRanked({ order, rotates }: ForwardPolicy): boolean {
  return order !== "parallel" && !rotates;
}

/** A server before this rank that has the query and may still answer. One that is down may not, as long as others are up. */
export function awaitedBefore(
  candidates: readonly UpstreamCandidate[],
  rank: number,
  isDown: (nameserver: Nameserver) => boolean,
): UpstreamCandidate | undefined {
  for (const candidate of candidates) {
    const { state, nameserver } = candidate;
    if (candidate.rank >= rank || (state !== "pending" && state !== "waiting")) continue;
    if (!isDown(nameserver)) return candidate;
  }
  return undefined;
}

/** Why no server before this rank has answered instead, for a query that is being explained. */
export function whyLower(
  candidates: readonly UpstreamCandidate[],
  rank: number,
  isDown: (nameserver: Nameserver) => boolean,
): string {
  const before = candidates.filter((candidate) => candidate.rank < rank);
  const why = before.map(({ nameserver, state, reason }) => {
    const server = serverText(nameserver.server);
    if (state === "failed") return `; ${server} failed: ${reason}`;
    return isDown(nameserver) ? `; ${server} is down` : `; ${server} has not answered in time`;
  });
  return why.join("");
}

/**
 * The first server before this one that might soon give another reply, if the order of the list counts: it was down or silent, or its
 * failure may pass. One that a backup replaces always might.
 */
export function passedOver(
  candidates: readonly UpstreamCandidate[],
  { nameserver, rank }: UpstreamCandidate,
  isLower: boolean,
): UpstreamCandidate | undefined {
  const isBackup = nameserver.server.isBackup === true;
  let first: UpstreamCandidate | undefined;
  for (const candidate of candidates) {
    if (isBackup ? candidate.nameserver.server.isBackup === true : !isLower || candidate.hasRefused) continue;
    if (candidate.rank < (first?.rank ?? (isBackup ? Number.POSITIVE_INFINITY : rank))) first = candidate;
  }
  return first;
}

/** Whether a server before this rank has not been asked for reasons that other containers need not have. */
export function isSkippedForOne(
  candidates: readonly UpstreamCandidate[],
  rank: number,
  now: number,
  clientNumber: number,
): boolean {
  for (const { rank: each, state, nameserver } of candidates) {
    if (each >= rank || state === "failed") continue;
    const { health } = nameserver;
    if (state === "waiting" || (health.checkIsDown(now, clientNumber) && !health.checkIsDown(now))) return true;
  }
  return false;
}

/** The server that is tried once more, because packets get lost. */
export function leastTried(candidates: readonly UpstreamCandidate[]): UpstreamCandidate | undefined {
  const silent = candidates.filter(
    ({ state, tries }) => state === "pending" && tries < LIMITS.upstreamAttemptsPerServer,
  );
  return silent.toSorted((a, b) => a.tries - b.tries)[0];
}

/** Why each server that was to answer has not. */
export function failuresOf(
  { looping }: Pick<OrderParts, "looping">,
  candidates: readonly UpstreamCandidate[],
): ServerFailure[] {
  const tried = candidates.filter(({ state }) => state !== "untried");
  return [
    ...tried.map(({ nameserver, reason }) => ({ server: serverText(nameserver.server), reason })),
    ...looping.map(({ server }) => ({ server: serverText(server), reason: FORWARDING_LOOP })),
  ];
}

/** How long a server may take before the next one is tried, or it is tried again. */
export function hedgeDelayMs(
  { policy, hedges }: Pick<UpstreamQueryPlan, "policy" | "hedges">,
  candidates: readonly UpstreamCandidate[],
  { nameserver }: UpstreamCandidate,
): number {
  // Docker's embedded DNS tries several servers itself, one after the other, and loses no packets on the way to us.
  if (nameserver.server.from === "docker") return policy.budgetMs;
  if (isLastUntried(candidates, nameserver)) return Math.max(LIMITS.retransmitMs, nameserver.health.hedgeDelayMs);
  if (policy.order === "sequential" || !hedges) return policy.budgetMs / candidates.length;
  return nameserver.health.hedgeDelayMs;
}

/** Whether no other server is left to be tried. */
function isLastUntried(candidates: readonly UpstreamCandidate[], nameserver: Nameserver): boolean {
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
  const rotated = policy.rotates && candidates.length > 1 ? ", rotated" : "";
  if (candidates.length > 1 || policy.order !== "adaptive")
    journal.note(now, undefined, `order: ${policy.order}${rotated}`);
  for (const [index, { nameserver }] of candidates.entries()) {
    const { server, health } = nameserver;
    const backup = server.isBackup === true ? backupText(candidates) : "";
    const silences = silencesText(nameserver, now, clientNumber);
    journal.note(now, server, `position ${index + 1}: ${healthText(health, now, clientNumber)}${silences}${backup}`);
  }
  for (const { server } of looping) journal.note(now, server, `skipped: ${FORWARDING_LOOP}`);
}

function backupText(candidates: readonly UpstreamCandidate[]): string {
  const isDockers = candidates.some(({ nameserver }) => nameserver.server.from === "docker");
  return `, backup for when all others are unreachable${isDockers ? " or Docker's resolver fails" : ""}`;
}

/** Which queries it does not answer, and so does not get. */
function silencesText(nameserver: Nameserver, now: number, clientNumber: number): string {
  const { silentTo } = nameserver;
  const texts = [
    ...(nameserver.isRejecting(now, clientNumber) ? ["rejects queries with EDNS or AD"] : []),
    ...(silentTo.udp.isKnown(now) ? ["does not answer over udp"] : []),
    ...(silentTo.edns.isKnown(now) ? ["does not answer queries with EDNS"] : []),
    ...(silentTo.ad.isKnown(now) ? ["does not answer queries with AD"] : []),
  ];
  return texts.map((text) => `, ${text}`).join("");
}

function healthText(health: Nameserver["health"], now: number, clientNumber: number): string {
  const { rttMs, reason } = health;
  const usual = rttMs === undefined ? "no reply yet" : `usual response time ${rttMs.toFixed(1)} ms`;
  return health.checkIsDown(now, clientNumber) ? `down (${reason ?? "unknown"}), ${usual}` : `up, ${usual}`;
}
