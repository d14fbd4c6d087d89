// make bench: every figure of README and ARCHITECTURE comes from here, side by side in one run. Words name the parts to
// run; with --quick the data plane's are short, to see that everything works, and nothing is saved; with --json everything
// is printed as JSON after the tables.

import { benchAttach } from "./attach.ts";
import { benchCrash } from "./crash.ts";
import { benchEvents } from "./events.ts";
import { benchFailover } from "./failover.ts";
import { type Row, printRows } from "./figures.ts";
import { FULL_PACE, QUICK_PACE } from "./pace.ts";
import { DATA_PLANE_PARTS, benchDataPlane } from "./data-plane.ts";
import { type Report, save, thisMachine } from "./report.ts";
import type { Line } from "./tally.ts";
import { benchStalls } from "./stalls.ts";
import { type Ratio, ratiosOf } from "./targets.ts";
import { printTable } from "./table.ts";

type Part = readonly [string, string, () => Promise<Row[]>];
// Attachments first: it measures the memory of this process, which the others fill.
const FIRST: readonly Part[] = [["attach", "Attachments, in real namespaces", benchAttach]];
const LAST: readonly Part[] = [
  ["failover", "Name servers that fail under load", benchFailover],
  ["events", "From an event to an answer", benchEvents],
  ["crash", "A process that is killed, or replaced, while others ask", benchCrash],
  ["stalls", "How long the answering thread is away", benchStalls],
];

const words = process.argv.slice(2).filter((word) => !word.startsWith("--"));
const flags = process.argv.slice(2).filter((word) => word.startsWith("--"));
const known: readonly string[] = [...FIRST.map(([word]) => word), ...DATA_PLANE_PARTS, ...LAST.map(([word]) => word)];
const unknown = [
  ...words.filter((word) => !known.includes(word)),
  ...flags.filter((flag) => !["--json", "--quick"].includes(flag)),
];
if (unknown.length > 0) {
  console.error(`bench: no part "${unknown.join('", "')}"; there are ${known.join(", ")}, and --json and --quick`);
  process.exit(2);
}
const isQuick = flags.includes("--quick");
const isWanted = (word: string): boolean => words.length === 0 || words.includes(word);

const machine = thisMachine();
const { node, kernel, cores, load } = machine;
console.log(
  `Node ${node}, Linux ${kernel}, ${cores} cores, load ${load.toFixed(1)}. Figures: median (lowest to highest).`,
);
const rows: Row[] = await benchParts(FIRST);
const [lines, ratios] = await benchTable();
rows.push(...(await benchParts(LAST)));
const report: Report = { ...machine, lines, ratios, rows };
if (!isQuick) console.log(`\nSaved in ${save(report)}`);
if (flags.includes("--json")) console.log(JSON.stringify(report));
process.exit(0);

async function benchTable(): Promise<[Line[], Ratio[]]> {
  const parts = DATA_PLANE_PARTS.filter(isWanted);
  if (parts.length === 0) return [[], []];
  const tally = await benchDataPlane(parts, isQuick ? QUICK_PACE : FULL_PACE);
  const [found, held]: [Line[], Ratio[]] = [tally.lines(), ratiosOf(tally)];
  printTable("Answering, all in the same container and through the same address", found, held);
  return [found, held];
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
