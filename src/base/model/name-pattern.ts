/**
 * Pattern: which names a rule is about, in the notation of Docker's sandboxes: `x.test` that name alone, `*.x.test` names with
 * one more label, `**.x.test` names with any number of further labels, `**` every name. Letter case and a final dot do not matter.
 */
import { bareName, wireLabels } from "../dns/name.ts";

/** Names that end with certain labels, and have so many before them. */
export interface Pattern {
  /** As typed, in lower case. */
  readonly text: string;
  /** The labels at the end, as in a message, without the root label; a name that is matched exactly has no others. */
  readonly tail: Uint8Array;
  readonly tailLabels: number;
  readonly before: "none" | "one" | "some" | "any";
}

const NOTHING = new Uint8Array(0);
const EXAMPLES =
  'use a name such as "db.shop.test", "*.shop.test" for one label more, or "**.shop.test" for any number';

/** Throws an Error that says what to use. */
export function readPattern(text: string): Pattern {
  const name = bareName(text.trim());
  if (name === "**") return { text: name, tail: NOTHING, tailLabels: 0, before: "any" };
  if (name === "*") return { text: name, tail: NOTHING, tailLabels: 0, before: "one" };
  const [, stars = "", rest = ""] = /^(\*\*?(?=\.))?\.?(.*)$/s.exec(name) ?? [];
  const isWhole = stars !== "" || !name.startsWith(".");
  const labels = rest === "" || rest.includes("*") || !isWhole ? undefined : wireLabels(rest);
  // Bytes beyond ASCII would be compared as they are typed, and never found.
  if (labels === undefined || /[^\x21-\x7e]/.test(rest)) {
    const shown = JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}...` : text);
    const hint = /[^\0-\x7f]/.test(text) ? ', and "xn--..." for labels beyond ASCII' : "";
    throw new Error(`invalid name ${shown}: ${EXAMPLES}${hint}`);
  }
  return {
    text: name,
    tail: labels,
    tailLabels: rest.split(".").length,
    before: stars === "" ? "none" : stars === "*" ? "one" : "some",
  };
}

/** Whether a name with so many labels, which ends with the labels of the pattern, matches. */
export function matchesLabels({ before, tailLabels }: Pattern, labelCount: number): boolean {
  const more = labelCount - tailLabels;
  if (before === "any") return true;
  return before === "none" ? more === 0 : before === "one" ? more === 1 : more > 0;
}

const LITERAL_NAME =
  /^(?=.{1,253}$)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*$/;

/** Whether a name is one of a host, and has no other meaning where patterns are read. */
export function isLiteralName(name: string): boolean {
  return LITERAL_NAME.test(name);
}
