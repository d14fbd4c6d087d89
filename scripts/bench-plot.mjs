// @ts-check
/**
 * Plots the results of the last `make bench` as self-contained SVGs for light and dark pages, one bar for each server: all
 * of them beside dns11, and all of them beside the kernel. Usage: bench-plot.mjs [FOLDER]
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { BENCH_FILE, readBenchReport } from "./docs/bench-report.mjs";

/** @typedef {import("./docs/bench-report.mjs").Line} Line */
/** @typedef {{ column: string, title: string, show: (value: number) => string }} Panel */
/** @typedef {{ file: string, title: string, ours: string, rows: readonly string[], panels: readonly Panel[], lines: readonly Line[] }} Plot */

const OUT = process.argv[2] ?? fileURLToPath(new URL("../.cache", import.meta.url));
const SPEED = { column: "perSecond", title: "queries per second, more is better", show: thousands };
const [CPU, HALF, NEARLY_ALL] = [
  { column: "cpuMicros", title: "CPU per query in microseconds, less is better", show: tenths },
  { column: "p50Ms", title: "p50 in microseconds, less is better", show: micros },
  { column: "p99Ms", title: "p99 in microseconds, less is better", show: micros },
];

const [NAME_WIDTH, BAR_WIDTH, VALUE_WIDTH, GAP] = [140, 210, 60, 20];
const [BAR_HEIGHT, BAR_STEP, HEAD_HEIGHT, MARGIN] = [12, 17, 30, 14];
const PANEL_WIDTH = BAR_WIDTH + VALUE_WIDTH + GAP;
const PANELS = 2;
const WIDTH = MARGIN + NAME_WIDTH + PANELS * PANEL_WIDTH + MARGIN;

const report = readBenchReport();
/** @type {readonly Plot[]} */
const PLOTS = [
  {
    file: "benchmarks.svg",
    title: "dns11 beside other resolvers",
    ours: "dns11",
    rows: [
      "container name, A",
      "forwarded, cache hit",
      "forwarded, cache miss",
      "container name, A, by TCP",
      "container name, A, 100 containers in turn",
    ],
    panels: [SPEED, CPU],
    lines: report.lines,
  },
  {
    file: "kernel-answers.svg",
    title: "Names answered by the kernel, by the process and by others",
    ours: "kernel",
    rows: [
      "container name, A",
      "container name, A, lean asker on each core",
      "container name, AAAA: no data",
      "container address, PTR",
      "container name of 10,000, A",
      "container name, A, 100 containers in turn",
      "container name, A, one at a time",
      "neighbour at 100 queries/s: flood of container names, lean asker",
      "neighbour at 100 queries/s: flood of cache misses, lean asker",
    ],
    panels: [SPEED, CPU, HALF, NEARLY_ALL],
    lines: report.kernelLines ?? [],
  },
];
const drawable = PLOTS.filter((plot) => rowsOf(plot).length > 0);
if (drawable.length === 0) fail(`${BENCH_FILE} has none of the rows to plot; run make bench without ONLY`);
for (const plot of drawable) {
  const file = join(OUT, plot.file);
  writeFileSync(file, svg(plot));
  console.log(`bench-plot: ${file}`);
}

/** @returns {never} */
function fail(/** @type {string} */ what) {
  console.error(`bench-plot: ${what}`);
  process.exit(1);
}

/** @returns {string[]} */
function rowsOf(/** @type {Plot} */ plot) {
  return plot.rows.filter((row) => linesOf(plot, row).length > 0);
}

/** @returns {Line[]} */
function linesOf(/** @type {Plot} */ { lines }, /** @type {string} */ row) {
  return lines.filter((line) => line.row === row);
}

function svg(/** @type {Plot} */ plot) {
  let y = MARGIN;
  /** @type {string[]} */
  const parts = [];
  for (const row of rowsOf(plot)) {
    parts.push(...head(plot, row, y));
    y += HEAD_HEIGHT;
    for (const line of linesOf(plot, row)) {
      parts.push(...bars(plot, line, y));
      y += BAR_STEP;
    }
    y += BAR_STEP;
  }
  const { node, kernel, cores, load } = report;
  parts.push(
    text(
      "small",
      MARGIN,
      y,
      `Medians of one run. Node ${node}, Linux ${kernel}, ${cores} cores, load ${load.toFixed(1)}.`,
    ),
  );
  const height = y + MARGIN;
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img">`,
    `<title>${plot.title}</title>`,
    style(),
    ...parts,
    "</svg>",
  ].join("\n")}\n`;
}

/** No background: text and bars follow the reader's colour scheme and are readable on both. */
function style() {
  return `<style>
text { font: 12px sans-serif; fill: #57606a; }
.row { font-weight: bold; fill: #1f2328; }
.small { font-size: 11px; }
.bar { fill: #afb8c1; }
.ours { fill: #0969da; }
@media (prefers-color-scheme: dark) {
  text { fill: #9198a1; }
  .row { fill: #e6edf3; }
  .bar { fill: #545d68; }
  .ours { fill: #4493f8; }
}
</style>`;
}

/** Of those that the row has, as many as there is room for. */
function panelsOf(/** @type {Plot} */ plot, /** @type {string} */ row) {
  const columns = new Set(linesOf(plot, row).flatMap((line) => Object.keys(line.columns)));
  return plot.panels.filter(({ column }) => columns.has(column)).slice(0, PANELS);
}

function head(/** @type {Plot} */ plot, /** @type {string} */ row, /** @type {number} */ y) {
  const titles = panelsOf(plot, row).map(({ title }, index) => text("small", panelX(index), y + 24, title));
  return [text("row", MARGIN, y + 8, row), ...titles];
}

function bars(/** @type {Plot} */ plot, /** @type {Line} */ line, /** @type {number} */ y) {
  const name = text(line.server === plot.ours ? "row" : "name", MARGIN, y + BAR_HEIGHT - 2, line.server);
  const drawnBars = panelsOf(plot, line.row).flatMap(({ column, show }, index) => {
    const value = line.columns[column]?.median;
    if (value === undefined) return [];
    const most = Math.max(...linesOf(plot, line.row).map((other) => other.columns[column]?.median ?? 0));
    const width = Math.max(1, (value / most) * BAR_WIDTH);
    const x = panelX(index);
    const kind = line.server === plot.ours ? "ours" : "bar";
    return [
      `<rect class="${kind}" x="${x}" y="${y}" width="${width.toFixed(1)}" height="${BAR_HEIGHT}"/>`,
      text("name", x + width + 6, y + BAR_HEIGHT - 2, show(value)),
    ];
  });
  return [name, ...drawnBars];
}

function panelX(/** @type {number} */ index) {
  return MARGIN + NAME_WIDTH + index * PANEL_WIDTH;
}

function text(
  /** @type {string} */ kind,
  /** @type {number} */ x,
  /** @type {number} */ y,
  /** @type {string} */ words,
) {
  const safe = words.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  return `<text class="${kind}" x="${x.toFixed(1)}" y="${y}">${safe}</text>`;
}

function thousands(/** @type {number} */ value) {
  return `${(value / 1000).toFixed(value < 10_000 ? 1 : 0)} k`;
}

function tenths(/** @type {number} */ value) {
  return value.toFixed(value < 100 ? 1 : 0);
}

function micros(/** @type {number} */ ms) {
  return (ms * 1000).toFixed(0);
}
