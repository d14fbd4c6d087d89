// Process that reads a file over and over as a C library does: one open and one read each time. When its input ends it
// reports the number of reads and the contents that had no nameserver. Argument: the file.

import { closeSync, openSync, readSync } from "node:fs";

export interface PollReport {
  readonly reads: number;
  readonly withoutServer: readonly string[];
}

const READS_A_TURN = 500;
// For a C library a zero octet ends the line.
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
