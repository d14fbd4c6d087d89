// Wall-clock time of this thread without the time it waited for a CPU, as the scheduler reports it, and its processor time.
// They separate our own stalls from those of a busy machine.

import { openSync, readSync } from "node:fs";

import koffi from "koffi";

const NANO_PER_MILLI = 1e6;
const FIELDS = 80;
const text = Buffer.alloc(FIELDS);
let fd = -1;

export function ownMs(): number {
  if (fd === -1) fd = openSync(`/proc/self/task/${process.pid}/schedstat`, "r");
  const length = readSync(fd, text, 0, FIELDS, 0);
  const [, waited] = text.toString("latin1", 0, length).split(" ");
  return performance.now() - Number(waited) / NANO_PER_MILLI;
}

const CLOCK_THREAD_CPUTIME_ID = 3;
const clockGettime = koffi.load(null).func("int clock_gettime(int clock, void *time)") as (
  clock: number,
  time: Uint8Array,
) => number;
const time = Buffer.alloc(16);

// Processor time of this thread: what it asked for itself, in the kernel as well.
export function cpuMs(): number {
  clockGettime(CLOCK_THREAD_CPUTIME_ID, time);
  return Number(time.readBigInt64LE(0)) * 1_000 + Number(time.readBigInt64LE(8)) / NANO_PER_MILLI;
}
