// @ts-check
/**
 * Writes the tables of the last whole `make bench` into the documents, so that all of them are of one run.
 */
import { writeFileSync } from "node:fs";

import { readBenchReport } from "./docs/bench-report.mjs";
import { changedDocuments, formatted } from "./docs/regions.mjs";
import { table } from "./docs/table.mjs";

/** @typedef {import("./docs/bench-report.mjs").Line} Line */
/** @typedef {import("./docs/bench-report.mjs").Spread} Spread */
/** @typedef {(line: Line) => string | undefined} Show */
/** @typedef {readonly Line[]} Lines */

const report = readBenchReport();
const ALL = report.lines;
const KERNEL = report.kernelLines ?? [];
const OTHERS = ["dockerd", "dnsmasq", "unbound"];

const NAME = "container name, A";
const CROWD = "container name, A, 100 containers in turn";
const CACHED = "forwarded, cache hit";
const MISS = "forwarded, cache miss";
const [ALONE, CACHED_ALONE] = [`${NAME}, one at a time`, `${CACHED}, one at a time`];
const LEAN = "lean asker on each core";
const FLOODS = {
  names: "neighbour at 100 queries/s: flood of container names",
  misses: "neighbour at 100 queries/s: flood of cache misses",
};

const changed = changedDocuments(
  "measured",
  {
    run: runText(),
    speed: speedTable(),
    waiting: waitingTable(),
    answering: answeringTable(),
    fairness: fairnessTable(),
    attaching: rowsTable({
      "attach one container": "attach and verify, one by one, p50",
      "the slowest one of a hundred": "attach and verify, one by one, p99",
      "attach 1000 containers at once": "attach and verify, 1000 at once",
      "from Docker's event until other containers resolve the name":
        "event `start` until the name resolves in another container, p50",
      "the slowest one of a hundred of these": "event `start` until the name resolves in another container, p99",
    }),
    memory: rowsTable({
      "an idle process": "resident memory, nothing attached",
      "of that, what is not mapped files": "anonymous memory, nothing attached",
      "a process with 40 containers": "resident memory, 40 containers attached",
      "of this, what is not mapped files": "anonymous memory, 40 containers attached",
      "the keeper": "private memory of the keeper, 40 namespaces",
      "the keeper with 1,000 containers": "private memory of the keeper, 1000 namespaces",
    }),
    killed: killedTable(),
    "kernel-answers": kernelTable(),
    "first-answers": rowsTable({
      "what is left in the kernel": "left in the kernel",
      "by a process that leaves nothing there": "by a process that leaves nothing there",
    }),
    "kernel-ratios": rowsTable({
      "container name, dnsperf: kernel to floor": "queries/s by dnsperf: kernel to floor",
      "container name, lean asker: kernel to floor": "queries/s by the lean asker: kernel to floor",
      "cached reply, dnsperf: kernel to unbound": "cached names, queries/s by dnsperf: kernel to unbound",
      "cached reply, lean asker: kernel to unbound": "cached names, queries/s by the lean asker: kernel to unbound",
    }),
  },
  formatted,
);
for (const [path, text] of changed) {
  writeFileSync(path, text);
  console.log(`bench-docs: ${path} written`);
}

function runText() {
  const { at, kernel, engine, node, cores, processor } = report;
  const linux = kernel.split(".").slice(0, 2).join(".");
  return `${at.slice(0, 10)}: ${cores} cores of ${processor}, Linux ${linux}, Docker ${engine.split("+")[0]}, Node ${node.slice(1)}.`;
}

function speedTable() {
  const servers = ["dns11", "process", ...OTHERS];
  /** @param {string} row @param {boolean} [hasProcess] */
  const rate = (row, hasProcess = true) =>
    servers.map((server) =>
      server !== "process"
        ? cell(ALL, row, server, perSecond)
        : hasProcess
          ? cell(KERNEL, row, server, perSecond)
          : "-",
    );
  return table(
    ["", "dns11", "the same without eBPF", "Docker", "dnsmasq", "unbound"],
    [
      [
        "container name, one query at a time",
        ...["kernel", "process", ...OTHERS].map((server) => cell(KERNEL, ALONE, server, p50)),
      ],
      ["container name, queries a second", ...rate(NAME)],
      ["outside name, cached", ...rate(CACHED)],
      ["outside name, not cached", ...rate(MISS, false)],
      [
        "a neighbour's p99 beside a flood of queries",
        cell(ALL, FLOODS.names, "dns11", p99Range),
        cell(KERNEL, FLOODS.names, "process", p99),
        cell(ALL, FLOODS.names, "dockerd", p99Range),
        "-",
        "-",
      ],
    ],
  );
}

function waitingTable() {
  const servers = ["kernel", "process", ...OTHERS, "floor"];
  return table(
    ["", "dns11", "by the process", ...OTHERS, "C floor"],
    [
      ["container name", ...servers.map((server) => cell(KERNEL, ALONE, server, p50))],
      ["outside name, cached", ...servers.map((server) => cell(KERNEL, CACHED_ALONE, server, p50))],
    ],
  );
}

