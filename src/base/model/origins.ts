/**
 * Origins: for each key of the settings file, what counts and who said so. Told by a running dns11 as well as by
 * `check-config`.
 */

/** Who said what counts; whoever stands first here goes before the others. */
export type Source = "flag" | "environment" | "file" | "default";

export interface Origin {
  readonly value: unknown;
  readonly source: Source;
}

export type Origins = Readonly<Record<string, Origin>>;

/** Keys under which something else counts now, each as `KEY: BEFORE -> NOW`. */
export function changedKeys(before: Origins, now: Origins): string[] {
  return Object.entries(now).flatMap(([key, { value }]) => {
    const [old, young] = [before[key]?.value, value].map((each) => JSON.stringify(each) ?? "");
    return old === young ? [] : [`${key}: ${old ?? ""} -> ${young ?? ""}`];
  });
}
