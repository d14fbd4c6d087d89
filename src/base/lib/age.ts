/**
 * Age: how long ago something happened, in the largest unit that still tells it well. Sentences write it with a space, the
 * columns of tables without.
 */
const SECOND_MS = 1_000;
const MINUTE_S = 60;
const HOUR_S = 3_600;
const DAY_S = 86_400;

type Unit = "s" | "min" | "h" | "days";

/** Writes an age such as "8 s", "12 min", "5 h" or "3 days". */
export function ageText(ms: number): string {
  const [count, unit] = inLargestUnit(ms);
  return `${count} ${unit}`;
}

/** Writes an age such as "8s", "12m", "5h" or "3d". */
export function shortAge(ms: number): string {
  const [count, unit] = inLargestUnit(ms);
  return `${count}${unit.charAt(0)}`;
}

function inLargestUnit(ms: number): [count: number, unit: Unit] {
  const seconds = Math.max(0, Math.floor(ms / SECOND_MS));
  if (seconds < 2 * MINUTE_S) return [seconds, "s"];
  if (seconds < 2 * HOUR_S) return [Math.floor(seconds / MINUTE_S), "min"];
  if (seconds < 2 * DAY_S) return [Math.floor(seconds / HOUR_S), "h"];
  return [Math.floor(seconds / DAY_S), "days"];
}
