// Owns what a run of the bench found, as data: for --json, and in a file for whoever draws it (make bench-plot).

import { mkdirSync, writeFileSync } from "node:fs";
import { cpus, loadavg, release } from "node:os";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";

import type { Row } from "./figures.ts";
import type { Line } from "./tally.ts";
import type { Ratio } from "./targets.ts";

export type Report = {
  readonly at: string;
  readonly node: string;
  readonly kernel: string;
  readonly cores: number;
  // Of the machine in the minute before: with anything but little, the figures are of something else.
  readonly load: number;
  // Of the data plane.
  readonly lines: readonly Line[];
  readonly ratios: readonly Ratio[];
  // Of everything else.
  readonly rows: readonly Row[];
};

const FILE = fileURLToPath(new URL("../../../.cache/bench.json", import.meta.url));

type Machine = Omit<Report, "lines" | "ratios" | "rows">;

export function thisMachine(): Machine {
  return {
    at: new Date().toISOString(),
    node: process.version,
    kernel: release(),
    cores: cpus().length,
    load: loadavg()[0] ?? Number.NaN,
  };
}

// The path of the file; that of the last run is replaced.
export function save(report: Report): string {
  mkdirSync(dirname(FILE), { recursive: true });
  writeFileSync(FILE, `${JSON.stringify(report, undefined, 2)}\n`);
  return FILE;
}
