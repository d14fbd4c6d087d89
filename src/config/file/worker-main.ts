/**
 * WorkerMain: the thread that reads a settings file, or a folder, for `worker.ts`.
 */
import { parentPort, workerData } from "node:worker_threads";

import { BadSettings } from "../bad-settings.ts";
import type { Key } from "../settings-table.ts";
import { readKubeconfig } from "./kubeconfig.ts";
import { readDnsmasqFolder, readKubeDnsFolder } from "./named-folders.ts";
import { readRecordsFolder } from "./records-files.ts";
import { readSettingsFile } from "./settings-file.ts";
import type { WorkerJob, WorkerResult } from "./worker.ts";

async function read({ kind, path, context }: WorkerJob): Promise<WorkerResult> {
  try {
    if (kind === "records") return { files: await readRecordsFolder(path) };
    if (kind === "kubeconfig") return await readKubeconfig(path, context);
    if (kind === "dnsmasq") return await readDnsmasqFolder(path);
    if (kind === "kube-dns") return await readKubeDnsFolder(path);
    const { values, where } = await readSettingsFile(path);
    return { values, places: Object.fromEntries(Object.keys(values).map((key) => [key, where(key as Key)])) };
  } catch (error) {
    if (error instanceof BadSettings) return { mistakes: error.lines, count: error.count };
    throw error;
  }
}

parentPort?.postMessage(await read(workerData as WorkerJob));
