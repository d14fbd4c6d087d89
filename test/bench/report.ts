// Result of a bench run as data, for --json and in a file for `make bench-plot`.

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
  readonly processor: string;
  // Load average of the last minute: unless it is low, the figures are not meaningful.
  readonly load: number;
  // Docker's version; empty unless servers were compared.
  readonly engine: string;
  // The data plane.
  readonly lines: readonly Line[];
  readonly ratios: readonly Ratio[];
  // The part of answers by the kernel.
  readonly kernelLines: readonly Line[];
  // All other parts.
  readonly rows: readonly Row[];
};

const FILE = fileURLToPath(new URL("../../../.cache/bench.json", import.meta.url));

type Machine = Omit<Report, "engine" | "lines" | "ratios" | "kernelLines" | "rows">;

export function thisMachine(): Machine {
  return {
    at: new Date().toISOString(),
    node: process.version,
    kernel: release(),
    cores: cpus().length,
    processor: cpus()[0]?.model ?? "",
    load: loadavg()[0] ?? Number.NaN,
  };
}

// Returns the path of the file, which replaces that of the previous run.
export function save(report: Report): string {
  mkdirSync(dirname(FILE), { recursive: true });
  writeFileSync(FILE, `${JSON.stringify(report, undefined, 2)}\n`);
  return FILE;
}
