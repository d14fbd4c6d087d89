/**
 * Health: the observed state of one server: its usual response time, whether it is down, and when a server that is down
 * gets a trial query. Only client queries are observed; there are no health-check queries.
 *
 * A container chooses what it queries, and so whether a healthy server fails or stays silent: any zone may have broken
 * authoritative servers. So the observations of one container count for that container alone, and for all only if
 * another container observes the same or no other container uses the server. Failures count only if they are of names in
 * different zones, because one broken zone fails at every server.
 *
 *   up --(no answer to several queries for a while, unreachable, or only failures)--> down --(any good answer)--> up
 *                                                                                      |  trial query now and then
 */
import { LIMITS } from "../../base/limits.ts";
import { Streak } from "./streak.ts";

/** Weight of the newest sample in the moving averages, as in TCP (RFC 6298). */
const GAIN = 1 / 8;
const VARIANCE_GAIN = 1 / 4;
const DEVIATIONS = 4;

/** Kernel errors that mean the server is absent or unreachable. Other errors do not concern the server. */
const ABSENT = /\b(ECONNREFUSED|ECONNRESET|EHOSTUNREACH|EHOSTDOWN|ENETUNREACH|ENETDOWN|ETIMEDOUT)\b/;

/** `isByTransport`: it is, or was, down because it does not answer at all. */
export type OnHealthChange = (isUp: boolean, reason: string, isByTransport: boolean) => void;

export class Health {
  readonly #onChange: OnHealthChange;
  #rttMs: number | undefined;
  #deviationMs = 0;
  readonly #unanswered = new Streak();
  readonly #errors = new Streak();
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
    const slow = this.#rttMs + DEVIATIONS * this.#deviationMs;
    return Math.min(LIMITS.hedgeMsMax, Math.max(LIMITS.hedgeMsMin, slow));
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

  recordQuery(nowMs: number, client: number): void {
    this.#soleClient ??= client;
    if (this.#soleClient !== client) this.#hasManyClients = true;
    this.#unanswered.add(nowMs, client);
    this.counters.queries++;
  }

  /** It gave a good answer, after `tookMs` if known. */
  recordAnswer(nowMs: number, tookMs: number | undefined): void {
    this.#recordReply(tookMs);
    this.#errors.clear();
    this.#trialAfterMs = LIMITS.trialMsFirst;
    if (!this.#isDown) return;
    this.#isDown = false;
    this.#change(nowMs, "answers again");
  }

  /** It answered with a failure, such as SERVFAIL, for a name in this zone. */
  recordFailure(nowMs: number, tookMs: number | undefined, client: number, zone: number): void {
    this.#recordReply(tookMs);
    this.counters.useless++;
    this.#errors.add(nowMs, client, zone);
    this.#evaluate(nowMs, client);
  }

  #recordReply(tookMs: number | undefined): void {
    this.#unanswered.clear();
    this.#socketErrors = 0;
    this.counters.answers++;
    if (tookMs !== undefined) this.#updateRtt(tookMs);
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
    if (ABSENT.test(reason)) this.#recordAbsent(nowMs, reason);
  }

  #recordAbsent(nowMs: number, reason: string): void {
    this.counters.unreachable++;
    this.#goDown(nowMs, undefined, reason, true);
  }

  #evaluate(nowMs: number, client: number | undefined): void {
    const { downAfterQueries, downAfterMs, downAfterErrors, downAfterErrorsOthers } = LIMITS;
    const silence = this.#unanswered;
    if (silence.count >= downAfterQueries && nowMs - silence.sinceMs >= downAfterMs) {
      const isConfirmed = silence.others > 0 && nowMs - silence.othersSinceMs >= downAfterMs;
      this.#suspect(nowMs, client, silence, isConfirmed);
    }
    const errors = this.#errors;
    if (errors.count >= downAfterErrors && errors.hasManyZones) {
      this.#suspect(nowMs, client, errors, errors.others >= downAfterErrorsOthers && errors.haveOthersManyZones);
    }
  }

  #suspect(nowMs: number, client: number | undefined, streak: Streak, isConfirmed: boolean): void {
    const isSilent = streak === this.#unanswered;
    const reason = isSilent ? "does not answer" : "answers with errors only";
    if (isConfirmed || !this.#hasManyClients) this.#goDown(nowMs, undefined, reason, isSilent);
    else if (client !== undefined && client === streak.firstClient)
      this.#goDown(nowMs, client, `${reason} (observed by one container only)`, false);
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
