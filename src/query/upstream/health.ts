/**
 * Health: what experience tells of one server. It is usually so fast; it may be down; and if it is, when it is worth a
 * query on trial. Only queries that are asked anyway are looked at: nothing is sent to find out.
 *
 *   up --(silent for several queries and a while, refuses, or fails at everything)--> down --(any good answer)--> up
 *                                                                                      |  on trial now and then
 */
import { LIMITS } from "../../config/limits.ts";

/** Weights of the newest sample in the running means, as TCP has them (RFC 6298). */
const GAIN = 1 / 8;
const VARIANCE_GAIN = 1 / 4;
const DEVIATIONS = 4;

export class Health {
  readonly #onChange: (isUp: boolean, reason: string) => void;
  #rttMs: number | undefined;
  #deviationMs = 0;
  #unanswered = 0;
  #unansweredSinceMs = 0;
  #useless = 0;
  #isDown = false;
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

  isDown(nowMs: number): boolean {
    const isSilent =
      this.#unanswered >= LIMITS.downAfterQueries && nowMs - this.#unansweredSinceMs >= LIMITS.downAfterMs;
    if (!this.#isDown && isSilent) this.#goDown(nowMs, "it does not answer");
    return this.#isDown;
  }

  /** Whether a server that is down is to get this query, too. */
  takeTrial(nowMs: number): boolean {
    if (!this.#isDown || nowMs < this.#trialAtMs) return false;
    this.#trialAfterMs = Math.min(LIMITS.trialMsLast, this.#trialAfterMs * 2);
    this.#trialAtMs = nowMs + this.#trialAfterMs;
    return true;
  }

  asked(nowMs: number): void {
    if (this.#unanswered === 0) this.#unansweredSinceMs = nowMs;
    this.#unanswered++;
    this.counters.queries++;
  }

  /** It has answered something, in so many milliseconds where that is known. */
  answered(nowMs: number, tookMs: number | undefined, isUseful: boolean): void {
    this.#unanswered = 0;
    this.counters.answers++;
    if (!isUseful) this.counters.useless++;
    if (tookMs !== undefined) this.#learn(tookMs);
    if (isUseful) {
      this.#useless = 0;
      this.#trialAfterMs = LIMITS.trialMsFirst;
      if (this.#isDown) {
        this.#isDown = false;
        this.#change(nowMs, "it answers again");
      }
      return;
    }
    this.#useless++;
    if (!this.#isDown && this.#useless >= LIMITS.downAfterUseless) this.#goDown(nowMs, "it fails at everything");
  }

  /** It cannot be reached at all. */
  failed(nowMs: number, reason: string): void {
    this.counters.unreachable++;
    if (!this.#isDown) this.#goDown(nowMs, reason);
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

  #goDown(nowMs: number, reason: string): void {
    this.#isDown = true;
    this.#trialAtMs = nowMs + this.#trialAfterMs;
    this.#change(nowMs, reason);
  }

  #change(nowMs: number, reason: string): void {
    this.#reason = reason;
    this.#sinceMs = nowMs;
    this.#onChange(!this.#isDown, reason);
  }
}
