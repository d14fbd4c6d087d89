/**
 * Keys: every key of a settings file: those of the settings table, those of features, and the maps.
 */
import type { RouteText } from "../base/model/server-text.ts";
import { FEATURES } from "../features.ts";
import { CORE_SETTINGS } from "./settings-table.ts";
import type { FeatureEntry, FolderFormat } from "./feature-entry.ts";
import type { AnySetting, MapValuesOf, MapsTable, ValuesOf } from "./setting.ts";

type Feature = (typeof FEATURES)[number];
type AllOf<T> = (T extends unknown ? (each: T) => void : never) extends (all: infer All) => void ? All : never;
type SettingsOf<T> = T extends { readonly settings: infer Settings } ? Settings : never;
/** Nothing, where the list is empty. */
type FeatureSettings = AllOf<SettingsOf<Feature>> & object;

const FEATURE_SETTINGS = Object.assign(
  {},
  ...FEATURES.map(({ settings }: FeatureEntry) => settings),
) as FeatureSettings;

export const SETTINGS = { ...CORE_SETTINGS, ...FEATURE_SETTINGS };

/** The keys that features declare. */
export const FEATURE_KEYS = Object.keys(FEATURE_SETTINGS) as (keyof FeatureSettings)[];

/** The settings whose values are a text or a list of texts, so that they have a variable. */
export type PlainKey = keyof typeof SETTINGS;

type MapsOf<T> = T extends { readonly maps: infer Maps } ? Maps : never;
type FeatureMaps = AllOf<MapsOf<Feature>> & object;

/** Those that features declare. */
export const FEATURE_MAPS: MapsTable = Object.assign({}, ...FEATURES.map(({ maps }: FeatureEntry) => maps));

/** The folders that they read, by the settings that name these. */
export const FEATURE_FOLDERS: Readonly<Record<string, FolderFormat>> = Object.assign(
  {},
  ...FEATURES.map(({ folders }: FeatureEntry) => folders),
);

/** Maps, which only the settings file has. */
export interface MapValues extends MapValuesOf<FeatureMaps> {
  networks: ReadonlyMap<string, readonly RouteText[]>;
}

export const MAP_HELP: Readonly<Record<keyof MapValues, string>> = {
  networks: "upstream servers for the containers of a network, by network name: {NAME: {dns: [...]}}",
  ...(Object.fromEntries(Object.entries(FEATURE_MAPS).map(([key, { help }]) => [key, help])) as Readonly<
    Record<keyof MapValuesOf<FeatureMaps>, string>
  >),
};

/** Durations are in milliseconds, sizes in bytes. */
export type Values = ValuesOf<typeof SETTINGS> & MapValues;

export type Key = keyof Values;

export function isPlain(key: Key): key is PlainKey {
  return Object.hasOwn(SETTINGS, key);
}

/** Whether a change of this key takes effect at the next start only. */
export function isForStart(key: string): boolean {
  return Object.hasOwn(SETTINGS, key) && SETTINGS[key as PlainKey].isForStart;
}

/** In the form of the settings file. */
export function writtenValue(key: PlainKey, value: unknown): unknown {
  return (SETTINGS[key] as AnySetting).kind.write?.(value) ?? value;
}
