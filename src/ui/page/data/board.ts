/**
 * Board: everything that the page shows, as cells, and what only a run can do. The live board and that of a snapshot have the same
 * cells; a snapshot has no run.
 */
import type { CacheEntriesReport, CacheReport } from "../../../api/cache.ts";
import type { ContainerReport, ContainersReport, NetworksReport, MatrixReport } from "../../../api/containers.ts";
import type { DoctorLine } from "../../../base/model/finding.ts";
import type { EgressReport } from "../../../api/egress.ts";
import type { EventReport } from "../../../api/events.ts";
import type { FailuresReport } from "../../../api/failures.ts";
import type { HistoryReport } from "../../../api/history.ts";
import type { Explanation, NameRequest } from "../../../api/names.ts";
import type { Status } from "../../../api/status.ts";
import type { UpstreamReport } from "../../../api/upstreams.ts";
import type { MissedReport, QueryReport, SkippedReport } from "../../../api/queries.ts";
import type { Scope } from "../model/scope.ts";
import { type Lookup, addQuery } from "../model/lookup.ts";
import { Cell } from "./cell.ts";

const ROWS_MAX = 200;
const DRAWN_EVERY_MS = 200;

export type Connection =
  | { readonly state: "connecting" | "live" }
  /** dns11 is not running, `dns11 ui` is not, or the token is not its own. */
  | { readonly state: "no-daemon" | "no-server" | "denied"; readonly sinceMs: number }
  | { readonly state: "snapshot"; readonly takenAt: string; readonly isRedacted: boolean };

/** The server chooses the queries: of a fast stream it sends some only. */
export interface QueryFilter {
  readonly container: string;
  readonly text: string;
  /** A response code; "" for all queries, "failures" for those that failed. */
  readonly result: string;
}

/** What needs a run. */
export interface Run {
  explain(request: NameRequest): Promise<Explanation>;
  container(id: string): Promise<ContainerReport | undefined>;
  lookupsOf(id: string): Promise<QueryTape["rows"]>;
  /** undefined while connections are not recorded. */
  connectionsOf(id: string): Promise<EgressReport | undefined>;
  cache(): Promise<CacheReport>;
  cacheEntries(pattern: string): Promise<CacheEntriesReport>;
  doctor(scope: Scope, signal: AbortSignal): AsyncGenerator<DoctorLine, void>;
  /** null stops the stream. */
  follow(filter: QueryFilter | null): void;
}

export class Board {
  readonly connection = new Cell<Connection>({ state: "connecting" });
  /** Panels are drawn once they have something to show, so that none of them moves another one while the page opens. */
  readonly isFilled = new Cell(false);
  readonly status = new Cell<Status | null>(null);
  readonly containers = new Cell<ContainersReport | null>(null);
  readonly networks = new Cell<NetworksReport | null>(null);
  readonly matrix = new Cell<MatrixReport | null>(null);
  readonly failures = new Cell<FailuresReport | null>(null);
  /** The settings keep dns11 from recording names. */
  readonly areFailuresOff = new Cell(false);
  readonly upstreams = new Cell<UpstreamReport | null>(null);
  readonly history = new Cell<HistoryReport | null>(null);
  /** The last one first. */
  readonly events = new Cell<readonly EventReport[]>([]);
  readonly tape = new QueryTape();
  /** Only in a snapshot; a run is asked while its dialog is open. */
  readonly cache = new Cell<CacheReport | null>(null);
  readonly run: Run | null;

  constructor(run: ((board: Board) => Run) | null) {
    this.run = run?.(this) ?? null;
  }
}

/**
 * The last lookups, the latest first. However fast they arrive, it is bounded, and those who draw it are told at most once in
 * a while: text that changes faster cannot be read.
 */
class QueryTape {
  readonly drawn = new Cell(0);
  #rows: Lookup[] = [];
  #skipped = 0;
  #keys = 0;
  #isWaiting = false;

  get rows(): readonly Lookup[] {
    return this.#rows;
  }

  /** Queries that arrived and are not shown, since the stream began. */
  get skipped(): number {
    return this.#skipped;
  }

  add(line: QueryReport | MissedReport | SkippedReport): void {
    if ("skipped" in line) this.#skipped += line.skipped;
    else if ("missed" in line) this.#skipped += line.missed;
    else this.#push(line);
    this.#drawSoon();
  }

  /** A new stream begins with past queries. */
  clear(): void {
    this.#rows = [];
    this.#skipped = 0;
    this.#drawSoon();
  }

  #push(report: QueryReport): void {
    addQuery(this.#rows, report, (this.#keys += 1));
    if (this.#rows.length > ROWS_MAX) this.#rows.length = ROWS_MAX;
  }

  #drawSoon(): void {
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    setTimeout(() => {
      this.#isWaiting = false;
      this.drawn.set(this.drawn.value + 1);
    }, DRAWN_EVERY_MS);
  }
}
