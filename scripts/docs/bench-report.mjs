// @ts-check
/**
 * BenchReport: the result of the last whole `make bench`, which scripts draw and write into the documents.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** @typedef {{ median: number, low: number, high: number }} Spread */
/** @typedef {{ row: string, server: string, columns: Record<string, Spread | undefined> }} Line */
/** @typedef {{ what: string, measured: string }} Row */
/**
 * @typedef {{ at: string, node: string, kernel: string, engine: string, processor: string, cores: number, load: number,
 *   lines: readonly Line[], kernelLines?: readonly Line[], rows: readonly Row[] }} Report
 */

export const BENCH_FILE = fileURLToPath(new URL("../../.cache/bench.json", import.meta.url));

/** @returns {Report} */
export function readBenchReport() {
  try {
    return JSON.parse(readFileSync(BENCH_FILE, "utf8"));
  } catch {
    throw new Error(`cannot read ${BENCH_FILE}; make bench writes it`);
  }
}
