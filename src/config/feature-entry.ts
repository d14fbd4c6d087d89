import type { MapsTable, SettingsTable } from "./setting.ts";
import type { Settings } from "./settings.ts";

/** Of a key whose names are more than Docker has: their other types are never forwarded. */
export const NOT_WITH_STRICT = "has no effect with strict, because Docker has no such names: remove one of them";

/** What the settings know of a feature. It is loaded with every command, so it imports little. */
export interface FeatureEntry {
  /** By their keys in the settings file. */
  readonly settings?: SettingsTable;
  /** The same of settings that are maps. */
  readonly maps?: MapsTable;
  /** The domains that it answers by itself, so that no other feature does. */
  readonly domains?: (settings: Pick<Settings, "features">) => readonly string[];
  /**
   * The keys whose values contradict each other or other settings, each with what to do. `domainsOfOthers`: those of the features
   * before it in the list.
   */
  readonly conflicts?: (
    settings: Settings,
    domainsOfOthers: readonly string[],
  ) => readonly (readonly [key: string, problem: string])[];
  /** Whether it has names below `host-domain`, so that this has an effect also where the host asks for none. */
  readonly hasNamesBelowHostDomain?: (settings: Pick<Settings, "features">) => boolean;
  /** Domains that the host asks dns11 for, too, where it asks for names at all. */
  readonly hostZones?: (settings: Pick<Settings, "features">) => readonly string[];
  /** Its code, which is all that some features have. */
  readonly load?: unknown;
}
