/**
 * CauseLines: a cause as text for people, with its fix and the change of the Compose file.
 */
import type { Cause, LastingFix } from "../../src/api/causes.ts";
import { printable } from "./printable.ts";
import { PLAIN } from "./terminal.ts";
import { wrapped } from "./wrap.ts";

/** Sentences are wrapped; a command is easier to copy from one line. */
export function causeLines(cause: Cause | null, width = PLAIN.width): string[] {
  if (cause === null) return [];
  const { sentence, fix, advice, lastingFix } = cause;
  return [
    ...sentenceLines(sentence, width),
    ...(fix === null ? [] : [`  fix: ${fix}`]),
    ...(advice === undefined
      ? []
      : wrapped(`  ${fix === null ? "fix" : "and"}: ${printable(advice)}`, width, "       ")),
    ...(lastingFix === null ? [] : lastingLines(lastingFix, width)),
  ];
}

export function sentenceLines(sentence: string, width: number): string[] {
  return wrapped(`  why: ${printable(sentence)}`, width, "       ");
}

/** The change, then the command that applies it. */
export function lastingLines({ file, key, change, command }: LastingFix, width: number): string[] {
  const text = `  for good: ${printable(file ?? "Compose file")}: ${printable(key)}: ${printable(change)}`;
  return [...wrapped(text, width, "            "), ...(command === undefined ? [] : [`            ${command}`])];
}
