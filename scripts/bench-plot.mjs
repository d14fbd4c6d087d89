// @ts-check
/**
 * Plots the results of the last `make bench` as self-contained SVGs for light and dark pages, one bar for each server: all
 * of them beside dns11, and the kernel beside the process. Usage: bench-plot.mjs [FOLDER]
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** @typedef {{ median: number, low: number, high: number }} Spread */
/** @typedef {{ row: string, server: string, columns: Record<string, Spread | undefined> }} Line */
/** @typedef {{ column: string, title: string, show: (value: number) => string }} Panel */
/** @typedef {{ file: string, title: string, ours: string, rows: readonly string[], panels: readonly Panel[], lines: readonly Line[] }} Plot */

const FILE = fileURLToPath(new URL("../.cache/bench.json", import.meta.url));
const OUT = process.argv[2] ?? fileURLToPath(new URL("../.cache", import.meta.url));
const SPEED = { column: "perSecond", title: "queries per second, more is better", show: thousands };
const [CPU, ALONE] = [
  { column: "cpuMicros", title: "CPU per query in microseconds, less is better", show: tenths },
  { column: "aloneMs", title: "one at a time, microseconds, less is better", show: micros },
];

const [NAME_WIDTH, BAR_WIDTH, VALUE_WIDTH, GAP] = [140, 210, 60, 20];
const [BAR_HEIGHT, BAR_STEP, HEAD_HEIGHT, MARGIN] = [12, 17, 30, 14];
const PANEL_WIDTH = BAR_WIDTH + VALUE_WIDTH + GAP;
const WIDTH = MARGIN + NAME_WIDTH + 2 * PANEL_WIDTH + MARGIN;

const report = read();
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
    title: "Names answered by the kernel and by the process",
    ours: "kernel",
    rows: ["A", "AAAA: no data", "PTR", "HINFO, by the process"],
    panels: [SPEED, ALONE],
    lines: report.rows.flatMap(kernelLine),
  },
];
const drawable = PLOTS.filter((plot) => rowsOf(plot).length > 0);
if (drawable.length === 0) fail(`${FILE} has none of the rows to plot; run make bench without ONLY`);
for (const plot of drawable) {
  const file = join(OUT, plot.file);
  writeFileSync(file, svg(plot));
  console.log(`bench-plot: ${file}`);
}

/** @returns {{ node: string, kernel: string, cores: number, load: number, lines: readonly Line[], rows: readonly { what: string, columns?: Line["columns"] }[] }} */
function read() {
  try {
    return JSON.parse(readFileSync(FILE, "utf8"));
  } catch {
    return fail(`cannot read ${FILE}; make bench writes it`);
  }
}

/** @returns {never} */
function fail(/** @type {string} */ what) {
  console.error(`bench-plot: ${what}`);
  process.exit(1);
}

/**
 * A row of the kernel's part is "SERVER: ROW".
 * @param {{ what: string, columns?: Line["columns"] }} found
 * @returns {Line[]}
 */
function kernelLine({ what, columns }) {
  const at = what.indexOf(": ");
  return columns === undefined ? [] : [{ server: what.slice(0, at), row: what.slice(at + 2), columns }];
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

function head(/** @type {Plot} */ plot, /** @type {string} */ row, /** @type {number} */ y) {
  const titles = plot.panels.flatMap(({ title, column }, index) =>
    linesOf(plot, row).some(({ columns }) => column in columns) ? [text("small", panelX(index), y + 24, title)] : [],
  );
  return [text("row", MARGIN, y + 8, row), ...titles];
}

function bars(/** @type {Plot} */ plot, /** @type {Line} */ line, /** @type {number} */ y) {
  const name = text(line.server === plot.ours ? "row" : "name", MARGIN, y + BAR_HEIGHT - 2, line.server);
  const drawnBars = plot.panels.flatMap(({ column, show }, index) => {
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
