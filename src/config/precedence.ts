/**
 * Precedence: picks the value of each key from the layer with the highest precedence, and records its origin.
 */
import type { MapSetting } from "./setting.ts";
import type { SettingsLayer } from "./settings-layer.ts";
import { type Key, type MapValues, type PlainKey, SETTINGS, type Values, writtenValue } from "./settings-table.ts";
import type { SettingOrigin } from "../base/model/setting-origins.ts";

export class Precedence {
  readonly #layers: readonly SettingsLayer[];
  /** The origin of every key taken so far, with the value as written in a settings file. */
  readonly origins = new Map<Key, SettingOrigin>();
  readonly #changed = new Set<Key>();

  /** Layers in order of precedence, the highest first. */
  constructor(layers: readonly SettingsLayer[]) {
    this.#layers = layers;
  }

  /** Picks the value of a key. `fallback` is its default where that depends on other settings. */
  take<K extends PlainKey>(key: K, fallback = SETTINGS[key].fallback as Values[K]): Values[K] {
    return this.#pick(key, fallback, (value) => (value === undefined ? null : writtenValue(key, value)));
  }

  /** The same for a key without a default. */
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

  /** The keys with one of these prefixes whose value is not the default. */
  changed(...prefixes: readonly string[]): Key[] {
    return [...this.#changed].filter((key) => prefixes.some((prefix) => key.startsWith(prefix)));
  }
}
