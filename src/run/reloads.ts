/**
 * Reloads: the current settings, and their replacement: read again, applied, and kept only where that succeeded.
 * Reloads run one after the other and are logged.
 */
import type { ReloadReport } from "../api/status.ts";
import type { RunSettings } from "../config/settings.ts";
import { Fault, reasonOf } from "../base/lib/fault.ts";
import { changedKeys } from "../base/model/setting-origins.ts";
import type { Log } from "../base/log/log.ts";
import { isForStart } from "../config/keys.ts";
import type { Prepared } from "../features/contract.ts";
import { type Serving, sharedNamesOf } from "./serving.ts";

/** What is read again: everything, or only the folders that the settings name. */
export type ReloadScope = "all" | "folders";

/** `inForce`: those that the folders belong to. */
export type ReadSettings = (scope: ReloadScope, inForce?: RunSettings) => Promise<RunSettings>;

interface ReloadParts {
  /** Settings at startup. */
  readonly settings: RunSettings;
  readonly readSettings: ReadSettings;
  readonly log: Log;
  /** Applies them everywhere, or throws and leaves the previous settings in force. */
  readonly apply: (next: RunSettings, before: RunSettings) => Promise<void>;
}

export class Reloads {
  readonly #parts: ReloadParts;
  #settings: RunSettings;
  #last: Promise<unknown> = Promise.resolve();
  #done = 0;
  #failed = 0;

  constructor(parts: ReloadParts) {
    this.#parts = parts;
    this.#settings = parts.settings;
  }

  get settings(): RunSettings {
    return this.#settings;
  }

  /** What has been read since the start, and takes effect with the next one only. */
  get afterRestart(): readonly string[] {
    return this.#afterRestartIn(this.#settings);
  }

  #afterRestartIn({ origins }: RunSettings): readonly string[] {
    const changed = changedKeys(this.#parts.settings.origins, origins);
    return changed.filter((setting) => isForStart(setting.slice(0, setting.indexOf(":"))));
  }

  /** How many reloads succeeded; `failed` counts the others. */
  get done(): number {
    return this.#done;
  }

  get failed(): number {
    return this.#failed;
  }

  async reload(scope: ReloadScope): Promise<ReloadReport> {
    const reloaded = this.#last.then(async () => await this.#reload(scope));
    this.#last = reloaded.catch(() => undefined);
    return await reloaded;
  }

  async #reload(scope: ReloadScope): Promise<ReloadReport> {
    const { log, readSettings, apply } = this.#parts;
    const before = this.#settings;
    const config = [
      ...(before.config === undefined || scope === "folders" ? [] : [before.config]),
      ...foldersOf(before),
    ].join(", ");
    if (config === "") {
      log.warn("cannot reload, there is no settings file");
      throw new Fault("NO_SETTINGS_FILE", "There is no settings file to reload", {
        remedy: "Start dns11 with one: dns11 run --config FILE",
      });
    }
    let next;
    try {
      next = await readSettings(scope, before);
      await apply(next, before);
    } catch (error) {
      const reason = reasonOf(error).replaceAll("\n", "; ");
      this.#failed++;
      log.error({ config, reason }, "reload failed, keeping the previous settings");
      throw new Fault("NOT_RELOADED", `Reload failed, the previous settings stay in force:\n${reasonOf(error)}`);
    }
    const changed = changedKeys(before.origins, next.origins);
    const afterRestart = this.#afterRestartIn(next);
    for (const setting of afterRestart) log.warn({ setting }, "a changed setting takes effect after a restart");
    this.#settings = next;
    this.#done++;
    log.info({ config, changed }, "settings reloaded");
    log.level = next.logLevel;
    return { config, changed, afterRestart };
  }
}

function foldersOf({ folders }: RunSettings): readonly string[] {
  return folders.map(({ path }) => path);
}

/**
 * Puts other settings into force in a run. What takes long or can fail comes first, while the previous
 * settings are still in force everywhere.
 * Resolves when all queries are answered by them.
 */
export async function applySettings(serving: Serving, settings: RunSettings): Promise<void> {
  const { querySide, containerSide, counts, features } = serving;
  const ofFeatures: Prepared[] = [];
  let apply: () => void;
  try {
    for (const each of features) if (each.prepare !== undefined) ofFeatures.push(await each.prepare(settings));
    apply = await containerSide.prepare(settings, sharedNamesOf(ofFeatures));
    // It may fail for want of memory: then nothing has changed.
    querySide.reconfigure(settings);
  } catch (error) {
    await Promise.all(ofFeatures.map(async (each) => await each.discard()));
    throw error;
  }
  counts.setContainersMax(settings.metrics.containers);
  for (const each of features) each.configure?.(settings);
  apply();
  for (const each of ofFeatures) each.commit();
  await containerSide.refreshed();
}
