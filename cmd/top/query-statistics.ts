/**
 * QueryStatistics: the figures of the last minute, by container and by name. Rates come from counters, which are exact. Names
 * and times come from the queries received, which are only a sample under load. Shares come from the larger of the two.
 */
import type { FailuresReport } from "../../src/api/failures.ts";
import type { CountersReport, MissedReport, QueryReport } from "../../src/api/queries.ts";
import type { UpstreamReport } from "../../src/api/upstreams.ts";

const WINDOW_MS = 60_000;
/** Queries of the last minute that are kept, far more than the figures on a terminal need. */
const QUERIES_MAX = 50_000;
const GOOD = new Set(["NOERROR", "NXDOMAIN"]);

/** Shares are from 0 to 1, times in milliseconds; null if there is no data. */
export interface Figures {
  readonly cached: number | null;
  readonly errors: number | null;
  /** In the last minute: expired answers, names that do not exist, and failures: errors, and names of containers. */
  readonly stale: number;
  readonly nxdomain: number;
  readonly failed: number;
  /** Of forwarded queries. */
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
}

export interface ContainerFigures extends Figures {
  readonly container: string;
  readonly perSecond: number | null;
  /** In the last minute, as counted or received, whichever is more. */
  readonly queries: number;
}

export interface NameFigures extends Figures {
  /** null for queries whose name is hidden or cannot be read. */
  readonly name: string | null;
  /** It is like a container's, and fails. */
  readonly isFailingContainer: boolean;
  /** A container that queries it, and the type: one that fails, if any does. */
  readonly example: { readonly container: string; readonly type: string };
  /** Received in the last minute, and the number of containers that sent them. */
  readonly queries: number;
  readonly containers: number;
}

export interface Snapshot {
  readonly time: string;
  readonly all: Omit<ContainerFigures, "container">;
  readonly containers: readonly ContainerFigures[];
  readonly names: readonly NameFigures[];
  /** Queries of the last minute that were counted but not received, because there were too many. */
  readonly unseen: number;
  /** Upstream servers that are down; null if all are up. */
  readonly outage: Outage | null;
}

interface TimedQuery {
  readonly atMs: number;
  readonly query: QueryReport;
}

/** All counters at one time. */
interface CounterSample {
  readonly atMs: number;
  readonly counters: ReadonlyMap<string, Readonly<Record<string, number>>>;
}

export class QueryStatistics {
  #queries: TimedQuery[] = [];
  #missed: { readonly atMs: number; readonly count: number }[] = [];
  #samples: CounterSample[] = [];
  /** Names of containers that fail: container and name. */
  #failing: ReadonlySet<string> = new Set();
  #outage: Outage | null = null;

  /** Adds a query, or a number of missed ones, at a time in milliseconds since 1970. */
  addQuery(each: QueryReport | MissedReport, nowMs: number): void {
    if ("missed" in each) this.#missed.push({ atMs: nowMs, count: each.missed });
    else this.#queries.push({ atMs: Date.parse(each.time), query: each });
    if (this.#queries.length > QUERIES_MAX * 2) this.#queries = this.#queries.slice(-QUERIES_MAX);
  }

  /** On any clock that nobody sets. */
  addCounters({ containers }: CountersReport, atMs: number): void {
    const counters = new Map(containers.map((each) => [each.container, each.counters]));
    this.#samples.push({ atMs, counters });
    this.#samples = this.#samples.filter(
      (each, index, all) => atMs - each.atMs <= WINDOW_MS || index >= all.length - 2,
    );
  }

  /** Names of containers that fail now; steps of a search list are none. */
  setFailures({ failures }: FailuresReport): void {
    const current = failures.filter(
      ({ isContainerName, last, lastSuccess }) => isContainerName && (lastSuccess === null || lastSuccess < last),
    );
    this.#failing = new Set(current.map(({ container, name }) => failingKey(container, name)));
  }

  setUpstreams(report: UpstreamReport): void {
    this.#outage = outageOf(report);
  }

  snapshot(nowMs: number): Snapshot {
    const from = nowMs - WINDOW_MS;
    this.#queries = this.#queries.filter(({ atMs }) => atMs >= from).slice(-QUERIES_MAX);
    this.#missed = this.#missed.filter(({ atMs }) => atMs >= from);
    const queries = this.#queries.map(({ query }) => query);
    const names = [...groups(queries, ({ name }) => name ?? "")].map(([, own]) => this.#nameFigures(own));
    const containers = this.#containers(queries);
    return {
      time: new Date(nowMs).toISOString(),
      all: { ...this.#totals(containers), ...timesOf(queries) },
      containers: containers.toSorted(
        (a, b) =>
          (b.perSecond ?? 0) - (a.perSecond ?? 0) || b.queries - a.queries || (a.container < b.container ? -1 : 1),
      ),
      names: names.toSorted((a, b) => b.queries - a.queries || ((a.name ?? "") < (b.name ?? "") ? -1 : 1)),
      unseen: this.#missed.reduce((sum, { count }) => sum + count, 0),
      outage: this.#outage,
    };
  }

  #containers(all: readonly QueryReport[]): ContainerFigures[] {
    const queriesOf = groups(all, ({ container }) => container);
    const now = this.#samples.at(-1)?.counters ?? new Map<string, Readonly<Record<string, number>>>();
    return [...new Set([...now.keys(), ...queriesOf.keys()])].map((container) => {
      const recent = this.#growth(container, this.#samples.at(-2));
      const received = queriesOf.get(container) ?? [];
      const counted = this.#growth(container, this.#samples[0]);
      // Queries before the first counters are only in the history; under load some are only in the counters.
      const sampled = this.#sums(received);
      const { queries, cached, errors } =
        counted !== undefined && counted.queries > received.length ? counted : sampled;
      return {
        container,
        perSecond: recent === undefined ? null : recent.queries / recent.seconds,
        queries,
        cached: share(cached, queries),
        errors: share(errors, queries),
        stale: sampled.stale,
        nxdomain: Math.max(sampled.nxdomain, counted?.nxdomain ?? 0),
        failed: sampled.failed,
        ...timesOf(received),
      };
    });
  }

  /** The growth of a container's counters since a sample. The counters of a restarted container begin at zero. */
  #growth(container: string, since: CounterSample | undefined): Growth | undefined {
    const last = this.#samples.at(-1);
    const counters = last?.counters.get(container);
    if (last === undefined || since === undefined || since === last || counters === undefined) return undefined;
    const before = since.counters.get(container) ?? {};
    const isSameRun = (before["queries"] ?? 0) <= (counters["queries"] ?? 0);
    const grown = (key: string): number => (counters[key] ?? 0) - (isSameRun ? (before[key] ?? 0) : 0);
    return {
      seconds: Math.max(0.001, (last.atMs - since.atMs) / 1000),
      queries: grown("queries"),
      cached: grown("cached"),
      errors: grown("failed") + grown("malformed"),
      nxdomain: grown("nxdomain"),
    };
  }

