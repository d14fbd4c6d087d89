// Rows about the turns of an event loop: each the median of the longest of several rounds.

import { type Row, type Spread, readable, spreadOf } from "./figures.ts";
import type { LongestTurns } from "./loop-turns.ts";

/** Limit of a synchronous call. */
const CALL_MS_MAX = 2;

export function turnRows(what: string, measured: readonly LongestTurns[]): Row[] {
  const collecting = spreadOf(measured.map(({ withCollectionMs }) => withCollectionMs));
  const isCollecting = collecting.high > 0;
  const longest = readable(spreadOf(measured.map(({ longestMs }) => longestMs)), 1);
  return [
    { what: `${what}: longest turn of the event loop`, measured: `${longest} ms` },
    limited(
      `${what}: processor time without garbage collection`,
      spreadOf(measured.map(({ withoutCollectionMs }) => withoutCollectionMs)),
    ),
    ...(isCollecting
      ? [{ what: `${what}: processor time with garbage collection`, measured: `${readable(collecting, 2)} ms` }]
      : []),
  ];
}

export function limited(what: string, spread: Spread): Row {
  const isReached = spread.median <= CALL_MS_MAX;
  return { what, measured: `${readable(spread, 2)} ms`, target: `<= ${CALL_MS_MAX} ms`, isReached };
}
