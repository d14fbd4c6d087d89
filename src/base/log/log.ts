/**
 * Log: one line for each event, JSON for machines, short text on a terminal. The query path never logs, because names
 * from the network could fill the log. Writing is asynchronous: a reader that stalls loses lines, but no query is
 * delayed. The rest is flushed at exit, because the last lines matter most.
 */
import { pino } from "pino";
import { escapedJson, printable, printableJson } from "../lib/text.ts";
import type { LOG_LEVELS, LogFormat } from "./choices.ts";

export type Log = pino.Logger;

const STDERR = 2;
/** Unread output beyond this is dropped. */
const UNREAD_BYTES_MAX = 1024 * 1024;

export function createLog(level: (typeof LOG_LEVELS)[number], format: LogFormat = "auto"): Log {
  const options: pino.LoggerOptions = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
  };
  // The reader of the log is gone; that is no reason to stop answering queries.
  process.stderr.on("error", () => undefined);
  const isText = format === "text" || (format === "auto" && process.stderr.isTTY);
  const shown = isText ? textLine : escapedJson;
  if (process.stderr.isTTY) return pino(options, { write: (line) => void process.stderr.write(shown(line)) });
  const destination = pino.destination({ fd: STDERR, sync: false, maxLength: UNREAD_BYTES_MAX });
  process.on("exit", () => flush(destination));
  destination.on("error", () => undefined);
  return pino(options, { write: (line) => void destination.write(shown(line)) });
}

function flush(destination: ReturnType<typeof pino.destination>): void {
  try {
    destination.flushSync();
  } catch {
    // The descriptor was never opened, or its reader is gone.
  }
}

/** "12:30:01 warn  attach failed container=web reason=..." */
function textLine(line: string): string {
  const { level, time, msg, ...rest } = JSON.parse(line) as Record<string, unknown>;
  const fields = Object.entries(rest).map(
    ([key, value]) => `${printable(key)}=${typeof value === "string" ? quoted(value) : printableJson(value)}`,
  );
  const words = [String(time).slice(11, 19), String(level).padEnd(5), printable(String(msg)), ...fields];
  return `${words.join(" ")}\n`;
}

function quoted(text: string): string {
  return /^[\w.:/@-]+$/.test(text) ? text : printableJson(text);
}

/** Writes events to the log, for code that does not depend on the log. */
export function eventLogger(log: Log): ReportEvent {
  return (about, text, level = "info") => log[level](about, text);
}

/**
 * Something to log, reported by code that does not depend on the log.
 */
export type ReportEvent = (about: Readonly<Record<string, unknown>>, text: string, level?: "info" | "warn") => void;
