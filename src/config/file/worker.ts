/**
 * Worker: reads the settings file, and the folder of records, in a thread of their own. The packages for it take 15 MB,
 * which are freed with the thread, and a long file does not delay queries.
 */
import { Worker } from "node:worker_threads";

import type { ClusterAccess } from "../../base/model/cluster-policy.ts";
import { BadSettings } from "../bad-settings.ts";
import type { LayerValues, SettingsLayer } from "../settings-layer.ts";
import type { Key } from "../settings-table.ts";
import type { FolderKind } from "./folder-layers.ts";
import type { FolderSettings } from "./named-folders.ts";
import type { RecordsFile } from "./records-files.ts";

export interface WorkerJob {
  readonly kind: "settings" | "records" | "kubeconfig" | FolderKind;
  readonly path: string;
  /** Of a kubeconfig. */
  readonly context?: string | undefined;
}

interface SettingsRead {
  readonly values: LayerValues;
  readonly places: Readonly<Record<string, string>>;
}

interface RecordsRead {
  readonly files: readonly RecordsFile[];
}

interface NotRead {
  readonly mistakes: readonly string[];
  readonly count: number;
}

/** The message of the thread. A thrown Fault would lose its class on the way. */
export type WorkerResult = SettingsRead | RecordsRead | FolderSettings | ClusterAccess | NotRead;

/** More than the largest files need on a busy machine. */
const READING_MS_MAX = 180_000;
const MEMORY_MB_MAX = 512;

/** Throws a Fault that lists every mistake. */
export async function readSettingsInWorker(path: string): Promise<SettingsLayer> {
  const { values, places } = await readInWorker<SettingsRead>({ kind: "settings", path });
  return { source: "file", values, where: (key: Key) => places[key] ?? path };
}

/** Throws a Fault if the folder cannot be read; the mistakes of each file are in the result. */
export async function readRecordsInWorker(path: string): Promise<readonly RecordsFile[]> {
  const { files } = await readInWorker<RecordsRead>({ kind: "records", path });
  return files;
}

/** Throws a Fault that lists every mistake. */
export async function readFolderInWorker(kind: FolderKind, path: string): Promise<FolderSettings> {
  return await readInWorker<FolderSettings>({ kind, path });
}

/** Throws a Fault that says what is wrong. */
export async function readKubeconfigInWorker(path: string, context: string | undefined): Promise<ClusterAccess> {
  return await readInWorker<ClusterAccess>({ kind: "kubeconfig", path, context });
}

async function readInWorker<T extends WorkerResult>(job: WorkerJob): Promise<T> {
  const worker = new Worker(new URL("./worker-main.js", import.meta.url), {
    workerData: job,
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB_MAX },
  });
  let timer: NodeJS.Timeout | undefined;
  try {
    const result = await new Promise<T | NotRead>((resolve, reject) => {
      worker.once("message", resolve);
      worker.once("error", reject);
      timer = setTimeout(() => reject(new BadSettings([`${job.path}: reading takes too long`])), READING_MS_MAX);
    });
    if ("mistakes" in result) throw new BadSettings(result.mistakes, result.count);
    return result;
  } finally {
    clearTimeout(timer);
    await worker.terminate();
  }
}
