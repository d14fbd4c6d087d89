/**
 * RegularFile: the one way to open a file at a path that a container controls. The type is checked before opening,
 * because opening a pipe blocks and opening a device may do anything. It is opened non-blocking, because a process with
 * a write lease on it (fcntl(2), no capability needed) would otherwise block us for 45 seconds. Reads have a size
 * limit. File systems that wait for a server or a program (NFS, FUSE) are not accessed here.
 */
import { closeSync, constants, fstatSync, openSync, readSync, watch } from "node:fs";

import { codeOf } from "../base/lib/fault.ts";
import { O_PATH } from "./libc.ts";

/** Opens the path, with the flags of open(2); throws if that fails. */
export type FindFile = (flags: number) => number;

/** `use` gets a path that refers to that very file while it runs. */
function withRegularFile<T>(find: FindFile, use: (path: string) => T): T {
  const fd = find(O_PATH);
  try {
    if (!fstatSync(fd).isFile()) throw new Error("not a regular file");
    return use(`/proc/self/fd/${fd}`);
  } finally {
    closeSync(fd);
  }
}

/**
 * A descriptor of the file. Trying to open it breaks a lease: its holder is notified, and has to release it within 45
 * seconds.
 */
export function openRegular(find: FindFile, flags: number): number {
  return withRegularFile(find, (path) => openSync(path, flags | constants.O_NONBLOCK));
}

/** The first bytes of the file. */
export function readRegular(find: FindFile, bytesMax: number): Buffer {
  const fd = openRegular(find, constants.O_RDONLY);
  try {
    // Some file systems report no file size.
    const bytes = Buffer.alloc(Math.min(bytesMax, fstatSync(fd).size || bytesMax));
    return bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, 0));
  } finally {
    closeSync(fd);
  }
}

/**
 * Calls `onWrite` for the next write to the file, and then stops watching, because a container may write 200,000 times a second. Returns a
 * function that stops the watch before. If the kernel refuses a watch, `onWrite` is never called.
 */
export function onNextWrite(find: FindFile, onWrite: () => void): () => void {
  try {
    const watcher = withRegularFile(find, (path) => watch(path, { persistent: false }));
    const close = (): void => watcher.close();
    watcher
      .on("error", () => undefined)
      .once("change", close)
      .once("change", onWrite);
    return close;
  } catch {
    return () => undefined;
  }
}

/** Whether opening failed because of a lease on the file: it exists, and can be read later. */
export function isLeased(error: unknown): boolean {
  return codeOf(error) === "EAGAIN" || codeOf(error) === "EWOULDBLOCK";
}
