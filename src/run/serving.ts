/**
 * Serving: everything that a run has while it serves: both sides, their counters, and what records what they do. It is composed
 * once; a reload changes its parts.
 */
import type { Explanation } from "../api/names.ts";
import type { ContainerStatus } from "../api/status.ts";
import type { SharedNames } from "../container/names/name-sources.ts";
import type { QueryObserver } from "../query/client/clients.ts";
import type { FeatureCode, RunCore, Running } from "../features/contract.ts";
import { type Log, eventLogger } from "../base/log/log.ts";
import { oncePerStep } from "../base/lib/guard.ts";
import { RateLimitedLog } from "../base/log/rate-limited-log.ts";
import type { RunSettings } from "../config/settings.ts";
import { Journal } from "../container/files/journal.ts";
import { ContainerNames } from "../control/situation/find-container.ts";
import { HistoryRings, EventRing } from "../control/history/history-rings.ts";
import { QueryReader } from "../control/history/query-reader.ts";
import { RecordedCauses } from "../control/failures/recorded-causes.ts";
import type { ControlPorts } from "../control/situation/ports.ts";
import { ContainerMetrics } from "../metrics/container-metrics.ts";
import type { ContainerSide, ServeTarget } from "./container-side.ts";
import { denyFurtherCalls } from "./deny-system-calls.ts";
import type { Platform } from "./platform.ts";
import type { Quarantines } from "./quarantine/quarantines.ts";
import { type QuerySide, composeQuerySide } from "./query-side.ts";
import type { RunKeeper } from "./run-keeper.ts";

export interface Serving {
  readonly querySide: QuerySide;
  readonly containerSide: ContainerSide;
  readonly keeper: RunKeeper;
  readonly counts: ContainerMetrics;
  readonly limitedLog: RateLimitedLog;
  readonly reader: QueryReader;
  readonly features: readonly Running[];
  readonly events: EventRing;
  readonly history: HistoryRings;
  readonly recordedCauses: RecordedCauses;
}

interface ComposeParts {
  readonly settings: RunSettings;
  readonly log: Log;
  readonly features: readonly FeatureCode[];
  readonly platform: Platform;
  /** State directory of the instance. */
  readonly folder: string;
  readonly quarantines: Quarantines;
  readonly keeper: RunKeeper;
  /** Nothing is attached before this resolves. */
  readonly startAfter: Promise<void>;
}

export function sharedNamesOf(features: readonly Pick<Running, "names" | "machines">[]): SharedNames {
  const [machines] = features.flatMap((feature) => feature.machines ?? []);
  return { sources: features.flatMap(({ names }) => names ?? []), machines };
}

function fieldsOf(features: readonly Running[]): ControlPorts["containers"]["ofFeatures"] {
  return {
    status: (id) => Object.assign({}, ...features.map((each) => each.container?.(id))) as Partial<ContainerStatus>,
    explanation: (facts) =>
      Object.assign({}, ...features.map((each) => each.explained?.(facts))) as Partial<Explanation>,
    cause: (failed) => {
      for (const each of features) {
        const found = each.causeOf?.(failed);
        if (found !== undefined) return found;
      }
      return undefined;
    },
    refusal: (asked) => {
      for (const each of features) {
        const found = each.refusalOf?.(asked);
        if (found !== undefined) return found;
      }
      return undefined;
    },
  };
}

export function openFeatures(
  features: readonly FeatureCode[],
  {
    querySide,
    ...core
  }: Omit<RunCore, "onEvent" | "observe" | "countRepeated" | "denyCalls"> & Pick<Serving, "querySide">,
): readonly Running[] {
  const observe = (observer: QueryObserver): void => querySide.clients.observe(observer);
  const run: RunCore = {
    ...core,
    onEvent: eventLogger(core.log),
    observe,
    countRepeated: (counts) => void (querySide.meter.repeated = counts),
    denyCalls: denyFurtherCalls,
  };
  return features.map((feature) => feature.open(run));
}

export function composeServing(target: ServeTarget, parts: ComposeParts): Serving {
  const { settings, log, platform, folder, quarantines, keeper, startAfter } = parts;
  const limitedLog = new RateLimitedLog(log);
  const counts = new ContainerMetrics(settings.metrics.containers);
  const events = new EventRing();
  const querySide = composeQuerySide(
    settings,
    limitedLog,
    (client, id) => quarantines.recorder.setContainer(client, id),
    (server, isUp, detail) => events.record({ kind: isUp ? "server-up" : "server-down", server, detail }),
  );
  // One message may change thousands of names, and each namespace has answers to forget.
  const onNames = oncePerStep(() => {
    for (const each of features) each.answersEnd?.();
  });
  const reader = new QueryReader(querySide.histories, (id) => containerSide.containers.facts.get(id)?.name);
  const { instanceId, hostName } = target;
  let composed: ContainerSide | undefined;
  const core = {
    ...{ folder, settings, instanceId, hostName, log, limitedLog, reader, onNames, querySide },
    containers: () => composed?.containers.facts ?? new Map(),
    canRefuse: () => keeper.canRefuse,
    updateViews: () => composed?.refresh(),
  };
  const features: readonly Running[] = openFeatures(parts.features, core);
  keeper.onInheritedHeld = async () =>
    void (await Promise.all(features.map(async (each) => await each.inheritedHeld?.())));
  const journal = new Journal(folder);
  const { hold, inherit, disinherit, refusing } = keeper;
  const sideParts = {
    settings,
    log,
    limitedLog,
    features,
    platform,
    querySide,
    shared: sharedNamesOf(features),
    ofFeatures: fieldsOf(features),
    counts,
    events,
    journal,
    quarantines,
    hold,
    ...{ inherit, disinherit },
    refusing,
    startAfter,
  };
  const containerSide = target.compose(sideParts);
  composed = containerSide;
  querySide.lookupLog.nameOf = (id) => containerSide.containers.facts.get(id)?.name;
  const names = new ContainerNames(() => containerSide.containers.facts.values());
  querySide.failures.setContainerNames((labels, length) => names.has(labels, length));
  const history = new HistoryRings({ containers: containerSide.containers, resolver: querySide.pipeline });
  const { containers, inside } = containerSide;
  const { failures, histories, pipeline: resolver } = querySide;
  const recordedCauses = RecordedCauses.of({
    ...{ containers, inside, resolver, failures, histories },
    settingsFile: () => settings.config ?? null,
  });
  return {
    ...{
      querySide,
      containerSide,
      keeper,
      counts,
      limitedLog,
      reader,
      features,
      events,
      history,
    },
    recordedCauses,
  };
}
