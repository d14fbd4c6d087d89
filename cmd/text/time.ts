/**
 * Time: local times, and ages, as text for people. JSON has ISO times.
 */
import { shortAge } from "../../src/base/lib/age.ts";

const DAY_MS = 86_400_000;

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

/** The time since then. */
export function age(iso: string, nowMs: number): string {
  return shortAge(nowMs - Date.parse(iso));
}

export function ago(iso: string, nowMs: number): string {
  return `${age(iso, nowMs)} ago`;
}

function two(number: number): string {
  return String(number).padStart(2, "0");
}
