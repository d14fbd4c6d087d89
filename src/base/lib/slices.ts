/**
 * Slices: long work on the answering thread, a millisecond at a time, so that queries are answered in between. The first
 * pieces are always done in one go: with few containers, what they belong to stays one step. They are all of the first
 * slice, because that shares its round with whatever the caller does before.
 */

const SLICE_MS = 1;
const SLICE_PIECES = 8;

/**
 * Works through the pieces, the first `atOnce` of them at once; resolves to their number. What the caller does then is not
 * part of the last of several slices.
 */
export async function inSlices(pieces: Iterable<unknown>, atOnce = SLICE_PIECES): Promise<number> {
  let count = 0;
  let startMs = performance.now();
  let lastMs = startMs;
  // What a piece is does not matter: the work is done by the iterator.
  for (const _ of pieces) {
    count++;
    const pieceMs = performance.now() - lastMs;
    lastMs += pieceMs;
    // The next piece takes about as long as this one.
    if (count < atOnce || (count > atOnce && lastMs - startMs + pieceMs < SLICE_MS)) continue;
    await ownRound();
    lastMs = startMs = performance.now();
  }
  if (count > atOnce) await ownRound();
  return count;
}

/** The same; resolves to what the pieces yield. One without a result yields nothing. */
export async function gatherInSlices<T>(pieces: Iterable<T | undefined>, atOnce?: number): Promise<T[]> {
  const found: T[] = [];
  await inSlices(gathering(pieces, found), atOnce);
  return found;
}

function* gathering<T>(pieces: Iterable<T | undefined>, found: T[]): Generator<void> {
  for (const piece of pieces) {
    if (piece !== undefined) found.push(piece);
    yield;
  }
}

/** The tail of the queue. */
let last: Promise<unknown> = Promise.resolve();

/**
 * Steps that each take a millisecond, and their turns. Each gets a round of the event loop that it shares with no
 * other step, so that what a query may have to wait is one step, however many are due.
 * Resolves at the begin of a round that is the caller's, until its next await.
 */
export async function ownRound(): Promise<void> {
  const mine = last.then(() => new Promise((resolve) => setImmediate(resolve)));
  last = mine;
  await mine;
}

/** Characters that are written together. */
const CHUNK_LENGTH = 16_384;

/** Writes what `JSON.stringify` returns, in slices. */
export async function writeJson(value: unknown, write: (text: string) => void): Promise<void> {
  await inSlices(chunks(value, write));
}

function* chunks(value: unknown, write: (text: string) => void): Generator<void> {
  let text = "";
  for (const piece of jsonPieces(value)) {
    text += piece;
    yield;
    if (text.length < CHUNK_LENGTH) continue;
    write(text);
    text = "";
  }
  write(text);
}

/**
 * The JSON of a large value, an element of its lists at a time: to make that of a thousand containers in one go
 * takes several milliseconds, in which nothing else runs.
 * A list gives its elements, an object its members, and the elements of those that are lists.
 */
function* jsonPieces(value: unknown): Generator<string> {
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
