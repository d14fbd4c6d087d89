/**
 * Quantity: parses and formats durations and sizes.
 *
 *   4.4s   250ms   1h30m   1d   90      seconds if there is no unit
 *   32MiB  64k     1GiB    65536        bytes if there is no unit; k, m and g as in docker
 */
const MS_OF = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const BYTES_OF: Readonly<Record<string, number>> = {
  "": 1,
  b: 1,
  k: 2 ** 10,
  kib: 2 ** 10,
  m: 2 ** 20,
  mib: 2 ** 20,
  g: 2 ** 30,
  gib: 2 ** 30,
};

/** Milliseconds; undefined for an invalid duration. */
export function parseDuration(input: string | number): number | undefined {
  const text = String(input);
  if (/^\d+(\.\d+)?$/.test(text)) return milliseconds(Number(text) * MS_OF.s);
  if (!/^(\d+(\.\d+)?(ms|[smhd]))+$/.test(text)) return undefined;
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|[smhd])/g)];
  return milliseconds(
    parts.reduce((sum, [, number, unit]) => sum + Number(number) * MS_OF[unit as keyof typeof MS_OF], 0),
  );
}

function milliseconds(ms: number): number | undefined {
  return Number.isSafeInteger(Math.round(ms)) ? Math.round(ms) : undefined;
}

/** Uses the largest unit that needs at most one decimal. */
export function durationText(ms: number): string {
  if (ms === 0) return "0";
  const units = Object.entries(MS_OF).toReversed();
  const [unit, unitMs] = units.find(([, each]) => ms % each === 0 || (each === MS_OF.s && ms % 100 === 0)) ?? ["ms", 1];
  return `${ms / unitMs}${unit}`;
}

/** Bytes; undefined for an invalid size. */
export function parseSize(input: string | number): number | undefined {
  const [, number, unit = ""] = /^(\d+)([a-z]*)$/i.exec(String(input)) ?? [];
  const each = BYTES_OF[unit.toLowerCase()];
  const bytes = Number(number) * (each ?? Number.NaN);
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

export function sizeText(bytes: number): string {
  if (bytes === 0) return "0";
  const [unit, each] = (
    [
      ["GiB", 2 ** 30],
      ["MiB", 2 ** 20],
      ["KiB", 2 ** 10],
    ] as const
  ).find(([, size]) => bytes % size === 0) ?? ["B", 1];
  return `${bytes / each}${unit}`;
}

/** The age of an event, in the largest unit that still tells it well. Sentences write it with a space, the columns of tables without. */
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
