/**
 * CauseLines: a cause as text for people, with its fix and the change of the Compose file.
 */
import type { Cause } from "../src/api/causes.ts";
import { printable } from "./printable.ts";
import { PLAIN } from "./terminal.ts";
import { wrapped } from "./wrap.ts";

/** Sentences are wrapped; a command is easier to copy from one line. */
export function causeLines(cause: Cause | null, width = PLAIN.width): string[] {
  if (cause === null) return [];
  const { sentence, fix, lastingFix } = cause;
  return [
    ...wrapped(`  why: ${printable(sentence)}`, width, "       "),
    ...(fix === null ? [] : [`  fix: ${fix}`]),
    ...(lastingFix === null
      ? []
      : [`  for good: ${lastingFix.file ?? "Compose file"}: ${lastingFix.key}: ${lastingFix.change}`]),
  ];
}
