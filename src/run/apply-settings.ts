/**
 * ApplySettings: puts other settings into force in a run. What takes long or can fail comes first, while the previous
 * settings are still in force everywhere.
 */
import type { RunSettings } from "../config/settings.ts";
import type { QueryLog } from "../control/query-log.ts";
import type { ContainerMetrics } from "../metrics/container-metrics.ts";
import type { ContainerSide } from "./container-side.ts";
import type { DeclaredRecords } from "./declared-records.ts";
import type { QuerySide } from "./query-side.ts";

interface Running {
  readonly querySide: QuerySide;
  readonly containerSide: ContainerSide;
  readonly counts: ContainerMetrics;
  readonly queryLog: QueryLog;
  readonly records: DeclaredRecords;
}

/** Resolves when all queries are answered by them. */
export async function applySettings(running: Running, settings: RunSettings): Promise<void> {
  const { querySide, containerSide, counts, queryLog, records } = running;
  const apply = await containerSide.prepare(settings);
  // It may fail for want of memory: then nothing has changed.
  querySide.reconfigure(settings);
  counts.setContainersMax(settings.metrics.containers);
  queryLog.setOn(settings.queries.isLogged);
  apply();
  await records.configure(settings);
  await containerSide.refreshed();
}
