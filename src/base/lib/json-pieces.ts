/**
 * JsonPieces: the JSON of a large value, an element of its lists at a time: to make or read that of a thousand containers in
 * one go takes several milliseconds, in which nothing else runs.
 */
import { inSlices } from "./slices.ts";

/** Characters that are written together. */
const CHUNK_LENGTH = 16_384;
const NOT_A_LIST = "the text is not a list of objects";
const CHAR = { quote: 0x22, backslash: 0x5c, bracket: 0x5b, bracketEnd: 0x5d, brace: 0x7b, braceEnd: 0x7d } as const;

/** Writes what `JSON.stringify` returns, in slices. */
export async function writeJson(value: unknown, write: (text: string) => void): Promise<void> {
  await inSlices(chunks(value, write));
}

function* chunks(value: unknown, write: (text: string) => void): Generator<void> {
  let text = "";
  for (const piece of pieces(value)) {
    text += piece;
    yield;
    if (text.length < CHUNK_LENGTH) continue;
    write(text);
    text = "";
  }
  write(text);
}

/** A list gives its elements, an object its members, and the elements of those that are lists. */
function* pieces(value: unknown): Generator<string> {
  if (Array.isArray(value)) return yield* elements(value);
  if (typeof value !== "object" || value === null || "toJSON" in value) return yield JSON.stringify(value);
  let before = "{";
  for (const [key, member] of Object.entries(value)) {
    const text = Array.isArray(member) ? "" : (JSON.stringify(member) as string | undefined);
    if (text === undefined) continue;
    yield `${before}${JSON.stringify(key)}:${text}`;
    if (Array.isArray(member)) yield* elements(member);
    before = ",";
  }
  yield before === "{" ? "{}" : "}";
}

function* elements(list: readonly unknown[]): Generator<string> {
  let before = "[";
  for (const element of list) {
    yield `${before}${(JSON.stringify(element) as string | undefined) ?? "null"}`;
    before = ",";
  }
  yield before === "[" ? "[]" : "]";
}

/** Reads a list of objects, however its text is cut, in slices. */
export async function readJsonList(texts: AsyncIterable<string>): Promise<unknown[]> {
  const list: unknown[] = [];
  const reader = new ListReader(list);
  for await (const text of texts) await inSlices(reader.read(text));
  if (!reader.isComplete) throw new Error("the list ends too early");
  return list;
}

/** Finds where each object of the list ends; JSON.parse checks what is in it. */
class ListReader {
  isComplete = false;
  readonly #list: unknown[];
  /** The begin of an object that is not complete yet. */
  #rest = "";
  /** The lists and objects that are open; the list itself is the first. */
  #depth = 0;
  #isInString = false;

  constructor(list: unknown[]) {
    this.#list = list;
  }

  *read(text: string): Generator<void> {
    const whole = this.#rest + text;
    let begin = 0;
    for (let at = this.#rest.length; at < whole.length; at++) {
      if (this.#isInString) {
        const end = endOfString(whole, at);
        if (end < 0) break;
        this.#isInString = false;
        at = end;
        continue;
      }
      const char = whole.charCodeAt(at);
      if (char === CHAR.quote) {
        if (this.#depth < 2) throw new Error(NOT_A_LIST);
        this.#isInString = true;
      } else if (char === CHAR.brace || char === CHAR.bracket) {
        if (this.#depth === 0 && (char === CHAR.brace || this.isComplete)) throw new Error(NOT_A_LIST);
        if (this.#depth++ === 1) begin = at;
      } else if (char === CHAR.braceEnd || char === CHAR.bracketEnd) {
        this.#depth--;
        this.isComplete = this.#depth === 0;
        if (this.#depth !== 1) continue;
        this.#list.push(JSON.parse(whole.slice(begin, at + 1)));
        yield;
      }
    }
    this.#rest = this.#depth > 1 ? whole.slice(begin) : "";
  }
}

/** The quote that ends a string: it has no backslash before it, or an even number of them. Negative if it is not there. */
function endOfString(text: string, from: number): number {
  for (let end = text.indexOf('"', from); end >= 0; end = text.indexOf('"', end + 1)) {
    let first = end;
    while (first > 0 && text.charCodeAt(first - 1) === CHAR.backslash) first--;
    if ((end - first) % 2 === 0) return end;
  }
  return -1;
}
