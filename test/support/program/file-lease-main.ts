/**
 * Process that keeps other processes from opening a file: it holds a write lease (fcntl(2), F_SETLEASE), which the
 * file's owner may take without capabilities, and ignores the kernel's request to give it up; the kernel breaks it
 * after 45 seconds. Prints "held" once it has the lease. Bounded in time.
 */
import { constants, closeSync, openSync } from "node:fs";
import { setTimeout } from "node:timers/promises";

import koffi from "koffi";

const F_SETLEASE = 1024;
const F_WRLCK = 1;
const TIME_MS = 300_000;
/** The lease is refused while any process has the file open. */
const WAIT_TIMEOUT_MS = 60_000;
const RETRY_MS = 20;

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
  await setTimeout(RETRY_MS);
}
console.log("held");

function isLeased(): boolean {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  if (fcntl(fd, F_SETLEASE, F_WRLCK) === 0) return true;
  closeSync(fd);
  return false;
}
