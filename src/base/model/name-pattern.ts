/**
 * Pattern: which names a rule is about, in the notation of Docker's sandboxes: `x.test` that name alone, `*.x.test` names with
 * one more label, `**.x.test` names with any number of further labels, `**` every name. Letter case and a final dot do not matter.
 */
import { bareName, wireLabels, sameBytes } from "../dns/name.ts";
import { HASH_BASIS, hashByte, hashOf } from "./label-table.ts";
import type { QuestionName } from "./visible-names.ts";

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
function matchesLabels({ before, tailLabels }: Pattern, labelCount: number): boolean {
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

interface Entry<V> {
  readonly pattern: Pattern;
  readonly value: V;
}

const NONE: readonly never[] = [];

/**
 * Values by pattern, found by name. A lookup costs one step for each number of labels that patterns have, however
 * many patterns there are, and makes no string of the name.
 */
export class PatternIndex<V> {
  /** By the hash of the labels of the pattern. */
  readonly #entries = new Map<number, Entry<V>[]>();
  /** The numbers of labels that patterns have, and how many patterns have each. */
  #tailLabels: number[] = [];
  readonly #patterns = new Map<number, number>();

  get isEmpty(): boolean {
    return this.#entries.size === 0;
  }

  add(pattern: Pattern, value: V): void {
    const { tail, tailLabels } = pattern;
    const hash = hashOf(tail);
    const others = this.#entries.get(hash);
    if (others === undefined) this.#entries.set(hash, [{ pattern, value }]);
    else others.push({ pattern, value });
    this.#count(tailLabels, 1);
  }

  remove({ tail, tailLabels }: Pattern, isWanted: (value: V) => boolean): void {
    const hash = hashOf(tail);
    const entries = this.#entries.get(hash) ?? [];
    const at = entries.findIndex(({ value }) => isWanted(value));
    if (at === -1) return;
    entries.splice(at, 1);
    if (entries.length === 0) this.#entries.delete(hash);
    this.#count(tailLabels, -1);
  }

  /** The values of all patterns that match. */
  find({ folded, foldedLength, labelCount, lengthOf, hashOf: hashes }: QuestionName): readonly V[] {
    let found: V[] | undefined;
    for (const tailLabels of this.#tailLabels) {
      if (tailLabels > labelCount) continue;
      const start = lengthOf[labelCount - tailLabels] as number;
      const hash = start === 0 ? (hashes[labelCount] as number) : hashFrom(folded, start, foldedLength);
      for (const { pattern, value } of this.#entries.get(hash) ?? NONE) {
        const { tail } = pattern;
        if (!matchesLabels(pattern, labelCount) || tail.length !== foldedLength - start) continue;
        if (sameBytes(tail, 0, folded, start, tail.length)) (found ??= []).push(value);
      }
    }
    return found ?? NONE;
  }

  #count(tailLabels: number, more: number): void {
    const left = (this.#patterns.get(tailLabels) ?? 0) + more;
    if (left === 0) this.#patterns.delete(tailLabels);
    else this.#patterns.set(tailLabels, left);
    if (left === 0 || left === more) this.#tailLabels = [...this.#patterns.keys()];
  }
}

function hashFrom(bytes: Uint8Array, start: number, end: number): number {
  let hash = HASH_BASIS;
  for (let at = start; at < end; at++) hash = hashByte(hash, bytes[at] as number);
  return hash;
}
