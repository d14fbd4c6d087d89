// Owns a process that reads one file over and over, as a C library does: opened anew each time, one read. It reports at
// the end of its input what it found: how many reads there were, and the texts that named no server. Arguments: the file.

import { closeSync, openSync, readSync } from "node:fs";

export interface PollReport {
  readonly reads: number;
  readonly withoutServer: readonly string[];
}

const READS_A_TURN = 500;
// To a C library a line is over where a zero is.
const SERVER = /^nameserver \d+\.\d+\.\d+\.\d+[ \n\0]/m;

const [path = ""] = process.argv.slice(2);
const bytes = Buffer.alloc(4096);
const withoutServer: string[] = [];
let reads = 0;
let isOver = false;

function readOnce(): void {
  const fd = openSync(path, "r");
  const length = readSync(fd, bytes, 0, bytes.length, 0);
  closeSync(fd);
  reads += 1;
  const text = bytes.toString("latin1", 0, length);
  if (!SERVER.test(`${text}\n`)) withoutServer.push(text);
}

function poll(): void {
  for (let count = 0; count < READS_A_TURN; count++) readOnce();
  if (!isOver) {
    setImmediate(poll);
    return;
  }
  const report: PollReport = { reads, withoutServer: withoutServer.slice(0, 10) };
  process.stdout.write(`${JSON.stringify(report)}\n`);
}

process.stdin.resume().on("end", () => (isOver = true));
process.stdout.write("ready\n");
poll();
