/** Sparkline: the last five minutes of a figure as a line; a gap where it is unknown, and red below where the server was down. */
import type { JSX } from "preact";

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
      <path class="area" d={areaOf(values, x, y)} />
      <path class="line" d={lineOf(values, x, y)} />
    </svg>
  );
}

type Place = (value: number) => number;

function lineOf(values: readonly (number | null)[], x: Place, y: Place): string {
  let isDrawing = false;
  return values
    .map((value, index) => {
      const isNext = isDrawing;
      isDrawing = value !== null;
      return value === null ? "" : `${isNext ? "L" : "M"}${x(index).toFixed(1)},${y(value).toFixed(1)}`;
    })
    .join("");
}

function areaOf(values: readonly (number | null)[], x: Place, y: Place): string {
  const known = values.flatMap((value, index) => (value === null ? [] : [[x(index), y(value)] as const]));
  const [first, last] = [known[0], known.at(-1)];
  if (first === undefined || last === undefined) return "";
  const top = known.map(([px, py]) => `L${px.toFixed(1)},${py.toFixed(1)}`).join("");
  return `M${first[0].toFixed(1)},${HEIGHT - 2} ${top} L${last[0].toFixed(1)},${HEIGHT - 2} Z`;
}
