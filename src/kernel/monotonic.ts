/**
 * The kernel's monotonic clock (CLOCK_MONOTONIC), on which its programs keep time. That of `performance.now` begins with this
 * process.
 */
const NS_PER_MS = 1_000_000;
const READINGS = 10;
const startNs = readStart();

/** Exact to a few nanoseconds in the first hundred days of the machine, and to a microsecond for ever. */
export function monotonicNs(): number {
  return startNs + performance.now() * NS_PER_MS;
}

/** Of several readings of both clocks the one that took least: a busy machine may take the processor away between the two. */
function readStart(): number {
  let bestNs = 0n;
  let leastNs: bigint | undefined;
  for (let reading = 0; reading < READINGS; reading++) {
    const beforeNs = process.hrtime.bigint();
    const sinceMs = performance.now();
    const tookNs = process.hrtime.bigint() - beforeNs;
    if (leastNs !== undefined && tookNs >= leastNs) continue;
    leastNs = tookNs;
    bestNs = beforeNs - BigInt(Math.round(sinceMs * NS_PER_MS));
  }
  return Number(bestNs);
}
