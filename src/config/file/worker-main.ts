/**
 * WorkerMain: the thread that reads a settings file for `worker.ts`.
 */
import { parentPort, workerData } from "node:worker_threads";

import { BadSettings } from "../bad-settings.ts";
import type { Key } from "../settings-layer.ts";
import type { WorkerResult } from "./worker.ts";
import { readSettingsFile } from "./settings-file.ts";

async function read(path: string): Promise<WorkerResult> {
  try {
    const { values, where } = await readSettingsFile(path);
    return { values, places: Object.fromEntries(Object.keys(values).map((key) => [key, where(key as Key)])) };
  } catch (error) {
    if (error instanceof BadSettings) return { mistakes: error.lines, count: error.count };
    throw error;
  }
}

parentPort?.postMessage(await read(workerData as string));
