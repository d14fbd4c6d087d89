/**
 * EngineSide without an engine: all parts of the container side of a run are real; the test supplies the container
 * facts.
 */
import type { RunSettings } from "../../../src/config/settings.ts";
import { mergeSettings } from "../../../src/config/merge-settings.ts";
import { Journal } from "../../../src/container/files/journal.ts";
import type { NamespaceRunner } from "../../../src/container/namespace/namespace-runner.ts";
import { closeEngineHost, openEngineHost } from "../../../src/container/namespace/engine-host.ts";
import { Engine } from "../../../src/container/watch/engine.ts";
import type { Keep } from "../../../src/base/model/held-namespace.ts";
import { createLog } from "../../../src/base/log/log.ts";
import { RateLimitedLog } from "../../../src/base/log/rate-limited-log.ts";
import type { FeatureCode, Running } from "../../../src/features/contract.ts";
import { EngineSide } from "../../../src/run/engine/engine-side.ts";
import { previewPlatform } from "../../../src/run/platform.ts";
import { Quarantines } from "../../../src/run/quarantine/quarantines.ts";
import { EventRing } from "../../../src/control/history/history-rings.ts";
import { QueryReader } from "../../../src/control/history/query-reader.ts";
import { composeQuerySide } from "../../../src/run/query-side.ts";
import { openFeatures } from "../../../src/run/serving.ts";
import { AttachedContainers } from "./attached-containers.ts";

interface EngineSideChoices {
  readonly runner?: NamespaceRunner;
  readonly keep?: Keep;
  readonly features?: readonly Running[];
  /** Of these only the feature that answers in namespaces besides the process. */
  readonly extraOf?: readonly FeatureCode[];
}

export function startEngineSide({ runner, keep, features = [], extraOf = [] }: EngineSideChoices = {}): {
  readonly way: EngineSide;
  readonly attached: AttachedContainers;
  readonly settings: RunSettings;
  readonly close: () => void;
} {
  const attached = new AttachedContainers();
  const run = {
    host: undefined,
    stateDir: "",
    enginePid: undefined,
    isReplacing: false,
    config: undefined,
    folders: [],
  };
  const settings = { ...mergeSettings([]), ...run };
  const log = createLog("warn");
  const repeats = new RateLimitedLog(log);
  const ground = { ...previewPlatform(), ...(runner !== undefined && { runner }) };
  const host = openEngineHost(process.pid);
  const querySide = composeQuerySide(settings, repeats);
  const reader = new QueryReader(querySide.histories, () => undefined);
  const opened = openFeatures(extraOf, {
    ...{ settings, log, limitedLog: repeats, reader, querySide, folder: "/nowhere", instanceId: "", hostName: "" },
    onNames: () => undefined,
    containers: () => new Map(),
    canRefuse: () => false,
    updateViews: () => undefined,
  });
  const withExtra = opened.filter(({ extra }) => extra !== undefined);
  const way = new EngineSide(
    {
      settings,
      log,
      limitedLog: repeats,
      platform: ground,
      querySide,
      features: [...features, ...withExtra],
      counts: attached,
      events: new EventRing(),
      journal: new Journal("/nowhere"),
      quarantines: Quarantines.none(),
      hold: keep,
      inherit: () => undefined,
      startAfter: Promise.resolve(),
    },
    {
      engine: new Engine("/nowhere"),
      info: { id: "", name: "", version: "28", majorVersion: 28, apiVersion: "", isRootless: false },
      socketPath: "/nowhere",
      host: () => host,
      accept: () => undefined,
    },
  );
  for (const each of withExtra) void each.start?.();
  const close = (): void => {
    way.hostUpstreams.close();
    repeats.close();
    ground.runner.close();
    closeEngineHost(host);
  };
  return { way, attached, settings, close };
}
