// make bench: every figure of README and ARCHITECTURE comes from here, side by side in one run. With --json the rows are
// printed as JSON after the tables.

import { cpus } from "node:os";

import { benchAttach } from "./attach.ts";
import { benchEvents } from "./events.ts";
import { benchFailover } from "./failover.ts";
import { type Row, printRows } from "./figures.ts";
import { benchForward } from "./forward.ts";
import { benchQueries } from "./queries.ts";

const PARTS: readonly (readonly [string, string, () => Promise<Row[]>])[] = [
  ["attach", "Attaching, in real namespaces", benchAttach],
  ["queries", "Answering, against dockerd in the same container", benchQueries],
  ["forward", "Forwarding, against dockerd, dnsmasq and unbound in the same container", benchForward],
  ["failover", "Name servers that fail under load", benchFailover],
  ["events", "From an event to an answer", benchEvents],
];

const words = process.argv.slice(2).filter((word) => !word.startsWith("--"));
console.log(`Node ${process.version}, ${cpus().length} cores. Figures: median (lowest to highest).`);
const all: Row[] = [];
for (const [word, title, bench] of PARTS) {
  if (words.length > 0 && !words.includes(word)) continue;
  const rows = await bench();
  printRows(title, rows);
  all.push(...rows);
}
if (process.argv.includes("--json")) console.log(JSON.stringify(all));
process.exit(0);
