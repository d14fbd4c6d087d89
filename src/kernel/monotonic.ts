/**
 * The kernel's monotonic clock (CLOCK_MONOTONIC), on which its programs keep time. That of `performance.now` begins with this
 * process.
 */
const NS_PER_MS = 1_000_000;
const startNs = Number(process.hrtime.bigint()) - performance.now() * NS_PER_MS;

/** Exact to a few nanoseconds in the first hundred days of the machine, and to a microsecond for ever. */
export function monotonicNs(): number {
  return startNs + performance.now() * NS_PER_MS;
}