function answeringTable() {
  const others = [...OTHERS, "aardvark-dns", "floor"];
  /** @param {string} row */
  const all = (row) => [row, ...["dns11", ...others].map((server) => cell(ALL, row, server, rateAtCpu))];
  /** @param {string} row @param {string} [words] */
  const process = (row, words = "by the process") => [
    words,
    ...["process", ...others].map((server) => cell(KERNEL, row, server, rateAtCpu)),
  ];
  const [reverse, names] = ["container address, PTR", "container name of 10,000, A"];
  return table(
    ["", "dns11", ...OTHERS, "aardvark-dns", "C floor"],
    [
      ...[NAME, reverse, names, CACHED].flatMap((row) => [all(row), process(row)]),
      ...["forwarded, cache hit: NXDOMAIN", MISS, "container name, A, by TCP", CROWD].map(all),
      process(CROWD, "by the process (one round)"),
    ],
  );
}

function fairnessTable() {
  /** @param {string} row */
  const cells = (row) => [
    cell(ALL, row, "dns11", p99Range),
    cell(KERNEL, row, "process", p99),
    cell(ALL, row, "dockerd", p99Range),
  ];
  return table(
    ["", "dns11", "by the process (one round)", "dockerd"],
    [
      ["names of containers", ...cells(FLOODS.names)],
      ["names that must be forwarded", ...cells(FLOODS.misses)],
    ],
  );
}

function kernelTable() {
  const servers = ["kernel", "process", ...OTHERS, "floor"];
  /** @type {readonly (readonly [string, string, Show])[]} */
  const rows = [
    ["container name, dnsperf", NAME, thousands],
    [`container name, ${LEAN}`, `${NAME}, ${LEAN}`, thousands],
    ["cached reply, dnsperf", CACHED, thousands],
    [`cached reply, ${LEAN}`, `${CACHED}, ${LEAN}`, thousands],
    ["container name, one at a time, p50", ALONE, p50],
    ["cached reply, one at a time, p50", CACHED_ALONE, p50],
    ["100 containers in turn", CROWD, thousands],
    ["while the process is stopped", `${NAME}, process stopped`, thousands],
    ["neighbour's p99 beside a flood of names", FLOODS.names, p99],
    ["the same, lean asker", `${FLOODS.names}, lean asker`, p99],
    ["neighbour's p99 beside a flood of cache misses", FLOODS.misses, p99],
    ["the same, lean asker", `${FLOODS.misses}, lean asker`, p99],
  ];
  return table(
    ["", "kernel", "process", ...OTHERS, "C floor"],
    rows.map(([title, row, show]) => [title, ...servers.map((server) => cell(KERNEL, row, server, show))]),
  );
}

function killedTable() {
  /** @param {string} keeper */
  const row = (keeper) => [
    keeper,
    ...[40, 1000].map((size) => measured(`SIGKILL, unluckiest of ${size} namespaces, 2000 queries/s, ${keeper}`)),
  ];
  const replaced = measured("replacement with --replace, 40 containers of an engine, 2000 queries/s");
  return table(
    ["", "40 namespaces", "1,000 namespaces"],
    [row("without a keeper"), row("with a keeper"), ["replaced (real engine)", replaced, "-"]],
  );
}

/** What the bench prints, by the words of the document. @param {Readonly<Record<string, string>>} wanted */
function rowsTable(wanted) {
  return table(
    ["", ""],
    Object.entries(wanted).map(([title, what]) => [title, measured(what)]),
  );
}

/** @param {string} what */
function measured(what) {
  return found(
    what,
    report.rows.find((row) => row.what === what),
  ).measured;
}

/** "-" for a server that was not asked. @param {Lines} lines @param {string} row @param {string} server @param {Show} show */
function cell(lines, row, server, show) {
  const ofRow = lines.filter((line) => line.row === row);
  if (ofRow.length === 0) throw new Error(`the last bench has no row "${row}"; run make bench without ONLY`);
  const line = ofRow.find((each) => each.server === server);
  return line === undefined ? "-" : found(row, show(line));
}

/** @template T @param {string} what @param {T | undefined} value @returns {T} */
function found(what, value) {
  if (value === undefined) throw new Error(`the last bench has no figure of "${what}"; run make bench without ONLY`);
  return value;
}

/** @type {Show} */
function perSecond({ columns }) {
  return columns["perSecond"] && (Math.round(columns["perSecond"].median / 1000) * 1000).toLocaleString("en");
}

/** @type {Show} */
function thousands({ columns }) {
  return columns["perSecond"] && Math.round(columns["perSecond"].median / 1000).toLocaleString("en");
}

/** @type {Show} */
function rateAtCpu({ columns: { perSecond: rate, cpuMicros: cpu } }) {
  return rate && cpu && `${Math.round(rate.median / 1000)}k at ${cpu.median.toFixed(cpu.median < 100 ? 1 : 0)}`;
}

/** @type {Show} */
function p50({ columns }) {
  return columns["p50Ms"] && `${Math.round(columns["p50Ms"].median * 1000)} us`;
}

/** @type {Show} */
function p99({ columns }) {
  return columns["p99Ms"] && `${milliseconds(columns["p99Ms"].median)} ms`;
}

/** @type {Show} */
function p99Range({ columns }) {
  return columns["p99Ms"] && `${milliseconds(columns["p99Ms"].low)} to ${milliseconds(columns["p99Ms"].high)} ms`;
}

/** @param {number} ms */
function milliseconds(ms) {
  return ms.toFixed(ms < 1 ? 2 : ms < 10 ? 1 : 0);
}
