/**
 * Files that the operator wrote, within limits: a path may turn out to be a pipe or a device, and what decides what names mean is
 * refused where others may write it. A fingerprint of them differs where they have changed.
 */
import { access, constants, open, readdir, stat } from "node:fs/promises";
import { join } from "node:path";

import { reasonOf } from "../../base/lib/fault.ts";
import { LIMITS } from "../../base/limits.ts";
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

const OTHERS_MAY_WRITE = 0o002;

/** The names in a folder, sorted. Throws a Fault that says what is wrong. */
export async function listFolder(folder: string, ignored: RegExp): Promise<string[]> {
  let names;
  try {
    names = (await readdir(folder)).filter((name) => !ignored.test(name)).toSorted();
    await refuseForeignWriters(folder);
  } catch (error) {
    throw new BadSettings([`${folder}: cannot be read: ${reasonOf(error)}`]);
  }
  if (names.length <= LIMITS.recordsFiles) return names;
  throw new BadSettings([`${folder}: has ${names.length} files: use at most ${LIMITS.recordsFiles}`]);
}

/** Throws a Fault that says what is wrong. */
export async function readOwnText(path: string): Promise<string> {
  await refuseForeignWriters(path).catch((error: unknown) => {
    throw new BadSettings([`${path}: cannot be read: ${reasonOf(error)}`]);
  });
  return textOf(await readBytes(path, LIMITS.recordsFileBytes), path);
}

/** Who can write the file decides what names mean in all containers. */
async function refuseForeignWriters(path: string): Promise<void> {
  const { mode } = await stat(path);
  if ((mode & OTHERS_MAY_WRITE) === 0 || (await isReadOnly(path))) return;
  throw new Error(`every user may write it: chmod o-w ${path}`);
}

/** Whether it is mounted read-only, as Kubernetes mounts a ConfigMap: with mode 777. */
async function isReadOnly(path: string): Promise<boolean> {
  try {
    await access(path, constants.W_OK);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EROFS";
  }
}

/** Differs when one of the files has been written or replaced; a missing one counts as such. */
export async function fingerprintOfFiles(paths: readonly string[]): Promise<string> {
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

/** Differs where a file of the folder has changed, come or gone. */
export async function fingerprintOfFolder(folder: string): Promise<string> {
  try {
    const names = (await readdir(folder)).toSorted().slice(0, LIMITS.recordsFiles + 1);
    const files = await Promise.all(names.map(async (name) => await fingerprintIn(join(folder, name))));
    return `${names.join("/")} ${files.join(" ")}`;
  } catch (error) {
    return reasonOf(error);
  }
}

async function fingerprintIn(path: string): Promise<string> {
  try {
    const { ino, size, mtimeMs, ctimeMs, mode } = await stat(path);
    return [ino, size, mtimeMs, ctimeMs, mode].join(":");
  } catch (error) {
    return reasonOf(error);
  }
}
