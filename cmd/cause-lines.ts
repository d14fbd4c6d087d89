/**
 * CauseLines: a cause as text for people, with its fix and the change of the Compose file.
 */
import type { Cause } from "../src/api/causes.ts";

export function causeLines(cause: Cause | null): string[] {
  if (cause === null) return [];
  const { sentence, fix, lastingFix } = cause;
  return [
    `  why: ${sentence}`,
    ...(fix === null ? [] : [`  fix: ${fix}`]),
    ...(lastingFix === null
      ? []
      : [`  for good: ${lastingFix.file ?? "Compose file"}: ${lastingFix.key}: ${lastingFix.change}`]),
  ];
}
