/**
 * QueryReader: reads the query histories for people and programs. Recording does not know about readers: they poll, and what
 * was overwritten in between is counted. The work per reader is bounded.
 */
import { setImmediate as turn, setTimeout as sleep } from "node:timers/promises";

import { gatherInSlices } from "../../base/lib/slices.ts";
import { LIMITS } from "../../base/limits.ts";
import { type QueryRecord, NO_REPLY } from "../../base/model/query-record.ts";
import type { QueryHistories } from "../../query/history/query-histories.ts";
import type { QueryHistory } from "../../query/history/query-history.ts";
import type { MissedReport, QueriesReport, QueryReport } from "../../api/queries.ts";
import { rcodeName } from "../../base/dns/rcode.ts";
import { typeName } from "../../base/dns/record-type.ts";
import { globMatches } from "../server/parameters.ts";

/** A filter for queries; without any field it matches all. */
export interface QueryFilter {
  readonly containerId?: string | undefined;
  /** Which containers are wanted, also ones that are not attached yet. */
  readonly accepts?: ((containerId: string) => boolean) | undefined;
  /** A pattern for the name. */
  readonly name?: string | undefined;
  readonly rcodes?: ReadonlySet<number> | undefined;
}

/** How often the clocks are read to compare them, until one reading has taken no longer than this. */
const READINGS = 5;
const READING_MS = 1;
/** So much do the clocks seem to differ where none was set. */
const CLOCK_SLACK_MS = 5;

type NameOf = (containerId: string) => string | undefined;

export class QueryReader {
  readonly #histories: QueryHistories;
  readonly #nameOf: NameOf;
  #wallMs = wallOffsetMs();

  /** `nameOf` returns the names of running containers. */
  constructor(histories: QueryHistories, nameOf: NameOf) {
    this.#histories = histories;
    this.#nameOf = nameOf;
  }

  /** The last `limit` past queries, oldest first; only those after the sequence number `since`, if given. */
  async read(filter: QueryFilter, limit: number, since?: number): Promise<QueriesReport> {
    return await this.#read(filter, limit, since, new WeakMap());
  }

