/**
 * EngineSide without an engine: all parts of the container side of a run are real; the test supplies the container
 * facts.
 */
import type { RunSettings } from "../../../src/config/settings.ts";
import { mergeSettings } from "../../../src/config/merge-settings.ts";
import { Journal } from "../../../src/container/kind/journal.ts";
import type { NamespaceRunner } from "../../../src/container/namespace/namespace-runner.ts";
import { closeEngineHost, openEngineHost } from "../../../src/container/namespace/engine-host.ts";
import type { KernelAnswers } from "../../../src/kernel/answers/kernel-answers.ts";
import { Engine } from "../../../src/container/watch/engine.ts";
import type { Keep } from "../../../src/base/model/held-namespace.ts";
import { createLog } from "../../../src/base/log/log.ts";
import { RateLimitedLog } from "../../../src/base/log/rate-limited-log.ts";
import type { Running } from "../../../src/features/contract.ts";
import { EngineSide } from "../../../src/run/engine/engine-side.ts";
import { previewPlatform } from "../../../src/run/platform.ts";
import { Quarantines } from "../../../src/run/quarantine/quarantines.ts";
import { EventRing } from "../../../src/control/history/event-ring.ts";
import { composeQuerySide } from "../../../src/run/query-side.ts";
import { AttachedContainers } from "./attached-containers.ts";

interface EngineSideChoices {
  readonly runner?: NamespaceRunner;
  readonly keep?: Keep;
  readonly kernelAnswers?: KernelAnswers | undefined;
  readonly features?: readonly Running[];
}

export function startEngineSide({ runner, keep, kernelAnswers, features = [] }: EngineSideChoices = {}): {
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
  const ground = { ...previewPlatform(), ...(runner !== undefined && { runner }), kernelAnswers };
  const host = openEngineHost(process.pid);
  const way = new EngineSide(
    {
      settings,
      log,
      limitedLog: repeats,
      platform: ground,
      querySide: composeQuerySide(settings, repeats),
      features,
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
  const close = (): void => {
    way.hostUpstreams.close();
    repeats.close();
    ground.runner.close();
    closeEngineHost(host);
  };
  return { way, attached, settings, close };
}
