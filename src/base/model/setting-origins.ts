/**
 * Origins: for each key of the settings file, what counts and who said so. Told by a running dns11 as well as by
 * `check-config`.
 */

/** Who said what counts; whoever stands first here goes before the others. */
export type SettingSource = "flag" | "environment" | "file" | "default";

export interface SettingOrigin {
  readonly value: unknown;
  readonly source: SettingSource;
}

export type SettingOrigins = Readonly<Record<string, SettingOrigin>>;

/** Keys under which something else counts now, each as `KEY: BEFORE -> NOW`. */
export function changedKeys(before: SettingOrigins, now: SettingOrigins): string[] {
  return Object.entries(now).flatMap(([key, { value }]) => {
    const [old, young] = [before[key]?.value, value].map((each) => JSON.stringify(each) ?? "");
    return old === young ? [] : [`${key}: ${old ?? ""} -> ${young ?? ""}`];
  });
}
