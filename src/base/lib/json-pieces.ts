/**
 * JsonPieces: the JSON of a large value, an element of its lists at a time: to make that of a thousand containers in one go
 * takes several milliseconds, in which nothing else runs.
 */
import { inSlices } from "./slices.ts";

/** Characters that are written together. */
const CHUNK_LENGTH = 16_384;

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
