/**
 * SettingOrigins: the effective value of each key of the settings file, and where it comes from. Shown by a running
 * dns11 and by `check-config`.
 */

/** Where a value comes from, in order of precedence. */
export type SettingSource = "flag" | "environment" | "file" | FolderSource | "default";

/** Folders of other programs that are read as settings. */
export type FolderSource = "dnsmasq" | "kube-dns";

export interface SettingOrigin {
  readonly value: unknown;
  readonly source: SettingSource;
}

export type SettingOrigins = Readonly<Record<string, SettingOrigin>>;

/** Keys with a different value now, each as `KEY: BEFORE -> NOW`. */
export function changedKeys(before: SettingOrigins, now: SettingOrigins): string[] {
  return Object.entries(now).flatMap(([key, { value }]) => {
    const [old, young] = [before[key]?.value, value].map((each) => JSON.stringify(each) ?? "");
    return old === young ? [] : [`${key}: ${old ?? ""} -> ${young ?? ""}`];
  });
}
