/**
 * Reloads: the settings that count, and how they are exchanged: read again, tried, and taken only where that worked. One
 * after the other; the log tells it, too.
 */
import type { ReloadReport } from "../api/status.ts";
import type { RunSettings } from "../config/settings.ts";
import { Fault, reasonOf } from "../base/lib/fault.ts";
import { changedKeys } from "../base/model/setting-origins.ts";
import type { Log } from "../base/log/log.ts";

interface ReloadParts {
  /** Those of the start. */
  readonly settings: RunSettings;
  readonly readSettings: () => Promise<RunSettings>;
  readonly log: Log;
  /** Has everybody go by them, or throws and leaves everybody at those of before. */
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

  /** How often it worked, and how often it did not. */
  get done(): number {
    return this.#done;
  }

  get failed(): number {
    return this.#failed;
  }

  async reload(): Promise<ReloadReport> {
    const reloaded = this.#last.then(async () => await this.#reload());
    this.#last = reloaded.catch(() => undefined);
    return await reloaded;
  }

  async #reload(): Promise<ReloadReport> {
    const { log, readSettings, apply: goBy } = this.#parts;
    const before = this.#settings;
    const { config } = before;
    if (config === undefined) {
      log.warn("there is no settings file to read again; name one with --config");
      throw new Fault("NO_SETTINGS_FILE", "There is no settings file to read again", {
        remedy: "Name one when dns11 is started: dns11 run --config FILE",
      });
    }
    let next;
    try {
      next = await readSettings();
      await goBy(next, before);
    } catch (error) {
      const reason = reasonOf(error).replaceAll("\n", "; ");
      this.#failed++;
      log.error({ config, reason }, "settings not read again; the old ones stay");
      throw new Fault("NOT_RELOADED", `The settings were not read again, and the old ones stay:\n${reasonOf(error)}`);
    }
    if (next.ruleBackend !== before.ruleBackend) {
      log.warn({ rules: next.ruleBackend }, "rules are held as they were until dns11 is started anew");
    }
    const changed = changedKeys(before.origins, next.origins);
    this.#settings = next;
    this.#done++;
    log.info({ config, changed }, "settings read again");
    log.level = next.logLevel;
    return { config, changed };
  }
}
