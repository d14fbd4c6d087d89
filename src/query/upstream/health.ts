/**
 * Health: what experience tells of one server. It is usually so fast; it may be down; and if it is, when it is worth a
 * query on trial. Only queries that are asked anyway are looked at: nothing is sent to find out.
 *
 * A container chooses what it asks, and with that whether a healthy server is silent or fails: any zone may have servers
 * that do. So what one container sees counts for itself, and for all only when another one sees it, too, or when nobody
 * else asks that server.
 *
 *   up --(silent for several queries and a while, refuses, or fails at everything)--> down --(any good answer)--> up
 *                                                                                      |  on trial now and then
 */
import { LIMITS } from "../../base/limits.ts";
import { Streak } from "./streak.ts";

/** Weights of the newest sample in the running means, as TCP has them (RFC 6298). */
const GAIN = 1 / 8;
const VARIANCE_GAIN = 1 / 4;
const DEVIATIONS = 4;

export class Health {
  readonly #onChange: (isUp: boolean, reason: string) => void;
  #rttMs: number | undefined;
  #deviationMs = 0;
  readonly #unanswered = new Streak();
  readonly #useless = new Streak();
  #isDown = false;
  /** The only one for whom it is down; undefined for everybody. */
  #downFor: number | undefined;
  /** Who has asked it so far, as long as that is one. */
  #soleClient: number | undefined;
  #hasManyClients = false;
  #trialAtMs = 0;
  #trialAfterMs: number = LIMITS.trialMsFirst;
  #reason: string | undefined;
  #sinceMs: number | undefined;
  /** What it was asked, and what came of it; an answer may be useless, as SERVFAIL is. */
  readonly counters = { queries: 0, answers: 0, useless: 0, unreachable: 0 };

  constructor(onChange: (isUp: boolean, reason: string) => void) {
    this.#onChange = onChange;
  }

  /** Time it usually takes; undefined as long as it has not answered. */
  get rttMs(): number | undefined {
    return this.#rttMs;
  }

  /** How far its answers are usually from that. */
  get deviationMs(): number {
    return this.#deviationMs;
  }

  /** Why it went down, or came back. */
  get reason(): string | undefined {
    return this.#reason;
  }

  /** When it last went down, or came back; undefined where it has always been up. */
  get sinceMs(): number | undefined {
    return this.#sinceMs;
  }

  /** How long to wait for it before another one is asked as well. */
  get patienceMs(): number {
    if (this.#rttMs === undefined) return LIMITS.hedgeMsFirst;
    const slow = this.#rttMs + DEVIATIONS * this.#deviationMs;
    return Math.min(LIMITS.hedgeMsMax, Math.max(LIMITS.hedgeMsMin, slow));
  }

  /** For one who asks; or, without one, for everybody. */
  checkIsDown(nowMs: number, by?: number): boolean {
    this.#judge(nowMs, by);
    return this.#isDown && (this.#downFor === undefined || this.#downFor === by);
  }

  /** Whether a server that is down is to get this query, too. */
  takeTrial(nowMs: number, by: number): boolean {
    if (!this.checkIsDown(nowMs, by) || nowMs < this.#trialAtMs) return false;
    this.#trialAfterMs = Math.min(LIMITS.trialMsLast, this.#trialAfterMs * 2);
    this.#trialAtMs = nowMs + this.#trialAfterMs;
    return true;
  }

  recordQuery(nowMs: number, by: number): void {
    this.#soleClient ??= by;
    if (this.#soleClient !== by) this.#hasManyClients = true;
    this.#unanswered.add(nowMs, by);
    this.counters.queries++;
  }

  /** It has answered something, in so many milliseconds where that is known. */
  recordAnswer(nowMs: number, tookMs: number | undefined, isUseful: boolean, by: number): void {
    this.#unanswered.clear();
    this.counters.answers++;
    if (!isUseful) this.counters.useless++;
    if (tookMs !== undefined) this.#learn(tookMs);
    if (isUseful) {
      this.#useless.clear();
      this.#trialAfterMs = LIMITS.trialMsFirst;
      if (this.#isDown) {
        this.#isDown = false;
        this.#change(nowMs, "it answers again");
      }
      return;
    }
    this.#useless.add(nowMs, by);
    this.#judge(nowMs, by);
  }

  /** It cannot be reached at all. */
  recordUnreachable(nowMs: number, reason: string): void {
    this.counters.unreachable++;
    this.#goDown(nowMs, undefined, reason);
  }

  #judge(nowMs: number, by: number | undefined): void {
    const {
      downAfterQueries,
      downAfterMs,
      downAfterErrors: downAfterUseless,
      downAfterErrorsOthers: downAfterUselessOthers,
    } = LIMITS;
    const silence = this.#unanswered;
    if (silence.count >= downAfterQueries && nowMs - silence.sinceMs >= downAfterMs) {
      const isSeenByOthers = silence.others > 0 && nowMs - silence.othersSinceMs >= downAfterMs;
      this.#suspect(nowMs, by, silence.firstClient, isSeenByOthers, "it does not answer");
    }
    const useless = this.#useless;
    if (useless.count >= downAfterUseless) {
      this.#suspect(nowMs, by, useless.firstClient, useless.others >= downAfterUselessOthers, "it fails at everything");
    }
  }

  #suspect(
    nowMs: number,
    by: number | undefined,
    witness: number | undefined,
    isSeenByOthers: boolean,
    reason: string,
  ): void {
    if (isSeenByOthers || !this.#hasManyClients) this.#goDown(nowMs, undefined, reason);
    else if (by !== undefined && by === witness) this.#goDown(nowMs, by, `${reason} (seen by one container)`);
  }

  #learn(tookMs: number): void {
    if (this.#rttMs === undefined) {
      this.#rttMs = tookMs;
      this.#deviationMs = tookMs / 2;
      return;
    }
    this.#deviationMs += VARIANCE_GAIN * (Math.abs(tookMs - this.#rttMs) - this.#deviationMs);
    this.#rttMs += GAIN * (tookMs - this.#rttMs);
  }

  #goDown(nowMs: number, downFor: number | undefined, reason: string): void {
    const isKnown = this.#isDown && (this.#downFor === undefined || downFor !== undefined);
    if (isKnown) return;
    this.#isDown = true;
    this.#downFor = downFor;
    this.#trialAtMs = nowMs + this.#trialAfterMs;
    this.#change(nowMs, reason);
  }

  #change(nowMs: number, reason: string): void {
    this.#reason = reason;
    this.#sinceMs = nowMs;
    this.#onChange(!this.#isDown, reason);
  }
}
