/**
 * TapeFile: a tape as a YAML file. It is a module of its own because a suite that uses no tape need not load the package for YAML.
 */
import { readFileSync, writeFileSync } from "node:fs";

import { Document, isMap, parse, visit } from "yaml";

import { Fault } from "../../base/lib/fault.ts";
import { TAPE_VERSION, type TapeContent } from "./tape.ts";

const FILE_BYTES_MAX = 16 * 2 ** 20;
const HEAD =
  " What containers asked, and what they were answered. Edit it as you like: answers are given in their order, and the last one stays.\n" +
  " live: the name of a container, which is answered as always.";

export function writeTape(path: string, content: TapeContent): void {
  writeFileSync(path, tapeText(content));
}

export function tapeText(content: TapeContent): string {
  const document = new Document(content);
  document.commentBefore = HEAD;
  // An answer is one line.
  visit(document, {
    Pair: (_, { key, value }) => {
      if (String(key) !== "answers" || value === null || typeof value !== "object" || !("items" in value)) return;
      for (const item of value.items as unknown[]) if (isMap(item)) item.flow = true;
    },
  });
  return document.toString({ lineWidth: 0 });
}

/** Throws a Fault that says what is wrong with the file. */
export function readTape(path: string): TapeContent {
  let value: unknown;
  try {
    const text = readFileSync(path, "utf8");
    if (text.length > FILE_BYTES_MAX) throw new Error(`it is larger than ${FILE_BYTES_MAX / 2 ** 20} MiB`);
    value = parse(text);
  } catch (cause) {
    throw new Fault("BAD_TAPE", `Cannot read the tape "${path}"`, {
      cause,
      remedy: "Give a file that dns11 record has written.",
    });
  }
  const mistake = mistakeIn(value);
  if (mistake !== undefined)
    throw new Fault("BAD_TAPE", `Invalid tape "${path}": ${mistake}`, {
      remedy: "Mend that place, or record it again.",
    });
  return value as TapeContent;
}

function mistakeIn(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null || !("tape" in value))
    return `it does not begin with "tape: ${TAPE_VERSION}"`;
  if (value.tape !== TAPE_VERSION)
    return `it is of version ${String(value.tape)}, and this program reads version ${TAPE_VERSION}`;
  const { queries } = value as { readonly queries?: unknown };
  if (!Array.isArray(queries)) return "it has no list of queries";
  for (const [index, entry] of queries.entries()) {
    const { by, name, type, live, answers } = (entry ?? {}) as Partial<Record<string, unknown>>;
    const text = `query ${index + 1}`;
    if (![by, name, type].every((each) => typeof each === "string" && each !== ""))
      return `${text} needs by, name and type, each a text`;
    if (live !== undefined && typeof live !== "boolean") return `live of ${text} is neither true nor false`;
    if (
      answers !== undefined &&
      !(Array.isArray(answers) && answers.every((each) => typeof each === "object" && each !== null))
    )
      return `answers of ${text} are no list of maps`;
    const times = (answers ?? []).map((each: { readonly times?: unknown }) => each.times ?? 1);
    if (!times.every((each) => Number.isInteger(each) && (each as number) > 0))
      return `times of ${text} is no whole number above 0`;
  }
  return undefined;
}
