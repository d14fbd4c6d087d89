/**
 * QueryReader: reads the histories for people and programs. Whoever is noted there knows nothing of readers: these look now
 * and then, and what was overwritten in between is counted. How much work one reader may make is bounded.
 */
import { setImmediate as turn, setTimeout as sleep } from "node:timers/promises";

import { LIMITS } from "../base/limits.ts";
import { globMatches } from "../base/lib/glob.ts";
import type { QueryRecord } from "../base/model/query-record.ts";
import type { QueryHistories } from "../query/history/query-histories.ts";
import type { QueryHistory } from "../query/history/query-history.ts";
import type { MissedReport, QueriesReport, QueryReport } from "../api/queries.ts";
import { queryReport } from "./query-report.ts";

/** Which queries are wanted; all of them where nothing is said. */
export interface QueryFilter {
  readonly containerId?: string | undefined;
  /** A pattern for the name. */
  readonly name?: string | undefined;
  readonly rcodes?: ReadonlySet<number> | undefined;
}

/** How far two looks at the clock may lie apart. */
const CLOCK_SLACK_MS = 5;

type NameOf = (containerId: string) => string | undefined;

export class QueryReader {
  readonly #histories: QueryHistories;
  readonly #nameOf: NameOf;
  #wallMs = Date.now() - performance.now();

  /** `nameOf` knows containers that run. */
  constructor(histories: QueryHistories, nameOf: NameOf) {
    this.#histories = histories;
    this.#nameOf = nameOf;
  }

  /** What is there, the last `most` of it, oldest first; only what came after the number `since`, where that is said. */
  async read(filter: QueryFilter, most: number, since?: number): Promise<QueriesReport> {
    return await this.#told(filter, most, since, new WeakMap());
  }

  /** First the last ones, then all that come, until `signal`. */
  async *follow(
    filter: QueryFilter,
    last: number,
    signal: AbortSignal,
  ): AsyncGenerator<QueryReport | MissedReport, void> {
    const news = new HistoryCursor(this.#histories, filter);
    const { queries } = last > 0 ? await this.#told(filter, last, undefined, news.cursors) : { queries: [] };
    yield* queries;
    while (!signal.aborted) {
      yield* this.#news(news.takeNew());
      await sleep(LIMITS.tailEveryMs, undefined, { signal }).catch(() => undefined);
    }
  }

  /** For who looks by itself: each call brings what has come since the one before. */
  watch(): () => (QueryReport | MissedReport)[] {
    const news = new HistoryCursor(this.#histories, {});
    return () => this.#news(news.takeNew());
  }

  async #told(
    filter: QueryFilter,
    most: number,
    since: number | undefined,
    cursors: WeakMap<QueryHistory, number>,
  ): Promise<QueriesReport> {
    let found: HistoryEntry[] = [];
    let missed = 0;
    let last: number | null = null;
    const keepLast = (): void => {
      found.sort(byTime);
      if (since !== undefined) missed += Math.max(0, found.length - most);
      found = most === 0 ? [] : found.slice(-most);
    };
    for (const history of [...this.#histories.histories(filter.containerId)]) {
      cursors.set(history, history.lastSeq);
      if (since !== undefined) missed += overwrittenSince(history, since);
      if (filter.containerId !== undefined) last = history.lastSeq;
      for (const query of history.since(since ?? 0)) {
        if (matchesFilter(query, filter)) found.push([history, query]);
      }
      if (found.length > most * 2) keepLast();
      // Queries go first.
      await turn();
    }
    keepLast();
    return { queries: this.#reports(found), missed, last };
  }

  #news({ queries, missed }: NewEntries): (QueryReport | MissedReport)[] {
    return [
      ...missed.map(([history, count]) => ({ container: this.#called(history), missed: count })),
      ...this.#reports(queries.toSorted(byTime)),
    ];
  }

  #reports(found: readonly HistoryEntry[]): QueryReport[] {
    const wallMs = Date.now() - performance.now();
    // The one clock is coarse; only where somebody has set it do times begin elsewhere.
    if (Math.abs(wallMs - this.#wallMs) > CLOCK_SLACK_MS) this.#wallMs = wallMs;
    return found.map(([history, query]) => queryReport(this.#called(history), query, this.#wallMs));
  }

  #called({ containerId, containerName }: QueryHistory): string {
    return containerName ?? this.#nameOf(containerId) ?? containerId.slice(0, 12);
  }
}

type HistoryEntry = readonly [QueryHistory, QueryRecord];

interface NewEntries {
  readonly queries: readonly HistoryEntry[];
  readonly missed: readonly (readonly [QueryHistory, number])[];
}

/** What has come since one looked last. */
class HistoryCursor {
  /** Of each history the number of the last query that was looked at. */
  readonly cursors = new WeakMap<QueryHistory, number>();
  readonly #histories: QueryHistories;
  readonly #filter: QueryFilter;

  constructor(histories: QueryHistories, filter: QueryFilter) {
    this.#histories = histories;
    this.#filter = filter;
    for (const history of histories.histories(filter.containerId)) this.cursors.set(history, history.lastSeq);
  }

  takeNew(): NewEntries {
    const queries: HistoryEntry[] = [];
    const missed: [QueryHistory, number][] = [];
    const fresh = [...this.#histories.histories(this.#filter.containerId)].filter(
      (history) => history.lastSeq > this.#cursorOf(history),
    );
    const each = Math.max(LIMITS.tailQueriesEach, Math.floor(LIMITS.tailQueriesAtOnce / fresh.length));
    for (const history of fresh) {
      const cursor = this.#cursorOf(history);
      const seen = [...history.since(cursor, each)];
      const count = history.lastSeq - cursor - seen.length;
      if (count > 0) missed.push([history, count]);
      for (const query of seen) if (matchesFilter(query, this.#filter)) queries.push([history, query]);
      this.cursors.set(history, history.lastSeq);
    }
    return { queries, missed };
  }

  /** One that was not there before is new from its first query on. */
  #cursorOf(history: QueryHistory): number {
    return this.cursors.get(history) ?? history.firstSeq - 1;
  }
}

/** How many after this number are not there any more. */
function overwrittenSince({ oldestSeq, firstSeq }: QueryHistory, since: number): number {
  return Math.max(0, oldestSeq - Math.max(since + 1, firstSeq));
}

function matchesFilter({ name, rcode }: QueryRecord, filter: QueryFilter): boolean {
  if (filter.rcodes !== undefined && !filter.rcodes.has(rcode)) return false;
  return filter.name === undefined || (name !== null && globMatches(filter.name, name));
}

function byTime([, a]: HistoryEntry, [, b]: HistoryEntry): number {
  return a.atMs - b.atMs || a.seq - b.seq;
}
