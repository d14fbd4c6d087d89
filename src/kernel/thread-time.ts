/**
 * ThreadTime: the time for which the calling thread has had a processor. Node has it for the whole process only, before version 23.
 */
import { bind, must } from "./libc.ts";

const CLOCK_THREAD_CPUTIME_ID = 3;
/** A struct timespec: two 64-bit numbers, seconds and nanoseconds. */
const time = new BigInt64Array(2);
const clockGetTime = bind<(clock: number, time: BigInt64Array) => number>("int clock_gettime(int clock, void *time)");

export function threadMs(): number {
  must(clockGetTime(CLOCK_THREAD_CPUTIME_ID, time), "clock_gettime");
  return Number(time[0]) * 1_000 + Number(time[1]) / 1_000_000;
}
