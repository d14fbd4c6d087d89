/**
 * Apart: the settings file is read in a thread of its own. The packages that read it take 15 MB, which go with the thread,
 * and nobody's query waits for a long file.
 */
import { Worker } from "node:worker_threads";

import { BadSettings } from "../bad-settings.ts";
import type { Key, SettingsLayer, LayerValues } from "../settings-layer.ts";

/** What the thread tells: a Fault would arrive as any Error. */
export type WorkerResult =
  | { readonly said: LayerValues; readonly places: Readonly<Record<string, string>> }
  | { readonly mistakes: readonly string[]; readonly count: number };

/** More than the largest file takes. */
const READING_MS_MAX = 30_000;
const MEMORY_MB_MAX = 512;

/** Throws a Fault that names every mistake. */
export async function readSettingsInWorker(path: string): Promise<SettingsLayer> {
  const worker = new Worker(new URL("./apart-main.js", import.meta.url), {
    workerData: path,
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB_MAX },
  });
  let timer: NodeJS.Timeout | undefined;
  try {
    const told = await new Promise<WorkerResult>((resolve, reject) => {
      worker.once("message", resolve);
      worker.once("error", reject);
      timer = setTimeout(() => reject(new BadSettings([`${path}: takes too long to read`])), READING_MS_MAX);
    });
    if ("mistakes" in told) throw new BadSettings(told.mistakes, told.count);
    return { source: "file", values: told.said, where: (key: Key) => told.places[key] ?? path };
  } finally {
    clearTimeout(timer);
    await worker.terminate();
  }
}
