/**
 * Standing still: waiting on the spot, with the event loop and everybody on it. Only for what takes a moment, and must not be
 * left half done: inside a foreign namespace, or between two looks at a file.
 */
const NOBODY_WAKES = new Int32Array(new SharedArrayBuffer(4));

export function sleepSync(ms: number): void {
  Atomics.wait(NOBODY_WAKES, 0, 0, ms);
}
