/**
 * Slices: long work on the answering thread, a millisecond at a time, so that queries are answered in between. The first
 * pieces are always done in one go: with few containers, what they belong to stays one step.
 */

const SLICE_MS = 1;
const SLICE_PIECES = 8;

/** Works through the pieces, the first slice at once; resolves to their number. `atOnce` are always done in one go. */
export async function inSlices(pieces: Iterable<unknown>, atOnce = SLICE_PIECES): Promise<number> {
  let count = 0;
  let [startMs, start] = [performance.now(), 0];
  // What a piece is does not matter: the work is done by the iterator.
  for (const _ of pieces) {
    count++;
    if (count - start < atOnce || performance.now() - startMs < SLICE_MS) continue;
    await new Promise((resolve) => setImmediate(resolve));
    [startMs, start] = [performance.now(), count];
  }
  return count;
}
