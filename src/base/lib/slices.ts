/**
 * Slices: long work on the answering thread, a millisecond at a time, so that queries are answered in between. The first
 * pieces are always done in one go: with few containers, what they belong to stays one step. They are all of the first
 * slice, because that shares its round with whatever the caller does before.
 */
import { ownRound } from "./own-round.ts";

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
