/**
 * The log: one line an event, JSON for machines, short text on a terminal. Written synchronously, because the line before
 * a crash is the one that is wanted; and never from the query's way, where a name from the wire could fill it.
 */
import { pino } from "pino";

export type Log = pino.Logger;

export const LOG_LEVELS = ["debug", "info", "warn", "error", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

const STDERR = 2;

export function createLog(level: LogLevel): Log {
  const options: pino.LoggerOptions = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
  };
  if (process.stderr.isTTY) return pino(options, { write: (line) => void process.stderr.write(readable(line)) });
  const destination = pino.destination({ fd: STDERR, sync: true });
  // Whoever read our log has gone; that is no reason to stop answering names.
  destination.on("error", () => undefined);
  return pino(options, destination);
}

/** "12:30:01 warn  attach failed container=web reason=..." */
function readable(line: string): string {
  const { level, time, msg, ...rest } = JSON.parse(line) as Record<string, unknown>;
  const fields = Object.entries(rest).map(
    ([key, value]) => `${key}=${typeof value === "string" ? quoted(value) : JSON.stringify(value)}`,
  );
  return `${String(time).slice(11, 19)} ${String(level).padEnd(5)} ${String(msg)}${fields.map((field) => ` ${field}`).join("")}\n`;
}

function quoted(text: string): string {
  return /^[\w.:/@-]+$/.test(text) ? text : JSON.stringify(text);
}

/** Lets a message through once in `everyMs`, with the number of those held back. */
export class Throttle {
  readonly #everyMs: number;
  #nextMs = -Infinity;
  #held = 0;

  constructor(everyMs: number) {
    this.#everyMs = everyMs;
  }

  /** Calls `emit` if it is time again. */
  run(emit: (heldBack: number) => void): void {
    const now = performance.now();
    if (now < this.#nextMs) {
      this.#held++;
      return;
    }
    this.#nextMs = now + this.#everyMs;
    emit(this.#held);
    this.#held = 0;
  }
}
