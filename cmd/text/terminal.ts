import { shortAge } from "../../src/base/lib/quantity.ts";

/**
 * Terminal: colours and the width of the output. NO_COLOR, FORCE_COLOR, TERM and COLUMNS have their usual meaning.
 */
export type Colour = "red" | "green" | "yellow" | "dim" | "bold" | "inverse";

export type Paint = (text: string, colour: Colour) => string;

/** How output is shown. */
export interface Display {
  /** In columns; Infinity for output that no terminal shows. */
  readonly width: number;
  readonly paint: Paint;
}

type Stream = { readonly isTTY?: boolean; readonly columns?: number };

const CODES: Readonly<Record<Colour, number>> = { red: 31, green: 32, yellow: 33, dim: 2, bold: 1, inverse: 7 };

/** For files and pipes: programs such as grep expect a row on one line, with all its columns. */
export const PLAIN: Display = { width: Number.POSITIVE_INFINITY, paint: (text) => text };

export function displayOf(stream: Stream, env: NodeJS.ProcessEnv = process.env): Display {
  return { width: widthOf(stream, env), paint: painterFor(stream, env) };
}

export function painterFor(stream: Stream, env: NodeJS.ProcessEnv = process.env): Paint {
  return hasColours(stream, env) ? (text, colour) => `\u001B[${CODES[colour]}m${text}\u001B[0m` : PLAIN.paint;
}

function hasColours({ isTTY }: Stream, env: NodeJS.ProcessEnv): boolean {
  if ((env["NO_COLOR"] ?? "") !== "") return false;
  const forced = env["FORCE_COLOR"];
  if (forced !== undefined) return forced !== "0" && forced !== "false";
  return isTTY === true && env["TERM"] !== "dumb";
}

/** Below this width, no table is readable. */
const WIDTH_MIN = 20;

/** COLUMNS takes precedence, so that a script can choose the width of what it captures. */
function widthOf({ isTTY, columns }: Stream, env: NodeJS.ProcessEnv): number {
  const chosen = /^\d{1,5}$/.test(env["COLUMNS"] ?? "") ? Number(env["COLUMNS"]) : 0;
  const width = chosen || (isTTY === true ? columns || 0 : 0);
  return width === 0 ? PLAIN.width : Math.max(WIDTH_MIN, width);
}

const DAY_MS = 86_400_000;

/** A time for people, where JSON has ISO times: the local time of day, and the date if that is not within a day. */
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