  #totals(containers: readonly ContainerFigures[]): Omit<ContainerFigures, "container" | "p50Ms" | "p99Ms"> {
    const queries = containers.reduce((sum, each) => sum + each.queries, 0);
    const total = (key: "stale" | "nxdomain" | "failed"): number =>
      containers.reduce((sum, each) => sum + each[key], 0);
    const weighted = (key: "cached" | "errors"): number =>
      containers.reduce((sum, each) => sum + (each[key] ?? 0) * each.queries, 0);
    return {
      perSecond: this.#samples.length < 2 ? null : containers.reduce((sum, each) => sum + (each.perSecond ?? 0), 0),
      queries,
      cached: share(weighted("cached"), queries),
      errors: share(weighted("errors"), queries),
      stale: total("stale"),
      nxdomain: total("nxdomain"),
      failed: total("failed"),
    };
  }

  #sums(queries: readonly QueryReport[]): Sums {
    const count = (isCounted: (query: QueryReport) => boolean): number => queries.filter(isCounted).length;
    return {
      queries: queries.length,
      cached: count(({ result: how }) => how === "cached" || how === "stale"),
      errors: count(({ rcode }) => !GOOD.has(rcode)),
      stale: count(({ result: how }) => how === "stale"),
      nxdomain: count(({ rcode }) => rcode === "NXDOMAIN"),
      failed: count((query) => this.#isFailure(query)),
    };
  }

  #nameFigures(queries: readonly QueryReport[]): NameFigures {
    const { cached, errors, stale, nxdomain, failed } = this.#sums(queries);
    const example = queries.find((query) => this.#isFailure(query)) ?? queries[0];
    return {
      name: queries[0]?.name ?? null,
      isFailingContainer: queries.some((query) => this.#isFailingContainer(query)),
      example: { container: example?.container ?? "", type: example?.type ?? "A" },
      queries: queries.length,
      containers: new Set(queries.map(({ container }) => container)).size,
      cached: share(cached, queries.length),
      errors: share(errors, queries.length),
      stale,
      nxdomain,
      failed,
      ...timesOf(queries),
    };
  }

  #isFailure(query: QueryReport): boolean {
    return !GOOD.has(query.rcode) || (query.rcode === "NXDOMAIN" && this.#isFailingContainer(query));
  }

  #isFailingContainer({ container, name }: QueryReport): boolean {
    return this.#failing.has(failingKey(container, name));
  }
}

function failingKey(container: string, name: string | null): string {
  return JSON.stringify([container, name?.toLowerCase() ?? null]);
}

interface Growth {
  readonly seconds: number;
  readonly queries: number;
  readonly cached: number;
  readonly errors: number;
  readonly nxdomain: number;
}

interface Sums extends Omit<Growth, "seconds"> {
  readonly stale: number;
  readonly failed: number;
}

/** Percentiles of forwarded queries. */
function timesOf(queries: readonly QueryReport[]): Pick<Figures, "p50Ms" | "p99Ms"> {
  const times = queries
    .filter(({ result: how }) => how === "forwarded")
    .map(({ ms }) => ms)
    .toSorted((a, b) => a - b);
  return { p50Ms: percentile(times, 0.5), p99Ms: percentile(times, 0.99) };
}

/** By nearest rank. */
function percentile(sorted: readonly number[], part: number): number | null {
  return sorted[Math.max(0, Math.ceil(sorted.length * part) - 1)] ?? null;
}

function share(some: number, all: number): number | null {
  return all === 0 ? null : some / all;
}

function groups(
  queries: readonly QueryReport[],
  keyOf: (query: QueryReport) => string,
): ReadonlyMap<string, QueryReport[]> {
  const found = new Map<string, QueryReport[]>();
  for (const query of queries) {
    const key = keyOf(query);
    const group = found.get(key);
    if (group === undefined) found.set(key, [query]);
    else group.push(query);
  }
  return found;
}

/** How many upstream servers are down, and since when, because stale and cached answers hide it. */
export interface Outage {
  readonly down: number;
  readonly all: number;
  /** When the last of them went down. */
  readonly since: string | null;
}

/** null if no server is known to be down. */
function outageOf({ upstreams }: UpstreamReport): Outage | null {
  const servers = upstreams.filter(({ isBackup }) => !isBackup);
  const down = servers.filter(({ state }) => state === "down");
  if (down.length === 0) return null;
  const since = down.flatMap((server) => server.since ?? []).toSorted();
  return { down: down.length, all: servers.length, since: since.at(-1) ?? null };
}
