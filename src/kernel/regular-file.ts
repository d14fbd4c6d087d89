/**
 * Plain file: the one way to open a file in a place that somebody else decides about. It is looked at before it is opened,
 * because opening a pipe waits and opening a device may do anything; and it is opened without waiting, because whoever
 * holds a write lease on it (fcntl(2), no capability needed) would otherwise keep us for 45 seconds. What is read has a
 * bound. A file system that waits for a server or for a program (NFS, FUSE) is not asked from here: see far-file.ts.
 */
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";

import { codeOf } from "../base/lib/fault.ts";
import { O_PATH } from "./libc.ts";

/** Finds the place, with the flags of open(2). Throws where there is none. */
export type FindFile = (flags: number) => number;

/** `use` gets a path that leads to that very file as long as it runs. */
export function withRegularFile<T>(find: FindFile, use: (path: string) => T): T {
  const fd = find(O_PATH);
  try {
    if (!fstatSync(fd).isFile()) throw new Error("It is not a regular file");
    return use(`/proc/self/fd/${fd}`);
  } finally {
    closeSync(fd);
  }
}

/** A descriptor of the file. A lease is broken by trying: its holder is told, and after 45 seconds it is gone. */
export function openRegular(find: FindFile, flags: number): number {
  return withRegularFile(find, (path) => openSync(path, flags | constants.O_NONBLOCK));
}

/** The first bytes of the file. */
export function readRegular(find: FindFile, bytesMax: number): Buffer {
  const fd = openRegular(find, constants.O_RDONLY);
  try {
    // Some file systems do not tell how long a file is.
    const bytes = Buffer.alloc(Math.min(bytesMax, fstatSync(fd).size || bytesMax));
    return bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, 0));
  } finally {
    closeSync(fd);
  }
}

/** Whether it failed because somebody holds a lease on the file: it is there, and can be read later. */
export function isLeased(error: unknown): boolean {
  return codeOf(error) === "EAGAIN" || codeOf(error) === "EWOULDBLOCK";
}
