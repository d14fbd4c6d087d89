/**
 * Log: one line for each event, JSON for machines, short text on a terminal. The query path never logs, because names
 * from the network could fill the log. Writing is asynchronous: a reader that stalls loses lines, but no query is
 * delayed. The rest is flushed at exit, because the last lines matter most.
 */
import { pino } from "pino";

import { escapedJson, printable, printableJson } from "../lib/printable.ts";
import type { LogFormat, LogLevel } from "../model/log-choices.ts";

export type Log = pino.Logger;

const STDERR = 2;
/** Unread output beyond this is dropped. */
const UNREAD_BYTES_MAX = 1024 * 1024;

export function createLog(level: LogLevel, format: LogFormat = "auto"): Log {
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
    // It was never opened, or its reader is gone.
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
