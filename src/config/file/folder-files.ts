/**
 * FolderFiles: the files of a folder whose text decides what names mean: no more than a limit, and none that others may write.
 */
import { access, constants, readdir, stat } from "node:fs/promises";

import { reasonOf } from "../../base/lib/fault.ts";
import { LIMITS } from "../../base/limits.ts";
import { BadSettings } from "../bad-settings.ts";
import { readBytes, textOf } from "./file-text.ts";

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
