/**
 * SettingsLayer: the settings from one source (flags, environment or settings file), by the keys of the settings file. A
 * missing key is not set.
 */
import type { SettingSource } from "../base/model/setting-origins.ts";
import type { Key, Values } from "./settings-table.ts";

export type LayerValues = { readonly [K in Key]?: Values[K] | undefined };

export interface SettingsLayer {
  readonly source: Exclude<SettingSource, "default">;
  readonly values: LayerValues;
  /** Where a key is set, for messages: `--strict`, `DNS11_STRICT`, `dns11.yaml:3:1: strict`. */
  readonly where: (key: Key) => string;
}
