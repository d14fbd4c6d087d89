/**
 * Health: the observed state of one server: its usual response time, whether it is down, and when a server that is down
 * gets a trial query. Only client queries are observed; there are no health-check queries.
 *
 * A container chooses what it queries, and so whether a healthy server stays silent: any zone may have broken
 * authoritative servers. So the observations of one container count for that container alone, and for all only if
 * another container observes the same or no other container uses the server.
 *
 * Errors such as SERVFAIL bring no server down: which server comes first may decide what a name means, and one that
 * answers costs no time.
 *
 *   up --(no answer to several queries for a while, or unreachable)--> down --(any answer, an error only if it is quick)--> up
 *                                                                       |  trial query now and then
 */
import { LIMITS } from "../../base/limits.ts";
import { TLS_FAILED } from "../../base/model/view.ts";

/** Weight of the newest sample in the moving averages, as in TCP (RFC 6298). */
const GAIN = 1 / 8;
const VARIANCE_GAIN = 1 / 4;
const DEVIATIONS = 4;
/** Fewer answers do not show what is usual: the first one may be a late one. */
const USUAL_ANSWERS = 16;

/** Kernel errors that mean the server is absent or unreachable. Other errors do not concern the server. */
const ABSENT = /\b(ECONNREFUSED|ECONNRESET|EHOSTUNREACH|EHOSTDOWN|ENETUNREACH|ENETDOWN|ETIMEDOUT)\b/;

function isAbsent(reason: string): boolean {
  return reason.startsWith(TLS_FAILED) || ABSENT.test(reason);
}

/** `isByTransport`: the server is, or was, down because it does not answer at all. */
export type OnHealthChange = (isUp: boolean, reason: string, isByTransport: boolean) => void;

export class Health {
  readonly #onChange: OnHealthChange;
  #rttMs: number | undefined;
  #deviationMs = 0;
  readonly #unanswered = new Streak();
  /** Errors of sockets since the last reply, as far as each confirms the one before; and a number for each. */
  #socketErrors = 0;
  #suspicion = 0;
  #isDown = false;
  /** The only client for which it is down; undefined for all. */
  #downFor: number | undefined;
  /** The client that uses it, as long as there is only one. */
  #soleClient: number | undefined;
  #hasManyClients = false;
  #trialAtMs = 0;
  #trialAfterMs: number = LIMITS.trialMsFirst;
  #reason: string | undefined;
  #isByTransport = false;
  #sinceMs: number | undefined;
  /** Queries and their results; an answer may be useless, such as SERVFAIL. */
  readonly counters = { queries: 0, answers: 0, useless: 0, unreachable: 0 };

  constructor(onChange: OnHealthChange) {
    this.#onChange = onChange;
  }

  /** Usual response time; undefined until the first answer. */
  get rttMs(): number | undefined {
    return this.#rttMs;
  }

