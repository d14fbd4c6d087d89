/**
 * Somebody who keeps a file from being opened: holds a write lease on it (fcntl(2), F_SETLEASE), which takes no capability
 * of whoever owns the file, and ignores the kernel's word that somebody else wants to open it; after 45 seconds the kernel
 * takes it away. Says "held" once it has it. Bounded in time.
 */
import { constants, closeSync, openSync } from "node:fs";
import { setTimeout } from "node:timers/promises";

import koffi from "koffi";

const F_SETLEASE = 1024;
const F_WRLCK = 1;
const TIME_MS = 300_000;
/** A file that somebody has open gives no lease. */
const WAIT_TIMEOUT_MS = 60_000;
const AGAIN_MS = 20;

const [path = ""] = process.argv.slice(2);
const fcntl = koffi.load(null).func("int fcntl(int fd, int command, long argument)") as (
  fd: number,
  command: number,
  argument: number,
) => number;

process.on("SIGIO", () => undefined);
setInterval(() => process.exit(0), TIME_MS);
const startMs = performance.now();
while (!isLeased()) {
  if (performance.now() - startMs > WAIT_TIMEOUT_MS) process.exit(1);
  await setTimeout(AGAIN_MS);
}
console.log("held");

function isLeased(): boolean {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  if (fcntl(fd, F_SETLEASE, F_WRLCK) === 0) return true;
  closeSync(fd);
  return false;
}
