// Design targets of the data plane (section 3 of the design), and the ratios compared with them.

import { type Spread, spreadOf } from "./figures.ts";
import { NEIGHBOUR } from "./fairness.ts";
import { ROWS } from "./workloads.ts";
import { SERVERS, type Server } from "./server.ts";
import type { Cell, Column, Tally } from "./tally.ts";

export type Ratio = {
  readonly column: Column;
  readonly of: Cell;
  readonly to: Cell;
  readonly ratio: Spread;
  readonly target?: string;
  readonly isReached?: boolean;
};

type Bound = { readonly least?: number; readonly most?: number; readonly orMs?: number };
type Target = Bound & Omit<Ratio, "ratio" | "target" | "isReached">;

const of = (row: string): Cell => ({ row, server: "dns11" });
const beside = (row: string, server: Cell["server"], column: Column, bound: Bound): Target => ({
  ...bound,
  column,
  of: of(row),
  to: { row, server },
});

const TARGETS: readonly Target[] = [
  beside(ROWS.address, "dockerd", "perSecond", { least: 2 }),
  beside(ROWS.address, "dockerd", "cpuMicros", { most: 0.4 }),
  beside(ROWS.address, "unbound", "cpuMicros", { most: 1.2 }),
  beside(ROWS.address, "floor", "cpuMicros", { most: 1.35 }),
  beside(ROWS.cached, "dockerd", "perSecond", { least: 5 }),
  beside(ROWS.cached, "unbound", "cpuMicros", { most: 1.25 }),
  beside(ROWS.uncached, "dockerd", "perSecond", { least: 2 }),
  beside(ROWS.uncached, "dockerd", "cpuMicros", { most: 0.4 }),
  { column: "cpuMicros", of: of(ROWS.names), to: of(ROWS.address), most: 1.1 },
  { column: "p99Ms", of: of(NEIGHBOUR.floodedByNames), to: of(NEIGHBOUR.alone), most: 3, orMs: 10 },
  { column: "p99Ms", of: of(NEIGHBOUR.floodedByMisses), to: of(NEIGHBOUR.alone), most: 3, orMs: 10 },
  { column: "p99Ms", of: of(NEIGHBOUR.slowAndFlooded), to: of(NEIGHBOUR.slow), most: 2 },
];

// A second dnsperf thread gets more from the floor only if the client is the bottleneck; this ratio shows how far
// queries/s are limited by the client. No target uses it; CPU per query does not depend on the client.
const CLIENT_BOUND = {
  column: "perSecond",
  of: { row: ROWS.twoThreads, server: "floor" },
  to: { row: ROWS.address, server: "floor" },
} as const;

// Ratios of ours to all others in the same row, and of the rows that have a target.
export function ratiosOf(tally: Tally, ours: Server): Ratio[] {
  const sideways = tally.lines().flatMap(({ row, server }) => {
    if (server === ours) return [];
    const pair = { of: { row, server: ours }, to: { row, server } };
    return (["perSecond", "cpuMicros"] as const).map((column) => ({ ...pair, column }));
  });
  const downwards = TARGETS.filter((target) => target.of.row !== target.to.row).flatMap((target) =>
    SERVERS.map((server) => ({
      column: target.column,
      of: { ...target.of, server },
      to: { ...target.to, server },
    })),
  );
  return [...sideways, ...downwards, CLIENT_BOUND].flatMap((pair) => {
    const values = tally.ratios(pair.of, pair.to, pair.column);
    return values.length === 0 ? [] : [{ ...pair, ratio: spreadOf(values), ...judged(tally, pair, spreadOf(values)) }];
  });
}

function judged(
  tally: Tally,
  pair: Pick<Ratio, "column" | "of" | "to">,
  { median }: Spread,
): Pick<Ratio, "target" | "isReached"> {
  const target = TARGETS.find(
    ({ column, of: ours, to }) => column === pair.column && isSame(ours, pair.of) && isSame(to, pair.to),
  );
  if (target === undefined) return {};
  const { least, most, orMs } = target;
  if (least !== undefined) return { target: `>= ${least}`, isReached: median >= least };
  const line = tally.lines().find((one) => isSame(one, pair.of));
  const isQuick = orMs !== undefined && (line?.columns[pair.column]?.median ?? Infinity) <= orMs;
  const words = [`<= ${most}`, ...(orMs === undefined ? [] : [`or ${orMs} ms`])];
  return { target: words.join(" "), isReached: median <= (most ?? 0) || isQuick };
}

function isSame(a: Cell, b: Cell): boolean {
  return a.row === b.row && a.server === b.server;
}
