/** Sparkline: the last five minutes of a figure as a line; a gap where it is unknown, and red below where the server was down. */
import type { JSX } from "preact";

import { type SparkPoint, runsOf } from "../model/spark-runs.ts";

const [WIDTH, HEIGHT] = [120, 26];

interface SparklineProps {
  readonly values: readonly (number | null)[];
  readonly states?: readonly ("up" | "down" | null)[];
  readonly label: string;
  /** How many samples the width is for. */
  readonly of?: number;
}

export function Sparkline({ values, states = [], label, of = 60 }: SparklineProps): JSX.Element {
  const max = Math.max(1, ...values.map((value) => value ?? 0));
  const step = WIDTH / Math.max(1, of - 1);
  const x = (index: number): number => WIDTH - (values.length - 1 - index) * step;
  const y = (value: number): number => HEIGHT - 3 - (value / max) * (HEIGHT - 7);
  return (
    <svg
      class="sparkline"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      width={WIDTH}
      height={HEIGHT}
      role="img"
      aria-label={label}
    >
      {states.map((state, index) =>
        state === "down" ? (
          <rect key={index} class="down" x={x(index) - step} y={1} width={step + 0.4} height={HEIGHT - 2} />
        ) : null,
      )}
      <path class="base" d={`M0,${HEIGHT - 2.5} H${WIDTH}`} />
      {runsOf(values).map((run) => (
        <g key={run[0]?.index}>
          <path class="area" d={areaOf(run, x, y)} />
          <path class="line" d={lineOf(run, x, y)} />
        </g>
      ))}
    </svg>
  );
}

type Place = (value: number) => number;

/** A single point is a dot: the line has round ends. */
function lineOf(run: readonly SparkPoint[], x: Place, y: Place): string {
  const [first, ...others] = run.map(({ index, value }) => `${x(index).toFixed(1)},${y(value).toFixed(1)}`);
  return `M${first} ${others.length === 0 ? "h0" : others.map((each) => `L${each}`).join("")}`;
}

function areaOf(run: readonly SparkPoint[], x: Place, y: Place): string {
  const [first, last] = [run[0]?.index ?? 0, run.at(-1)?.index ?? 0];
  const top = run.map(({ index, value }) => `L${x(index).toFixed(1)},${y(value).toFixed(1)}`).join("");
  return `M${x(first).toFixed(1)},${HEIGHT - 2} ${top} L${x(last).toFixed(1)},${HEIGHT - 2} Z`;
}
