// Owns a client under load inside a container's namespace, and what became of its queries.

import { fileURLToPath } from "node:url";

import type { NetworkPlace } from "../rig/netns.ts";
import { stdoutOf } from "../program/command.ts";

export type LoadReport = {
  readonly asked: number;
  readonly answered: number;
  // By the milliseconds of the epoch at which the query was sent.
  readonly failures: readonly { readonly atMs: number; readonly how: string }[];
};

export type LoadOptions = {
  readonly name: string;
  readonly perSecond: number;
  readonly forMs: number;
  // One socket for all queries instead of one for each.
  readonly isKept?: boolean;
};

const PROGRAM = fileURLToPath(new URL("./load-main.js", import.meta.url));

export async function load(place: NetworkPlace, options: LoadOptions): Promise<LoadReport> {
  const { name, perSecond, forMs, isKept = false } = options;
  const args = [PROGRAM, name, String(perSecond), String(forMs), isKept ? "kept" : "fresh"];
  return JSON.parse(stdoutOf(await place.enter(process.execPath, args), "load")) as LoadReport;
}

// How many of each kind, for messages: "ECONNREFUSED: 3, timeout: 1".
export function failuresAfter(report: LoadReport, momentMs: number): string[] {
  return report.failures
    .filter(({ atMs }) => atMs > momentMs)
    .map(({ atMs, how }) => `${how} at +${atMs - momentMs} ms`);
}
