import type { SettingsTable } from "./setting.ts";
import type { Settings } from "./settings.ts";

/** What the settings know of a feature. It is loaded with every command, so it imports little. */
export interface FeatureEntry {
  /** By their keys in the settings file. */
  readonly settings?: SettingsTable;
  /** The keys whose values contradict each other or other settings, each with what to do. */
  readonly conflicts?: (settings: Settings) => readonly (readonly [key: string, problem: string])[];
  /** Domains that the host asks dns11 for, too, where it asks for names at all. */
  readonly hostZones?: (settings: Pick<Settings, "features">) => readonly string[];
}
