/** SparkRuns: the parts of a figure over time in which it is known. What is between them is idle, and nothing is drawn there. */
import type { ServerHistory } from "../../../api/history.ts";

export interface SparkPoint {
  readonly index: number;
  readonly value: number;
}

export function runsOf(values: readonly (number | null)[]): readonly (readonly SparkPoint[])[] {
  const runs: SparkPoint[][] = [];
  for (const [index, value] of values.entries()) {
    if (value === null) continue;
    const last = runs.at(-1);
    if (last !== undefined && last.at(-1)?.index === index - 1) last.push({ index, value });
    else runs.push([{ index, value }]);
  }
  return runs;
}

/** The latency of a server that was queried; one that was not still has that of its last query. */
export function measuredRtt({ rttMs, queries }: Pick<ServerHistory, "rttMs" | "queries">): readonly (number | null)[] {
  return rttMs.map((each, index) => (queries[index] === 0 ? null : each));
}
