import { LIMITS } from "../../base/limits.ts";
import type { Log } from "../../base/log/log.ts";
import { featureValues } from "../../config/setting.ts";
import type { QueryReader } from "../../control/history/query-reader.ts";
import type { RunCore, Running } from "../contract.ts";
import { QUERY_LOG } from "./feature.ts";

const SECOND_MS = 1_000;
/** Of a second; those left out are counted. */
export const LINES_MAX = 500;
/** Enough for two thousand containers. */
const LAST_ROUNDS = 32;

export function open({ settings, reader, log }: RunCore): Running {
  const queryLog = new QueryLog(reader, log);
  return {
    start: () => queryLog.setOn(featureValues(QUERY_LOG.settings, settings)["queries.log"]),
    configure: (next) => queryLog.setOn(featureValues(QUERY_LOG.settings, next)["queries.log"]),
    close: () => queryLog.stop(),
  };
}

/**
 * Logs every query. It reads the query histories like any other reader, so that answering queries never waits for the log. Queries
 * beyond its limit are counted.
 */
export class QueryLog {
  readonly #reader: QueryReader;
  readonly #log: Log;
  #timer: NodeJS.Timeout | undefined;
  #take: ReturnType<QueryReader["watch"]> = () => [];
  #secondEndsMs = 0;
  #lines = 0;
  #omitted = 0;

  constructor(reader: QueryReader, log: Log) {
    this.#reader = reader;
    this.#log = log;
  }

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

  /** Logs the remaining queries and stops. */
  stop(): void {
    if (this.#timer === undefined) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    // The kernel goes on answering meanwhile.
    for (let rounds = 0; rounds < LAST_ROUNDS && this.#write() > 0; rounds++);
    this.#logOmitted();
  }

  /** Returns how many reports there were. */
  #write(): number {
    const now = performance.now();
    if (now >= this.#secondEndsMs) {
      this.#logOmitted();
      this.#secondEndsMs = now + SECOND_MS;
      this.#lines = 0;
    }
    const reports = this.#take();
    for (const report of reports) {
      if ("missed" in report) {
        this.#omitted += report.missed;
      } else if (this.#lines >= LINES_MAX) {
        this.#omitted++;
      } else {
        this.#lines++;
        // The log line has its own time; unknown fields are left out.
        const { time: received, seq: _, ...rest } = report;
        const fields = Object.entries(rest).filter(
          ([, value]) => value !== null && !(Array.isArray(value) && value.length === 0),
        );
        this.#log.info({ received, ...Object.fromEntries(fields) }, "query");
      }
    }
    return reports.length;
  }

  #logOmitted(): void {
    if (this.#omitted === 0) return;
    this.#log.info({ omitted: this.#omitted }, "queries omitted from the log");
    this.#omitted = 0;
  }
}
