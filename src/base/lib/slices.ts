/**
 * Slices: long work on the answering thread, a millisecond at a time, so that queries are answered in between. The first pieces are always
 * done at once: with few containers, the work that they belong to stays one step. The first slice has no other pieces, because it shares
 * its turn of the event loop with what the caller does before.
 */

const SLICE_MS = 1;
const SLICE_PIECES = 8;

/**
 * Works through the pieces, the first `atOnce` of them at once; resolves to their number. After several slices the caller goes on in a turn
 * of the event loop that is not that of the last slice.
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
    await ownSlice();
    lastMs = startMs = performance.now();
  }
  if (count > atOnce) await ownSlice();
  return count;
}

/** Works through the pieces; resolves to what they yield. A piece without a result yields nothing. */
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

/** The last step in the queue. */
let last: Promise<unknown> = Promise.resolve();

/**
 * Queues a step that takes a millisecond. Each step gets a turn of the event loop that it shares with no other step, so a query has to wait
 * for one step at most, however many are due. Resolves at the beginning of that turn; the step ends with its next await.
 */
export async function ownSlice(): Promise<void> {
  const mine = last.then(() => new Promise((resolve) => setImmediate(resolve)));
  last = mine;
  await mine;
}

/** The number of characters that are written together. */
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
 * The JSON of a large value, one element of its lists at a time: making the JSON of a thousand containers at once takes several
 * milliseconds, in which nothing else runs. A list is split into its elements, and an object into its members and the elements of members
 * that are lists.
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
