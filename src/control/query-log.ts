/**
 * QueryLog: a line of the log for each query, for those who want that. It reads the histories as any other reader does, so
 * that what answers queries never waits for a log; what is too much for it is counted.
 */
import { LIMITS } from "../base/limits.ts";
import type { Log } from "../base/log/log.ts";
import type { QueryReader } from "./query-reader.ts";

const SECOND_MS = 1_000;

export class QueryLog {
  readonly #reader: QueryReader;
  readonly #log: Log;
  #timer: NodeJS.Timeout | undefined;
  #take: ReturnType<QueryReader["watch"]> = () => [];
  #secondEndsMs = 0;
  #lines = 0;
  #leftOut = 0;

  constructor(reader: QueryReader, log: Log) {
    this.#reader = reader;
    this.#log = log;
  }

  /** Begins, or ends. */
  setOn(isOn: boolean): void {
    if (isOn === (this.#timer !== undefined)) return;
    if (isOn) {
      this.#take = this.#reader.watch();
      this.#timer = setInterval(() => this.#write(), LIMITS.tailEveryMs);
      this.#timer.unref();
    } else {
      this.stop();
    }
  }

  /** Writes what is left to be written. */
  stop(): void {
    if (this.#timer === undefined) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#write();
    this.#tellLeftOut();
  }

  #write(): void {
    const now = performance.now();
    if (now >= this.#secondEndsMs) {
      this.#tellLeftOut();
      this.#secondEndsMs = now + SECOND_MS;
      this.#lines = 0;
    }
    for (const report of this.#take()) {
      if ("missed" in report) {
        this.#leftOut += report.missed;
      } else if (this.#lines >= LIMITS.queryLogLines) {
        this.#leftOut++;
      } else {
        this.#lines++;
        // The line has a time of its own, and what is not known says nothing.
        const { time: asked, seq: _, ...rest } = report;
        const known = Object.entries(rest).filter(([, value]) => value !== null);
        this.#log.info({ asked, ...Object.fromEntries(known) }, "query");
      }
    }
  }

  #tellLeftOut(): void {
    if (this.#leftOut === 0) return;
    this.#log.info({ leftOut: this.#leftOut }, "queries left out of the log");
    this.#leftOut = 0;
  }
}
