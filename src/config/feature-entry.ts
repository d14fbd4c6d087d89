import type { SystemCall } from "../kernel/system-calls.ts";
import type { FolderSource } from "../base/model/setting-origins.ts";
import type { MapsTable, SettingsTable } from "./setting.ts";
import type { Settings } from "./settings.ts";
import type { KeptDomain } from "./zone-name.ts";

/** Of a key whose names are more than Docker has: their other types are never forwarded. */
export const NOT_WITH_STRICT = "has no effect with strict, because Docker has no such names: remove one of them";

/** Of a key that chooses what Docker gives no choice of. */
export const NO_CHOICE_WITH_STRICT = "has no effect with strict, because Docker has no such choice: remove one of them";

/** What the settings mean to all features. */
export interface WithFeatures {
  /** The domains of those before it in the list. */
  readonly domains: readonly string[];
  /** Those that any of them keeps free of zones. */
  readonly kept: readonly KeptDomain[];
  /** Whether any has names below `host-domain`. */
  readonly isHostDomainUsed: boolean;
}

/** A folder that a setting names, whose files a thread of their own reads (`file/worker.ts`): settings, or what the feature reads there. */
export type FolderFormat =
  | { readonly source: FolderSource; readonly reader: () => Promise<FolderReader<FolderSettings>> }
  | { readonly source?: undefined; readonly reader: () => Promise<FolderReader<object>> };

interface FolderReader<T> {
  /** Throws a Fault that lists every mistake. */
  readFolder(folder: string): Promise<T>;
}

/** What a folder sets. */
export interface FolderSettings {
  /** By the keys of the settings file. */
  readonly values: Readonly<Record<string, unknown>>;
  /** Where each key is set. */
  readonly places: Readonly<Record<string, string>>;
  /** Options of the other program that mean nothing here, each with file and line. */
  readonly withoutMeaning: readonly string[];
}

/** What the settings know of a feature. It is loaded with every command, so it imports little. */
export interface FeatureEntry {
  /** By the word that is typed. */
  readonly commands?: Readonly<Record<string, object>>;
  /** By their keys in the settings file. */
  readonly settings?: SettingsTable;
  /** The same of settings that are maps. */
  readonly maps?: MapsTable;
  /** By the settings that name them. */
  readonly folders?: Readonly<Record<string, FolderFormat>>;
  /** The domains that it answers by itself, so that no other feature does. */
  readonly domains?: (settings: Pick<Settings, "features">) => readonly string[];
  /** The keys whose values contradict each other or other settings, each with what to do. */
  readonly conflicts?: (
    settings: Settings,
    ofFeatures: WithFeatures,
  ) => readonly (readonly [key: string, problem: string])[];
  /** Whether it has names below `host-domain`, so that this has an effect. */
  readonly hasNamesBelowHostDomain?: (settings: Pick<Settings, "features">) => boolean;
  /** Domains that are kept free of zones, while it has names there. */
  readonly keptDomains?: (settings: Settings) => readonly KeptDomain[];
  /** Its zones, in which services and projects have names: others know them, too. */
  readonly zones?: (settings: Pick<Settings, "features">) => readonly string[];
  /** Domains that the host asks dns11 for, too, where it asks for names at all. */
  readonly hostZones?: (settings: Pick<Settings, "features">) => readonly string[];
  /** Whether it serves containers on the default bridge, which then have names there. */
  readonly servesDefaultBridge?: (settings: Pick<Settings, "features">) => boolean;
  /** The labels by which its settings choose containers. */
  readonly labelKeys?: (settings: Pick<Settings, "features">) => readonly string[];
  /** System calls that a run makes for it, and which are otherwise refused to the process. */
  readonly calls?: (settings: Pick<Settings, "features">) => readonly SystemCall[];
  /** Its code, which is all that some features have. */
  readonly load?: unknown;
}