  /**
   * How long most answers take at least; undefined after few of them. Between quick ones some late ones raise what is usual, and what
   * it deviates by even more.
   */
  get leastMs(): number | undefined {
    if (this.#rttMs === undefined || this.counters.answers < USUAL_ANSWERS) return undefined;
    return this.#rttMs - this.#deviationMs;
  }

  /** Usual deviation from that. */
  get deviationMs(): number {
    return this.#deviationMs;
  }

  /** Why it went down, or came back up. */
  get reason(): string | undefined {
    return this.#reason;
  }

  /** The time at which it last went down or came back up; undefined if it has always been up. */
  get sinceMs(): number | undefined {
    return this.#sinceMs;
  }

  /** How long to wait before the next server is tried as well. */
  get hedgeDelayMs(): number {
    if (this.#rttMs === undefined) return LIMITS.hedgeMsFirst;
    return Math.min(LIMITS.hedgeMsMax, Math.max(LIMITS.hedgeMsMin, this.#slowMs));
  }

  get #slowMs(): number {
    return (this.#rttMs ?? 0) + DEVIATIONS * this.#deviationMs;
  }

  /**
   * Whether it is down for one client; or, without one, for all. Updates the state: silence counts only once enough
   * time has passed.
   */
  checkIsDown(nowMs: number, client?: number): boolean {
    this.#evaluate(nowMs, client);
    return this.#isDown && (this.#downFor === undefined || this.#downFor === client);
  }

  /** Whether a server that is down gets this query as a trial; if so, schedules the next trial. */
  takeTrial(nowMs: number, client: number): boolean {
    if (!this.checkIsDown(nowMs, client) || nowMs < this.#trialAtMs) return false;
    this.#trialAfterMs = Math.min(LIMITS.trialMsLast, this.#trialAfterMs * 2);
    this.#trialAtMs = nowMs + this.#trialAfterMs;
    return true;
  }

  /** `what`: the name, and how often it was asked for; A and AAAA of a slow name are no two signs of silence. */
  recordQuery(nowMs: number, client: number, what: number): void {
    this.#soleClient ??= client;
    if (this.#soleClient !== client) this.#hasManyClients = true;
    this.#unanswered.add(nowMs, client, what);
    this.counters.queries++;
  }

  /** The same query again, in case its packet was lost: no further sign of silence. */
  recordRepeat(): void {
    this.counters.queries++;
  }

  /** It gave a good answer, after `tookMs` if known. */
  recordAnswer(nowMs: number, tookMs: number | undefined): void {
    this.#recordReply();
    this.#recordAlive(nowMs, tookMs);
  }

  /** It answered with an error, such as SERVFAIL. One whose own servers are gone takes seconds for it, and stays down. */
  recordFailure(nowMs: number, tookMs: number | undefined): void {
    this.#recordReply();
    this.counters.useless++;
    if (tookMs === undefined || tookMs < LIMITS.downAfterMs) this.#recordAlive(nowMs, tookMs);
  }

  #recordReply(): void {
    this.#unanswered.clear();
    this.#socketErrors = 0;
    this.counters.answers++;
  }

  #recordAlive(nowMs: number, tookMs: number | undefined): void {
    if (tookMs !== undefined) this.#updateRtt(tookMs);
    this.#trialAfterMs = LIMITS.trialMsFirst;
    if (!this.#isDown) return;
    this.#isDown = false;
    this.#change(nowMs, "answers again");
  }

  /** What is suspected when a socket is opened. */
  get suspicion(): number {
    return this.#suspicion;
  }

  /**
   * The kernel reports that it cannot be reached, on a socket that was opened with this suspicion. The report may be forged, and
   * one that was sent to all ports reaches all sockets, so only sockets that were opened since can confirm it. Returns whether
   * this is a new suspicion.
   */
  recordSocketError(nowMs: number, suspicion: number, reason: string): boolean {
    if (!ABSENT.test(reason) || suspicion !== this.#suspicion) return false;
    this.#suspicion++;
    this.#socketErrors++;
    if (this.#socketErrors >= LIMITS.downAfterSocketErrors) this.#recordAbsent(nowMs, reason);
    return true;
  }

  /** It cannot be reached for this reason, unless the reason lies with us: a lack of descriptors or memory. */
  recordUnreachable(nowMs: number, reason: string): void {
    if (isAbsent(reason)) this.#recordAbsent(nowMs, reason);
  }

  #recordAbsent(nowMs: number, reason: string): void {
    this.counters.unreachable++;
    this.#goDown(nowMs, undefined, reason, true);
  }

  #evaluate(nowMs: number, client: number | undefined): void {
    const silence = this.#unanswered;
    if (silence.count < LIMITS.downAfterQueries || nowMs - silence.sinceMs < LIMITS.downAfterMs) return;
    // A server that always takes longer is slow, and not silent.
    const silentMs = Math.max(LIMITS.downAfterMs, Math.min(LIMITS.downAfterMsSlow, this.#slowMs));
    if (nowMs - silence.sinceMs < silentMs) return;
    const isConfirmed = silence.others > 0 && nowMs - silence.othersSinceMs >= silentMs;
    if (isConfirmed || !this.#hasManyClients) this.#goDown(nowMs, undefined, "does not answer", true);
    else if (client !== undefined && client === silence.firstClient)
      this.#goDown(nowMs, client, "does not answer (observed by one container only)", false);
  }

  #updateRtt(tookMs: number): void {
    if (this.#rttMs === undefined) {
      this.#rttMs = tookMs;
      this.#deviationMs = tookMs / 2;
      return;
    }
    this.#deviationMs += VARIANCE_GAIN * (Math.abs(tookMs - this.#rttMs) - this.#deviationMs);
    this.#rttMs += GAIN * (tookMs - this.#rttMs);
  }

  #goDown(nowMs: number, downFor: number | undefined, reason: string, isByTransport: boolean): void {
    const isAlreadyDown = this.#isDown && (this.#downFor === undefined || downFor !== undefined);
    if (isAlreadyDown) return;
    this.#isDown = true;
    this.#downFor = downFor;
    this.#isByTransport = isByTransport;
    this.#trialAtMs = nowMs + this.#trialAfterMs;
    this.#change(nowMs, reason);
  }

  #change(nowMs: number, reason: string): void {
    this.#reason = reason;
    this.#sinceMs = nowMs;
    this.#onChange(!this.#isDown, reason, this.#isByTransport);
  }
}

/** Consecutive observations of one kind: how many, since when, and whether by one client alone. */
class Streak {
  count = 0;
  sinceMs = 0;
  /** The client of the first one. */
  firstClient: number | undefined;
  /** Observations of other clients, and since when. */
  others = 0;
  othersSinceMs = 0;
  /** The last one. */
  #client: number | undefined;
  #what = 0;

  /** The same query again counts once. */
  add(nowMs: number, client: number, what: number): void {
    if (client === this.#client && what === this.#what) return;
    this.#client = client;
    this.#what = what;
    if (this.count === 0) {
      this.firstClient = client;
      this.sinceMs = nowMs;
    }
    this.count++;
    if (client === this.firstClient) return;
    if (this.others === 0) this.othersSinceMs = nowMs;
    this.others++;
  }

  clear(): void {
    this.count = this.others = 0;
    this.firstClient = this.#client = undefined;
  }
}
