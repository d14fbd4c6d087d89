/**
 * QueryTape: the last queries, the latest first. However fast they arrive, it is bounded, and those who draw it are told at most once in
 * a while: text that changes faster cannot be read.
 */
import type { MissedReport, QueryReport, SkippedReport } from "../../../api/queries.ts";
import { Cell } from "./cell.ts";

const ROWS_MAX = 200;
const DRAWN_EVERY_MS = 200;

export interface TapeRow extends QueryReport {
  /** Of this page: two rows never have the same one. */
  readonly key: number;
}

export class QueryTape {
  readonly drawn = new Cell(0);
  #rows: TapeRow[] = [];
  #skipped = 0;
  #keys = 0;
  #isWaiting = false;

  get rows(): readonly TapeRow[] {
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
    this.#rows.unshift({ ...report, key: (this.#keys += 1) });
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
