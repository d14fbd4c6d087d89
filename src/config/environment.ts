/**
 * Environment: a variable for each setting that is no map, for where flags and files are awkward. Its name follows from the key:
 * DNS11_KIND_NODES for kind.nodes. An empty variable is ignored.
 */
import { BadSettings } from "./bad-settings.ts";
import type { SettingsLayer } from "./settings-layer.ts";
import type { AnySetting } from "./setting.ts";
import { type PlainKey, SETTINGS } from "./settings-table.ts";

export function variableOf(key: PlainKey): string {
  return `DNS11_${key.toUpperCase().replaceAll(/[.-]/g, "_")}`;
}

export function readEnvironment(environment: Readonly<Record<string, string | undefined>>): SettingsLayer {
  const values: Record<string, unknown> = {};
  const problems: string[] = [];
  for (const [key, { kind }] of Object.entries<AnySetting>(SETTINGS)) {
    const variable = variableOf(key as PlainKey);
    const text = environment[variable];
    if (text === undefined || text === "") continue;
    try {
      values[key] = kind.read(kind.fromText?.(text) ?? text);
    } catch (error) {
      problems.push(`${variable}: ${(error as Error).message}`);
    }
  }
  if (problems.length > 0) throw new BadSettings(problems);
  return { source: "environment", values, where: (key) => variableOf(key as PlainKey) };
}
