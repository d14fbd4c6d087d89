// Clock of a run. The kernel's monotonic clock is the same in every process and cannot be set, so times of probes and
// faults are comparable.

const NS_PER_US = 1_000n;
const US_PER_MS = 1_000;

export function monotonicMs(): number {
  return Number(process.hrtime.bigint() / NS_PER_US) / US_PER_MS;
}
