/**
 * EngineTarget: a run that serves an engine's containers, and the preview of such a run.
 */
import { instanceFolder } from "../../api/state-paths.ts";
import type { ContainerStatus } from "../../api/status.ts";
import type { RunSettings } from "../../config/settings.ts";
import { Journal } from "../../container/files/journal.ts";
import { containerStatuses } from "../../control/reports/container-status.ts";
import { ContainerMetrics } from "../../metrics/container-metrics.ts";
import type { Log } from "../../base/log/log.ts";
import { RateLimitedLog } from "../../base/log/rate-limited-log.ts";
import type { ServeTarget, TargetSearch, ContainerSideParts } from "../container-side.ts";
import { previewPlatform } from "../platform.ts";
import { Quarantines } from "../quarantine/quarantines.ts";
import { EventRing } from "../../control/history/history-rings.ts";
import { QueryReader } from "../../control/history/query-reader.ts";
import type { FeatureCode } from "../../features/contract.ts";
import { composeQuerySide } from "../query-side.ts";
import { openFeatures } from "../serving.ts";
import { EngineLink } from "./engine-link.ts";
import { EngineSide } from "./engine-side.ts";

export async function findEngine(search: TargetSearch): Promise<ServeTarget | undefined> {
  const link = await EngineLink.waitFor(search);
  return (
    link && {
      instanceId: link.info.id,
      hostName: link.info.name,
      isShared: !link.info.isRootless,
      openQuarantines: (folder) => Quarantines.open(folder, search.log),
      compose: (parts: ContainerSideParts) => new EngineSide(parts, link),
      close: () => link.close(),
    }
  );
}

/** What a run would do with every running container. Touches none of them. */
export async function preview(
  settings: RunSettings,
  log: Log,
  features: readonly FeatureCode[],
): Promise<readonly ContainerStatus[]> {
  const platform = previewPlatform();
  const link = await EngineLink.open(settings);
  const limitedLog = new RateLimitedLog(log);
  const querySide = composeQuerySide(settings, limitedLog);
  const reader = new QueryReader(querySide.histories, () => undefined);
  const folder = instanceFolder(settings.stateDir, link.info.id);
  const core = {
    ...{ settings, log, limitedLog, reader, querySide, folder },
    instanceId: link.info.id,
    hostName: link.info.name,
    onNames: (): void => undefined,
    containers: () => new Map<string, never>(),
    canRefuse: () => false,
    updateViews: (): void => undefined,
  };
  const side = new EngineSide(
    {
      settings,
      log,
      limitedLog,
      platform,
      querySide,
      // They never start.
      features: openFeatures(features, core),
      counts: new ContainerMetrics(settings.metrics.containers),
      events: new EventRing(),
      journal: new Journal(folder),
      quarantines: Quarantines.none(),
      hold: undefined,
      inherit: () => undefined,
      // Never: nothing is opened on the host.
      startAfter: new Promise(() => undefined),
    },
    link,
  );
  // The reconciler is stopped before it starts, so that nothing is attached.
  await side.stop();
  await side.follower.once();
  const containers = await containerStatuses(side.containers);
  link.close();
  platform.runner.close();
  return containers;
}
