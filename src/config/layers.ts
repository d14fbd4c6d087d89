/**
 * Layers: the settings from each source (flags, environment, settings file, folders), and which of them counts for a key.
 */
import type { SettingOrigin, SettingSource } from "../base/model/setting-origins.ts";
import { nearest } from "../base/lib/nearest.ts";
import { BadSettings } from "./bad-settings.ts";
import { type AnySetting, type MapSetting, variableOf } from "./setting.ts";
import { type Key, type MapValues, type PlainKey, SETTINGS, type Values, writtenValue } from "./keys.ts";

/** By the keys of the settings file. A missing key is not set. */
export type LayerValues = { readonly [K in Key]?: Values[K] | undefined };

export interface SettingsLayer {
  readonly source: Exclude<SettingSource, "default">;
  readonly values: LayerValues;
  /** The folder whose files it is. */
  readonly folder?: string;
  /** Where a key is set, for messages: `--strict`, `DNS11_STRICT`, `dns11.yaml:3:1: strict`. */
  readonly where: (key: Key) => string;
}

/** An empty variable is ignored. */
export function readEnvironment(environment: Readonly<Record<string, string | undefined>>): SettingsLayer {
  const values: Record<string, unknown> = {};
  const problems: string[] = [];
  for (const [key, { kind }] of Object.entries<AnySetting>(SETTINGS)) {
    const variable = variableOf(key);
    const text = environment[variable];
    if (text === undefined || text === "") continue;
    try {
      values[key] = kind.read(kind.fromText?.(text) ?? text);
    } catch (error) {
      problems.push(`${variable}: ${(error as Error).message}`);
    }
  }
  BadSettings.throwAny(problems);
  return { source: "environment", values, where: (key) => variableOf(key) };
}

const PREFIX = variableOf("");
/** Of flags that are no settings. */
const OF_FLAGS = ["CONFIG", "STATE_DIR"];

/**
 * Variables that are nearly one that dns11 reads, with that one. Others are left alone: a cluster, for example, gives each program variables
 * that begin with the name of a service.
 */
export function mistypedVariables(environment: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const known = [...OF_FLAGS, ...Object.keys(SETTINGS).map((key) => variableOf(key).slice(PREFIX.length))];
  const found: Record<string, string> = {};
  for (const variable of Object.keys(environment)) {
    const name = variable.slice(PREFIX.length);
    const meant = variable.startsWith(PREFIX) && !known.includes(name) ? nearest(name, known) : undefined;
    if (meant !== undefined) found[variable] = `${PREFIX}${meant}`;
  }
  return found;
}

/** Picks the value of each key from the highest layer that sets it, and records its origin. */
export class Precedence {
  readonly #layers: readonly SettingsLayer[];
  /** The origin of every key taken so far, with the value as written in a settings file. */
  readonly origins = new Map<Key, SettingOrigin>();
  readonly #changed = new Set<Key>();

  /** Layers in order of precedence, the highest first. */
  constructor(layers: readonly SettingsLayer[]) {
    this.#layers = layers;
  }

  /** Picks the value of a key. `fallback` is its default where that depends on other settings than the mode. */
  take<K extends PlainKey>(key: K, fallback = this.#fallbackOf(key)): Values[K] {
    return this.#pick(key, fallback, (value) => (value === undefined ? null : writtenValue(key, value)));
  }

  /** The values of several keys, each under a name of its own. */
  takeAll<const N extends Readonly<Record<string, PlainKey>>>(names: N): { readonly [K in keyof N]: Values[N[K]] } {
    const values = Object.entries(names).map(([name, key]) => [name, this.take(key)]);
    return Object.fromEntries(values) as { readonly [K in keyof N]: Values[N[K]] };
  }

  /** The value of a key without a default. */
  takeOptional<K extends PlainKey>(key: K): Values[K] | undefined {
    return this.#pick(key, undefined, (value) => (value === undefined ? null : writtenValue(key, value)));
  }

  /** The same for a map. `write` converts it to the form of the settings file. */
  takeMap<K extends keyof MapValues>(key: K, fallback: Values[K], write: (value: Values[K]) => unknown): Values[K] {
    return this.#pick(key, fallback, write);
  }

  takeFeatureMap(key: string, setting: MapSetting): unknown {
    return this.#pick(key as keyof MapValues, setting.fallback as never, (value) => setting.write(value));
  }

  #pick<K extends Key, T extends Values[K] | undefined>(key: K, fallback: T, write: (value: T) => unknown): T {
    const layer = this.layerOf(key);
    const value = (layer?.values[key] as T | undefined) ?? fallback;
    if (value !== fallback) this.#changed.add(key);
    this.origins.set(key, { value: write(value), source: layer?.source ?? "default" });
    return value;
  }

  #fallbackOf<K extends PlainKey>(key: K): Values[K] {
    const { fallback, strictFallback = fallback }: AnySetting = SETTINGS[key];
    return (this.valueOf("strict") === true ? strictFallback : fallback) as Values[K];
  }

  valueOf<K extends Key>(key: K): Values[K] | undefined {
    return this.layerOf(key)?.values[key];
  }

  layerOf(key: Key): SettingsLayer | undefined {
    return this.layersOf(key)[0];
  }

  /** All layers that set a key, the highest first. */
  layersOf(key: Key): readonly SettingsLayer[] {
    return this.#layers.filter(({ values }) => values[key] !== undefined);
  }

  /** The keys of lists that a folder sets. */
  get listsInFolders(): readonly Key[] {
    const ofFolders = this.#layers.filter(({ folder }) => folder !== undefined);
    const lists = ofFolders.flatMap(({ values }) => Object.entries(values).filter(([, value]) => Array.isArray(value)));
    return [...new Set(lists.map(([key]) => key as Key))].toSorted();
  }

  /** The keys with one of these prefixes whose value is not the default. */
  changed(...prefixes: readonly string[]): Key[] {
    return [...this.#changed].filter((key) => prefixes.some((prefix) => key.startsWith(prefix)));
  }
}
