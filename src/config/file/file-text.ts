/**
 * FileText: reads a file that the operator wrote, within a limit. A path may turn out to be a pipe or a device.
 */
import { constants } from "node:fs";
import { open, stat } from "node:fs/promises";

import { reasonOf } from "../../base/lib/fault.ts";
import { BadSettings } from "../bad-settings.ts";

const MIB = 1024 * 1024;

/** The bytes of a regular file of at most `bytesMax`. Throws a Fault that says what is wrong. */
export async function readBytes(path: string, bytesMax: number): Promise<Uint8Array> {
  try {
    // Without O_NONBLOCK, opening a pipe without a writer would block forever.
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    if (!(await file.stat()).isFile()) throw new Error("it is not a regular file");
    const bytes = Buffer.alloc(bytesMax + 1);
    let length = 0;
    for (;;) {
      const { bytesRead } = await file.read(bytes, length, bytes.length - length);
      if (bytesRead === 0) return bytes.subarray(0, length);
      length += bytesRead;
      if (length > bytesMax) throw new Error(`it is larger than ${bytesMax / MIB} MB`);
    }
  } catch (error) {
    throw new BadSettings([`${path}: cannot be read: ${reasonOf(error)}`]);
  }
}

export function textOf(bytes: Uint8Array, path: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new BadSettings([`${path}: is not valid UTF-8`]);
  }
}

/** Differs when one of the files has been written or replaced; a missing one counts as such. */
export async function fingerprintOf(paths: readonly string[]): Promise<string> {
  const all = paths.map(async (path) => {
    try {
      const { ino, size, mtimeMs } = await stat(path);
      return `${ino} ${size} ${mtimeMs}`;
    } catch {
      return "missing";
    }
  });
  return (await Promise.all(all)).join(", ");
}
