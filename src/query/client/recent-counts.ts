/**
 * RecentCounts: what the counters of a client have counted in the last minute, approximately: the minute in progress, and the rest of the
 * minute before as if its queries were spread evenly. Queries are only counted once; every minute, the counters of all clients are copied.
 */
import type { RecentCountsReport } from "../../api/status.ts";

const MINUTE_MS = 60_000;

type Counted = RecentCountsReport;

const ZERO: Counted = { queries: 0, nxdomain: 0, errors: 0 };

export class RecentCounts {
  readonly #counters: Counted;
  readonly #collect: () => void;
  /** The counters at the beginning of this minute, and what the minute before has counted. */
  #start = ZERO;
  #before = ZERO;

  /** `collect` brings the counters up to date. */
  constructor(counters: Counted, collect: () => void = () => undefined) {
    this.#counters = counters;
    this.#collect = collect;
  }

  nextMinute(): void {
    this.#collect();
    const { queries, nxdomain, errors } = this.#counters;
    this.#before = this.#grown();
    this.#start = { queries, nxdomain, errors };
  }

  /** `part`: how much of this minute has passed, from 0 to 1. */
  read(part: number): Counted {
    this.#collect();
    const [now, before] = [this.#grown(), this.#before];
    const rest = Math.min(1, Math.max(0, 1 - part));
    return {
      queries: Math.round(now.queries + before.queries * rest),
      nxdomain: Math.round(now.nxdomain + before.nxdomain * rest),
      errors: Math.round(now.errors + before.errors * rest),
    };
  }

  #grown(): Counted {
    const { queries, nxdomain, errors } = this.#counters;
    const start = this.#start;
    return {
      queries: queries - start.queries,
      nxdomain: nxdomain - start.nxdomain,
      errors: errors - start.errors,
    };
  }
}

/** The minutes of all clients. */
export class Minutes {
  readonly #open = new Set<RecentCounts>();
  readonly #now: () => number;
  #timer: NodeJS.Timeout | undefined;
  #startMs = 0;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  open(counts: RecentCounts): void {
    this.#open.add(counts);
    if (this.#timer !== undefined) return;
    this.#startMs = this.#now();
    this.#timer = setInterval(() => this.nextMinute(), MINUTE_MS).unref();
  }

  close(counts: RecentCounts): void {
    this.#open.delete(counts);
    if (this.#open.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  nextMinute(): void {
    this.#startMs = this.#now();
    for (const counts of this.#open) counts.nextMinute();
  }

  read(counts: RecentCounts): Counted {
    return counts.read((this.#now() - this.#startMs) / MINUTE_MS);
  }
}
