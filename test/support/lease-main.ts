// Somebody who keeps a file from being opened: holds a write lease on it (fcntl(2), F_SETLEASE), which takes no capability
// of whoever owns the file, ignores the kernel's word that somebody else wants to open it, and takes another lease when the
// kernel has ended the first. Says "held" once it has it. With `once` it takes no other. Bounded in time.

import { constants, closeSync, openSync } from "node:fs";

import koffi from "koffi";

const F_SETLEASE = 1024;
const F_WRLCK = 1;
const TIME_MS = 300_000;
const AGAIN_MS = 1;
/** A file that somebody has open gives no lease. */
const FIRST_MS = 10_000;

const [path = "", how = ""] = process.argv.slice(2);
const fcntl = koffi.load(null).func("int fcntl(int fd, int command, long argument)") as (
  fd: number,
  command: number,
  argument: number,
) => number;

process.on("SIGIO", () => undefined);
setTimeout(() => process.exit(0), TIME_MS);
const startMs = performance.now();
let fd = -1;
while (fd < 0) {
  fd = lease();
  if (performance.now() - startMs > FIRST_MS) process.exit(1);
}
console.log("held");
if (how !== "once") {
  setInterval(() => {
    // The kernel says so of a lease that it has ended, and of one that is still there.
    if (fcntl(fd, F_SETLEASE, F_WRLCK) === 0) return;
    closeSync(fd);
    do fd = lease();
    while (fd < 0);
  }, AGAIN_MS);
}

function lease(): number {
  const opened = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  if (fcntl(opened, F_SETLEASE, F_WRLCK) === 0) return opened;
  closeSync(opened);
  return -1;
}
