// CPU time of a process: user and system time in the kernel's accounting, including children that have ended, because
// some name servers fork for a connection.

import { readFileSync } from "node:fs";

const CLOCK_TICKS = 100;

export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / CLOCK_TICKS;
}
