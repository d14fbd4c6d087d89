// The time that this thread took for itself: the wall clock without what the kernel's scheduler kept it waiting for a
// processor. So a stall of ours is told from a busy machine's.

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
