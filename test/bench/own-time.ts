// Wall-clock time of this thread without the time it waited for a CPU, as the scheduler reports it. It separates our own stalls
// from those of a busy machine.

import { openSync, readSync } from "node:fs";

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
