/**
 * SkippedKeys: the keys of etcd that could not be read, as text for a finding: the first of them, each with its reason.
 */
import type { MachinesReport } from "./etcd.ts";

const SHOWN = 3;

export function skippedKeys({ skipped, problems }: Pick<MachinesReport, "skipped" | "problems">): string {
  const shown = problems.slice(0, SHOWN).map(({ key, problem }) => `${key}: ${problem}`);
  const more = skipped - shown.length;
  return [...shown, ...(more > 0 ? [`${more} more`] : [])].join("; ");
}
