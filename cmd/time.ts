/**
 * Time: times and ages as text for people: local times, and ages in the largest unit that keeps them exact enough. JSON has
 * ISO times.
 */
const SECOND_MS = 1_000;
const DAY_MS = 86_400_000;
const MINUTE_S = 60;
const HOUR_S = 3_600;
const DAY_S = 86_400;

/** The local time of day, and the date if that is not within a day. */
export function localTime(iso: string, nowMs: number): string {
  const date = new Date(iso);
  const time = [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":");
  if (Math.abs(nowMs - date.getTime()) < DAY_MS) return time;
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${time}`;
}

/** The local time of day with milliseconds. */
export function preciseTime(iso: string): string {
  const date = new Date(iso);
  const time = [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":");
  return `${time}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}

/** Such as "8s", "12m", "5h" or "3d". */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / SECOND_MS));
  if (seconds < 2 * MINUTE_S) return `${seconds}s`;
  if (seconds < 2 * HOUR_S) return `${Math.floor(seconds / MINUTE_S)}m`;
  if (seconds < 2 * DAY_S) return `${Math.floor(seconds / HOUR_S)}h`;
  return `${Math.floor(seconds / DAY_S)}d`;
}

/** The time since then. */
export function age(iso: string, nowMs: number): string {
  return duration(nowMs - Date.parse(iso));
}

export function ago(iso: string, nowMs: number): string {
  return `${age(iso, nowMs)} ago`;
}

function two(number: number): string {
  return String(number).padStart(2, "0");
}
