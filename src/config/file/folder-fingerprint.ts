/**
 * FolderFingerprint: a text that differs where a file of a folder has changed, come or gone.
 */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";

import { reasonOf } from "../../base/lib/fault.ts";
import { LIMITS } from "../../base/limits.ts";

export async function fingerprintOf(folder: string): Promise<string> {
  try {
    const names = (await readdir(folder)).toSorted().slice(0, LIMITS.recordsFiles + 1);
    const files = await Promise.all(names.map(async (name) => await fileFingerprint(join(folder, name))));
    return `${names.join("/")} ${files.join(" ")}`;
  } catch (error) {
    return reasonOf(error);
  }
}

async function fileFingerprint(path: string): Promise<string> {
  try {
    const { ino, size, mtimeMs, ctimeMs, mode } = await stat(path);
    return [ino, size, mtimeMs, ctimeMs, mode].join(":");
  } catch (error) {
    return reasonOf(error);
  }
}
