/**
 * Choice: of what several sources say under one key, what counts; and who said it.
 */
import type { Key, SettingsLayer, Values } from "./settings-layer.ts";
import type { SettingOrigin } from "../base/model/setting-origins.ts";

export class Precedence {
  readonly #layers: readonly SettingsLayer[];
  /** Of every key that was taken: what counts, as a settings file would say it. */
  readonly origins = new Map<Key, SettingOrigin>();
  readonly #changed = new Set<Key>();

  /** Whoever counts more stands first. */
  constructor(layers: readonly SettingsLayer[]) {
    this.#layers = layers;
  }

  /** `write` turns a value into what a settings file would say. */
  take<K extends Key>(key: K, fallback: Values[K], write: (value: Values[K]) => unknown = (value) => value): Values[K] {
    const layer = this.layerOf(key);
    const value = layer?.values[key] ?? fallback;
    if (value !== fallback) this.#changed.add(key);
    this.origins.set(key, { value: write(value), source: layer?.source ?? "default" });
    return value;
  }

  /** For a key without a default. */
  takeOptional<K extends Key>(key: K): Values[K] | undefined {
    const value = this.valueOf(key);
    this.origins.set(key, { value: value ?? null, source: this.layerOf(key)?.source ?? "default" });
    return value;
  }

  valueOf<K extends Key>(key: K): Values[K] | undefined {
    return this.layerOf(key)?.values[key];
  }

  layerOf(key: Key): SettingsLayer | undefined {
    return this.#layers.find(({ values: said }) => said[key] !== undefined);
  }

  /** Whether whoever said the one counts more than whoever said the other. */
  isBefore(one: Key, other: Key): boolean {
    const rank = (key: Key): number => this.#layers.findIndex(({ values: said }) => said[key] !== undefined);
    return rank(one) !== -1 && (rank(other) === -1 || rank(one) < rank(other));
  }

  /** The keys that begin so, and do not have their default. */
  changed(...prefixes: readonly string[]): Key[] {
    return [...this.#changed].filter((key) => prefixes.some((prefix) => key.startsWith(prefix)));
  }
}
