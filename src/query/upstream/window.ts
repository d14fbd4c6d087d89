/**
 * Window: how many queries one container may have outstanding at one server. The container's own answers decide: where a
 * smaller window makes them come sooner, the queries only waited in the server, in the way of other containers. Where it
 * does not, the time is the server's own, and the window grows.
 *
 *   growing --(answers take longer than the server's own time, or now and then)--> half of it, for one round
 *      ^--(they come as late as before: that is its own time) the former size --'  |
 *      ^--(they come sooner) half of it stays -------------------------------------'
 *
 * A round is as many answers as show the shortest time, of queries that met as many others as the window allows. What a window
 * has grown is lost again while it is not used.
 */
import { LIMITS } from "../../base/limits.ts";

const ROUND_ANSWERS = 16;
/** Of the window: then it counts as full. */
const FULL = 0.75;
/** Times its own time: then the queries wait. */
const WAITS = 1.25;
/** Times the former time: then a smaller window has helped. */
const SOONER = 0.75;

/** Times its own time: then nobody counts on an answer, because the server waits for others. */
const LATE = 4;
/** Rounds between trials at least, where answers take long. */
const TRIAL_ROUNDS = 16;
/** The round of a query that is no sample. */
const NO_ROUND = -1;

interface FormerSize {
  readonly limit: number;
  readonly leastMs: number;
}

export class Window {
  #limit: number = LIMITS.serverWindow.first;
  /** The server's own time for the container's queries, as far as known. */
  #ownMs = Infinity;
  /** It is set while half of it is tried. */
  #former: FormerSize | undefined;
  /** It doubles until it has been too large once. */
  #wasTooLarge = false;
  #tryAtMs = -Infinity;
  #round = 0;
  #answers = 0;
  #leastMs = Infinity;
  /** Answers since the window was full. */
  #unused = 0;

  get limit(): number {
    return this.#limit;
  }

  /** After this time a query is late. */
  get lateMs(): number {
    return Math.min(LIMITS.retransmitMs, Math.max(LIMITS.serverWindow.lateMs, LATE * this.#ownMs));
  }

  /** The round in which a query is a sample that is sent beside so many others. */
  roundOf(outstanding: number): number {
    return outstanding >= FULL * this.#limit ? this.#round : NO_ROUND;
  }

  /** A query of this round was answered, or is late. */
  record(round: number, tookMs: number, nowMs: number): void {
    if (round === NO_ROUND) return this.#shrinkUnused();
    this.#unused = 0;
    if (round !== this.#round) return;
    this.#leastMs = Math.min(this.#leastMs, tookMs);
    this.#answers++;
    if (this.#answers < ROUND_ANSWERS) return;
    this.#endRound(this.#leastMs, nowMs);
    this.#round++;
    this.#answers = 0;
    this.#leastMs = Infinity;
  }

  #shrinkUnused(): void {
    this.#unused++;
    if (this.#unused < this.#limit) return;
    this.#unused = 0;
    this.#limit = Math.max(Math.min(this.#limit, LIMITS.serverWindow.first), this.#limit >> 1);
  }

  #endRound(leastMs: number, nowMs: number): void {
    const former = this.#former;
    this.#former = undefined;
    if (former !== undefined && leastMs > SOONER * former.leastMs) {
      this.#limit = former.limit;
      this.#ownMs = leastMs;
      return;
    }
    this.#wasTooLarge ||= former !== undefined;
    this.#ownMs = Math.min(this.#ownMs, leastMs);
    const { quickMs, tryEveryMs, least, most } = LIMITS.serverWindow;
    if (leastMs > quickMs && (leastMs > WAITS * this.#ownMs || nowMs >= this.#tryAtMs)) {
      this.#former = { limit: this.#limit, leastMs };
      this.#tryAtMs = nowMs + Math.max(tryEveryMs, TRIAL_ROUNDS * leastMs);
      this.#limit = Math.max(least, this.#limit >> 1);
    } else {
      const more = this.#wasTooLarge ? Math.max(1, this.#limit >> 3) : this.#limit;
      this.#limit = Math.min(most, this.#limit + more);
    }
  }
}
