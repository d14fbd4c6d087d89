/**
 * WorkerMain: the thread that reads a settings file, or a folder, for `worker.ts`.
 */
import { parentPort, workerData } from "node:worker_threads";

import { BadSettings } from "../bad-settings.ts";
import type { Key } from "../keys.ts";
import { readComposeProject } from "./compose-file.ts";
import { readDocument } from "./document.ts";
import { readBytes, textOf } from "./files.ts";
import { readFolder } from "./folder-layers.ts";
import { readSettingsFile } from "./settings-file.ts";
import type { WorkerJob, WorkerResult } from "./worker.ts";

async function read({ kind, path, setting = "", files = [], bytesMax = 0 }: WorkerJob): Promise<WorkerResult> {
  try {
    if (kind === "compose") return await readComposeProject(files, path);
    if (kind === "document") return { document: await valueIn(path, bytesMax) };
    if (kind === "folder") return { folder: await readFolder(setting, path) };
    const { values, where } = await readSettingsFile(path);
    return { values, places: Object.fromEntries(Object.keys(values).map((key) => [key, where(key as Key)])) };
  } catch (error) {
    if (error instanceof BadSettings) return { mistakes: error.lines, count: error.count };
    throw error;
  }
}

async function valueIn(path: string, bytesMax: number): Promise<unknown> {
  const { value, mistakes } = readDocument(textOf(await readBytes(path, bytesMax), path));
  const [mistake] = mistakes;
  if (mistake !== undefined) throw new BadSettings([`${path}:${mistake.line}:${mistake.column}: ${mistake.what}`]);
  return value;
}

parentPort?.postMessage(await read(workerData as WorkerJob));
