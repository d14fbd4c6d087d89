const SHOWN = 3;

interface Skipped {
  readonly skipped: number;
  /** Those of the first. */
  readonly problems: readonly { readonly key: string; readonly problem: string }[];
}

/** The keys of a store that could not be read, as text for a finding: the first of them, each with its reason. */
export function skippedKeys({ skipped, problems }: Skipped): string {
  const shown = problems.slice(0, SHOWN).map(({ key, problem }) => `${key}: ${problem}`);
  const more = skipped - shown.length;
  return [...shown, ...(more > 0 ? [`${more} more`] : [])].join("; ");
}
