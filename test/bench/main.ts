// make bench: all figures in README and docs/, measured side by side in one run. Arguments name the parts to
// run. --quick shortens the data plane's parts, to check that everything works, and saves nothing; --json prints
// everything as JSON after the tables.

import { benchAttach } from "./attach.ts";
import { benchBreakages } from "./breakages.ts";
import { benchChannels } from "./channels.ts";
import { benchCrash } from "./crash.ts";
import { benchEvents } from "./events.ts";
import { featureParts } from "./feature-parts.ts";
import { benchFailover } from "./failover.ts";
import { benchFailures } from "./failures.ts";
import { benchFirstAnswers } from "./first-answers.ts";
import { benchMemory } from "./memory.ts";
import { type Row, printRows } from "./figures.ts";
import { benchKernel } from "./kernel.ts";
import { FULL_PACE, QUICK_PACE } from "./pace.ts";
import { DATA_PLANE_PARTS, benchDataPlane } from "./data-plane.ts";
import { type Report, save, thisMachine } from "./report.ts";
import { DNS11 } from "./server.ts";
import type { Line } from "./tally.ts";
import { benchLocks } from "./locks.ts";
import { benchNames } from "./names.ts";
import { benchPage } from "./page.ts";
import { benchPeers } from "./peers.ts";
import { benchOpenedAnswers } from "./opened-answers.ts";
import { benchPolicy } from "./policy.ts";
import { benchRequests } from "./requests.ts";
import { benchStalls } from "./stalls.ts";
import { benchTls } from "./tls.ts";
import { benchUi } from "./ui.ts";
import { type Ratio, ratiosOf } from "./targets.ts";
import { printTable } from "./table.ts";

const KERNEL_PART = "kernel";

type Part = readonly [string, string, () => Promise<Row[]>];
// Attach first: it measures the memory of this process, which the others fill.
const FIRST: readonly Part[] = [["attach", "Attach, in real namespaces", benchAttach]];
const LAST: readonly Part[] = [
  ["failover", "Upstream servers that fail under load", benchFailover],
  ["events", "From the start event to the answer", benchEvents],
  ["failures", "From a failing name to its cause", benchFailures],
  ["breakages", "From a breakage to its cause", async () => await benchBreakages(isQuick ? 1 : 5)],
  [
    "first-answers",
    "The first answer to a name after a change: processor time",
    async () => await benchFirstAnswers(pace),
  ],
  ["page", "The page of dns11 ui beside 200 containers", benchPage],
  ["crash", "Queries lost when dns11 is killed or replaced", benchCrash],
  ["memory", "Memory of an idle process", benchMemory],
  ["ui", "The page of dns11 ui in a browser", benchUi],
  ["tls", "A cache miss by TLS beside one by TCP", async () => await benchTls(pace)],
  [
    "names",
    "Local names beside 10,000 declared ones and 1,000 wildcards: processor time per query",
    async () => await benchNames(pace),
  ],
  [
    "policy",
    "Policies: processor time per query, and time until a reload is in force",
    async () => await benchPolicy(pace),
  ],
  ["channels", "What a program with a policy can tell the server of an allowed name", benchChannels],
  [
    "opened",
    "From a query until its answer, whose addresses a policy has opened",
    async () => await benchOpenedAnswers(isQuick ? 5 : 30),
  ],
  ["peers", "Policies beside dnsmasq --nftset and a script that resolves once", benchPeers],
  ["locks", "Beside a container that holds the lock of its rules", async () => await benchLocks(isQuick ? 5 : 20)],
  ["requests", "Stalls of the answering thread by what its users ask", benchRequests],
  ["stalls", "Stalls of the answering thread", benchStalls],
  ...(await featureParts()).map(([word, title, bench]): Part => [word, title, async () => await bench(pace)]),
];

const words = process.argv.slice(2).filter((word) => !word.startsWith("--"));
const flags = process.argv.slice(2).filter((word) => word.startsWith("--"));
const known: readonly string[] = [
  ...FIRST.map(([word]) => word),
  ...DATA_PLANE_PARTS,
  KERNEL_PART,
  ...LAST.map(([word]) => word),
];
const unknown = [
  ...words.filter((word) => !known.includes(word)),
  ...flags.filter((flag) => !["--json", "--quick"].includes(flag)),
];
if (unknown.length > 0) {
  console.error(`bench: unknown argument "${unknown.join('", "')}"; use ${known.join(", ")}, --json or --quick`);
  process.exit(2);
}
const isQuick = flags.includes("--quick");
const pace = isQuick ? QUICK_PACE : FULL_PACE;
const isWanted = (word: string): boolean => words.length === 0 || words.includes(word);

const machine = thisMachine();
const { node, kernel, cores, load } = machine;
console.log(
  `Node ${node}, Linux ${kernel}, ${cores} cores, load ${load.toFixed(1)}. Values are medians (lowest to highest).`,
);
let engine = "";
const rows: Row[] = await benchParts(FIRST);
const [lines, ratios] = await benchTable();
const kernelLines = await benchKernelTable();
rows.push(...(await benchParts(LAST)));
const report: Report = { ...machine, engine, lines, ratios, kernelLines, rows };
if (!isQuick) console.log(`\nSaved to ${save(report)}`);
if (flags.includes("--json")) console.log(JSON.stringify(report));
process.exit(0);

async function benchTable(): Promise<[Line[], Ratio[]]> {
  const parts = DATA_PLANE_PARTS.filter(isWanted);
  if (parts.length === 0) return [[], []];
  const tally = await benchDataPlane(parts, pace);
  ({ engine } = tally);
  const [found, held]: [Line[], Ratio[]] = [tally.lines(), ratiosOf(tally, DNS11.server)];
  printTable("Data plane, all servers in the same container at the same address", DNS11.server, found, held);
  return [found, held];
}

async function benchKernelTable(): Promise<Line[]> {
  if (!isWanted(KERNEL_PART)) return [];
  const { tally, rows: found } = await benchKernel(pace);
  ({ engine } = tally);
  const all = tally.lines();
  printTable("Container names answered by the kernel, in the same container", "kernel", all, ratiosOf(tally, "kernel"));
  printRows("Targets of answers by the kernel", found);
  rows.push(...found);
  return all;
}

async function benchParts(parts: readonly Part[]): Promise<Row[]> {
  const all: Row[] = [];
  for (const [word, title, bench] of parts.filter(([name]) => isWanted(name))) {
    console.error(`bench: ${word}`);
    const found = await bench();
    printRows(title, found);
    all.push(...found);
  }
  return all;
}
