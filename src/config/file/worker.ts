/**
 * Worker: reads the settings file in its own thread. The packages for it take 15 MB, which are freed with the thread,
 * and a long file does not delay queries.
 */
import { Worker } from "node:worker_threads";

import { BadSettings } from "../bad-settings.ts";
import type { Key, SettingsLayer, LayerValues } from "../settings-layer.ts";

/** The message of the thread. A thrown Fault would lose its class on the way. */
export type WorkerResult =
  | { readonly values: LayerValues; readonly places: Readonly<Record<string, string>> }
  | { readonly mistakes: readonly string[]; readonly count: number };

/** More than the largest file needs. */
const READING_MS_MAX = 30_000;
const MEMORY_MB_MAX = 512;

/** Throws a Fault that lists every mistake. */
export async function readSettingsInWorker(path: string): Promise<SettingsLayer> {
  const worker = new Worker(new URL("./worker-main.js", import.meta.url), {
    workerData: path,
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB_MAX },
  });
  let timer: NodeJS.Timeout | undefined;
  try {
    const result = await new Promise<WorkerResult>((resolve, reject) => {
      worker.once("message", resolve);
      worker.once("error", reject);
      timer = setTimeout(() => reject(new BadSettings([`${path}: reading takes too long`])), READING_MS_MAX);
    });
    if ("mistakes" in result) throw new BadSettings(result.mistakes, result.count);
    return { source: "file", values: result.values, where: (key: Key) => result.places[key] ?? path };
  } finally {
    clearTimeout(timer);
    await worker.terminate();
  }
}
