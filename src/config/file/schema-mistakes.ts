/**
 * SchemaMistakes: what is wrong with the values of a file, each with its place.
 */
import type * as z from "zod";

import { BadSettings, MISTAKES_SHOWN_MAX } from "../bad-settings.ts";
import type { Document, Mistake } from "./document.ts";
import { unknownKey } from "./schema.ts";

export function mistakeText(path: string, { line, column, what }: Mistake): string {
  return `${path}:${line}:${column}: ${what}`;
}

/** The first mistakes, in the order of the lines. */
export function badValues(issues: readonly Issue[], document: Document, path: string, root: z.ZodType): BadSettings {
  const all = issues.flatMap((issue) => mistakesOf(issue, root));
  const placed = locateMistakes(document, all.slice(0, MISTAKES_SHOWN_MAX));
  return new BadSettings(
    placed.map((each) => mistakeText(path, each)),
    all.length,
  );
}

type Issue = z.core.$ZodIssue;

interface SchemaMistake {
  readonly path: readonly PropertyKey[];
  /** The mistake is in the key itself, not in its value. */
  readonly isKey: boolean;
  readonly what: () => string;
}

function mistakesOf(issue: Issue, root: z.ZodType): SchemaMistake[] {
  const { path, message } = issue;
  if (issue.code !== "unrecognized_keys") return [{ path, isKey: false, what: () => message }];
  return issue.keys.map((key) => ({ path: [...path, key], isKey: true, what: () => unknownKey(key, path, root) }));
}

/** The mistakes with their positions, in the order of the lines. */
function locateMistakes(document: Document, found: readonly SchemaMistake[]): Mistake[] {
  return found
    .map(({ path, isKey, what }) => ({
      ...(isKey ? document.keyPositionOf(path) : document.positionOf(path)),
      what: `${pathText(path)}: ${what()}`,
    }))
    .toSorted((a, b) => a.line - b.line || a.column - b.column);
}

function pathText(path: readonly PropertyKey[]): string {
  return path
    .map((step) => (typeof step === "number" ? `[${step}]` : `.${String(step)}`))
    .join("")
    .slice(1);
}
