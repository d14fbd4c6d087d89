/**
 * Blocks the thread, and with it the event loop. Only for short waits in work that must not be interrupted: inside a
 * container's namespace, or between two reads of a file.
 */
const NEVER_NOTIFIED = new Int32Array(new SharedArrayBuffer(4));

export function sleepSync(ms: number): void {
  Atomics.wait(NEVER_NOTIFIED, 0, 0, ms);
}
