// Table of the data plane: a line per row and server, and the ratio of ours to it, with the design targets.

import { printCells, readable, verdict } from "./figures.ts";
import type { Server } from "./server.ts";
import type { Cell, Column, Line } from "./tally.ts";
import type { Ratio } from "./targets.ts";

const TITLES: Readonly<Record<Column, string>> = {
  perSecond: "queries/s",
  cpuMicros: "CPU us/query",
  p50Ms: "p50 ms",
  p99Ms: "p99 ms",
};
const DIGITS: Readonly<Record<Column, number>> = { perSecond: 0, cpuMicros: 1, p50Ms: 3, p99Ms: 3 };

export function printTable(title: string, ours: Server, lines: readonly Line[], ratios: readonly Ratio[]): void {
  const head = ["", "", ...Object.values(TITLES), "lost", `${ours}'s queries/s`, `${ours}'s CPU`];
  const cells = lines.map((line, index) => [
    line.row === lines[index - 1]?.row ? "" : line.row,
    line.server,
    ...columnsOf(line),
    String(line.lost),
    sideways(line, "perSecond", ratios),
    sideways(line, "cpuMicros", ratios),
  ]);
  printCells(title, [head, ...cells]);
  const others = ratios.filter(({ of, to }) => of.row !== to.row);
  if (others.length === 0) return;
  printCells(
    "Within one server",
    others.map(({ column, of, to, ratio, target, isReached }) => [
      of.server,
      `${TITLES[column]}, ${of.row} : ${to.row}`,
      readable(ratio, 2),
      target ?? "",
      verdict(isReached),
    ]),
  );
}

function columnsOf({ columns }: Line): string[] {
  return (Object.keys(TITLES) as Column[]).map((column) => {
    const spread = columns[column];
    return spread === undefined ? "" : readable(spread, DIGITS[column]);
  });
}

// "2.31x (>= 2 met)"
function sideways(cell: Cell, column: Column, ratios: readonly Ratio[]): string {
  const found = ratios.find(
    ({ column: one, of, to }) =>
      one === column && of.row === cell.row && to.row === cell.row && to.server === cell.server,
  );
  if (found === undefined) return "";
  const { ratio, target, isReached } = found;
  return `${ratio.median.toFixed(2)}x${target === undefined ? "" : ` (${target} ${verdict(isReached)})`}`;
}
