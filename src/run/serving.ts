/**
 * Serving: the parts of a run from the start of serving until everything is handed back, and what a reload changes in
 * them.
 */
import type { RunSettings } from "../config/settings.ts";
import type { QueryLog } from "../control/query-log.ts";
import type { QueryReader } from "../control/query-reader.ts";
import type { ContainerMetrics } from "../metrics/container-metrics.ts";
import type { RateLimitedLog } from "../base/log/rate-limited-log.ts";
import type { ContainerSide } from "./container-side.ts";
import type { DeclaredRecords } from "./declared-records.ts";
import type { EtcdLink } from "./etcd-link.ts";
import type { QuerySide } from "./query-side.ts";
import type { RunKeeper } from "./run-keeper.ts";

/** Both sides, and their counters. */
export interface Serving {
  readonly querySide: QuerySide;
  readonly containerSide: ContainerSide;
  readonly keeper: RunKeeper;
  readonly counts: ContainerMetrics;
  readonly limitedLog: RateLimitedLog;
  readonly reader: QueryReader;
  readonly queryLog: QueryLog;
  readonly records: DeclaredRecords;
  readonly etcd: EtcdLink;
}

/** Applies what a reload can change. */
export async function reconfigure(serving: Serving, settings: RunSettings): Promise<void> {
  const { querySide, containerSide, counts, queryLog, records, etcd } = serving;
  // First, because they may fail, for a file or for want of memory: then nothing has changed.
  await etcd.configure(settings.etcd);
  querySide.reconfigure(settings);
  counts.setContainersMax(settings.metrics.containers);
  queryLog.setOn(settings.queries.isLogged);
  containerSide.reconfigure(settings);
  await records.configure(settings);
}
