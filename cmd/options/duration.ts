/** Duration: a time as people type it, such as 30s, 500ms or 2m. */
import { InvalidArgumentError } from "commander";

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };
const DAY_MS = 86_400_000;

/** In milliseconds. */
export function readDuration(text: string): number {
  const [, number, unit] = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h)$/.exec(text) ?? [];
  const ms = Math.round(Number(number) * (UNITS[unit ?? ""] ?? Number.NaN));
  if (Number.isNaN(ms) || ms > DAY_MS)
    throw new InvalidArgumentError("Use a time of at most a day, such as 200ms, 30s or 2m.");
  return ms;
}