  /** The last queries, then new ones as they arrive, in batches, until `signal`. */
  async *follow(
    filter: QueryFilter,
    last: number,
    signal: AbortSignal,
    everyMs: number = LIMITS.tailEveryMs,
  ): AsyncGenerator<readonly (QueryReport | MissedReport)[], void> {
    const cursor = new HistoryCursor(this.#histories, filter);
    const { queries } = last > 0 ? await this.#read(filter, last, undefined, cursor.positions) : { queries: [] };
    yield queries;
    while (!signal.aborted) {
      yield this.#newReports(cursor.takeNew());
      await sleep(everyMs, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Returns a function that returns the queries since its previous call. */
  watch(): () => (QueryReport | MissedReport)[] {
    const cursor = new HistoryCursor(this.#histories, {});
    return () => this.#newReports(cursor.takeNew());
  }

  async #read(
    filter: QueryFilter,
    limit: number,
    since: number | undefined,
    positions: WeakMap<QueryHistory, number>,
  ): Promise<QueriesReport> {
    let entries: HistoryEntry[] = [];
    let missed = 0;
    let last: number | null = null;
    const keepLast = (): void => {
      entries.sort(byTime);
      if (since !== undefined) missed += Math.max(0, entries.length - limit);
      entries = limit === 0 ? [] : entries.slice(-limit);
    };
    for (const history of acceptedHistories(this.#histories, filter)) {
      positions.set(history, history.lastSeq);
      if (since !== undefined) missed += missedSince(history, since);
      if (filter.containerId !== undefined) last = history.lastSeq;
      for (const query of history.since(since ?? 0)) {
        if (matchesFilter(query, filter)) entries.push([history, query]);
      }
      if (entries.length > limit * 2) keepLast();
      // Let pending queries run first.
      await turn();
    }
    keepLast();
    return { queries: await gatherInSlices(this.#reports(entries)), missed, last };
  }

  #newReports({ queries, missed }: NewEntries): (QueryReport | MissedReport)[] {
    return [
      ...missed.map(([history, count]) => ({ container: this.#containerName(history), missed: count })),
      ...this.#reports(queries.toSorted(byTime)),
    ];
  }

  *#reports(entries: readonly HistoryEntry[]): Generator<QueryReport> {
    const wallMs = wallOffsetMs();
    // Date.now is coarse: only a larger difference means that the clock was set.
    if (Math.abs(wallMs - this.#wallMs) > CLOCK_SLACK_MS) this.#wallMs = wallMs;
    for (const [history, query] of entries) yield queryReport(this.#containerName(history), query, this.#wallMs);
  }

  #containerName({ containerId, containerName }: QueryHistory): string {
    return containerName ?? this.#nameOf(containerId) ?? containerId.slice(0, 12);
  }
}

type HistoryEntry = readonly [QueryHistory, QueryRecord];

interface NewEntries {
  readonly queries: readonly HistoryEntry[];
  readonly missed: readonly (readonly [QueryHistory, number])[];
}

/** Reads only the queries that are new since the last call. */
class HistoryCursor {
  /** The sequence number of the last query read from each history. */
  readonly positions = new WeakMap<QueryHistory, number>();
  readonly #histories: QueryHistories;
  readonly #filter: QueryFilter;
  /** Those with new queries for which there was no room, in the order in which they wait. */
  #left = new Set<QueryHistory>();

  constructor(histories: QueryHistories, filter: QueryFilter) {
    this.#histories = histories;
    this.#filter = filter;
    for (const history of acceptedHistories(histories, filter)) this.positions.set(history, history.lastSeq);
  }

  takeNew(): NewEntries {
    const queries: HistoryEntry[] = [];
    const missed: [QueryHistory, number][] = [];
    const updated = acceptedHistories(this.#histories, this.#filter).filter(
      (history) => history.lastSeq > this.#positionOf(history),
    );
    const isUpdated = new Set(updated);
    const waiting = [...this.#left].filter((each) => isUpdated.has(each));
    const inOrder = [...waiting, ...updated.filter((each) => !this.#left.has(each))];
    const now = inOrder.slice(0, LIMITS.tailQueriesAtOnce / LIMITS.tailQueriesEach);
    this.#left = new Set(inOrder.slice(now.length));
    const each = Math.floor(LIMITS.tailQueriesAtOnce / now.length);
    for (const history of now) {
      const position = this.#positionOf(history);
      const entries = [...history.since(position, each)];
      const count = history.lastSeq - position - entries.length + history.skippedSince(position);
      if (count > 0) missed.push([history, count]);
      for (const query of entries) if (matchesFilter(query, this.#filter)) queries.push([history, query]);
      this.positions.set(history, history.lastSeq);
    }
    return { queries, missed };
  }

  /** A new history is read from its first query. */
  #positionOf(history: QueryHistory): number {
    return this.positions.get(history) ?? history.firstSeq - 1;
  }
}

function acceptedHistories(histories: QueryHistories, { containerId, accepts }: QueryFilter): QueryHistory[] {
  const all = [...histories.histories(containerId)];
  return accepts === undefined ? all : all.filter((history) => accepts(history.containerId));
}

/** How many queries after this number are not available any more. */
function missedSince(history: QueryHistory, since: number): number {
  const { oldestSeq, firstSeq } = history;
  return Math.max(0, oldestSeq - Math.max(since + 1, firstSeq)) + history.skippedSince(since);
}

function matchesFilter({ name, rcode }: QueryRecord, filter: QueryFilter): boolean {
  if (filter.rcodes !== undefined && !filter.rcodes.has(rcode)) return false;
  return filter.name === undefined || (name !== null && globMatches(filter.name, name));
}

function byTime([, a]: HistoryEntry, [, b]: HistoryEntry): number {
  return a.atMs - b.atMs || a.seq - b.seq;
}

/** What the clock of `performance.now` lacks of wall-clock time. A pause between the two readings would be taken for a part of it. */
function wallOffsetMs(): number {
  let [offsetMs, leastMs] = [0, Infinity];
  for (let time = 0; time < READINGS && leastMs > READING_MS; time++) {
    const beforeMs = performance.now();
    const wallMs = Date.now();
    const tookMs = performance.now() - beforeMs;
    if (tookMs < leastMs) [offsetMs, leastMs] = [wallMs - beforeMs, tookMs];
  }
  return offsetMs;
}

/**
 * A query of the history in the form of the API.
 *
 * `wallMs` is the time origin of `performance.now`.
 */
function queryReport(container: string, query: QueryRecord, wallMs: number): QueryReport {
  const { seq, atMs, name, type, rcode, answers, addresses, ttl, isStream, result, source, upstream, rule, tookMs } =
    query;
  return {
    container,
    seq,
    time: new Date(wallMs + atMs).toISOString(),
    name,
    // Type zero means a malformed query.
    type: type === 0 ? null : typeName(type),
    rcode: rcode === NO_REPLY ? "NONE" : rcodeName(rcode),
    answers,
    addresses,
    ttl,
    transport: isStream ? "tcp" : "udp",
    result,
    source,
    upstream,
    ...(rule !== null && { rule }),
    ms: Math.round(tookMs * 1000) / 1000,
  };
}
