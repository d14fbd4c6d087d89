/**
 * Worker: reads the settings file, and folders that settings name, in a thread of their own. A long file does not delay queries, one
 * that exhausts memory or time ends the thread alone, and the 8 MB of the parser of YAML are freed with it.
 */
import { Worker } from "node:worker_threads";

import type { ComposeProjectText } from "../../base/model/compose.ts";
import { BadSettings } from "../bad-settings.ts";
import type { LayerValues, SettingsLayer } from "../layers.ts";
import type { Key } from "../keys.ts";

export interface WorkerJob {
  readonly kind: "settings" | "document" | "compose" | "folder";
  /** Of a Compose project, the folder below which its files are. */
  readonly path: string;
  readonly files?: readonly string[];
  /** Of a folder, the setting that names it. */
  readonly setting?: string;
  /** Of a document. */
  readonly bytesMax?: number;
}

interface SettingsRead {
  readonly values: LayerValues;
  readonly places: Readonly<Record<string, string>>;
}

interface FolderRead {
  readonly folder: object;
}

interface DocumentRead {
  readonly document: unknown;
}

interface NotRead {
  readonly mistakes: readonly string[];
  readonly count: number;
}

/** The message of the thread. A thrown Fault would lose its class on the way. */
export type WorkerResult = SettingsRead | FolderRead | DocumentRead | ComposeProjectText | NotRead;

/** More than the largest files need on a busy machine. */
const READING_MS_MAX = 180_000;
const MEMORY_MB_MAX = 512;

/** Throws a Fault that lists every mistake. */
export async function readSettingsInWorker(path: string): Promise<SettingsLayer> {
  const { values, places } = await readInWorker<SettingsRead>({ kind: "settings", path });
  return { source: "file", values, where: (key: Key) => places[key] ?? path };
}

/** As the feature reads it whose setting names it. Throws a Fault that lists every mistake. */
export async function readFolderInWorker<T extends object>(key: string, path: string): Promise<T> {
  const { folder } = await readInWorker<FolderRead>({ kind: "folder", setting: key, path });
  return folder as T;
}

/** The value that a YAML file stands for. Throws a Fault that says what is wrong. */
export async function readDocumentInWorker(path: string, bytesMax: number): Promise<unknown> {
  return (await readInWorker<DocumentRead>({ kind: "document", path, bytesMax })).document;
}

/** What the files of a Compose project say; their paths are below `root`. */
export async function readComposeInWorker(
  files: readonly string[],
  root: string,
  waitMs: number,
): Promise<ComposeProjectText> {
  return await readInWorker<ComposeProjectText>({ kind: "compose", path: root, files }, waitMs);
}

async function readInWorker<T extends WorkerResult>(job: WorkerJob, waitMs = READING_MS_MAX): Promise<T> {
  const worker = new Worker(new URL("./worker-main.js", import.meta.url), {
    workerData: job,
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB_MAX },
  });
  let timer: NodeJS.Timeout | undefined;
  try {
    const result = await new Promise<T | NotRead>((resolve, reject) => {
      worker.once("message", resolve);
      worker.once("error", reject);
      timer = setTimeout(() => reject(new BadSettings([`${job.path}: reading takes too long`])), waitMs);
    });
    if ("mistakes" in result) throw new BadSettings(result.mistakes, result.count);
    return result;
  } finally {
    clearTimeout(timer);
    await worker.terminate();
  }
}
