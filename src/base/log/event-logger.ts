/**
 * EventLogger: writes events to the log, for code that does not depend on the log.
 */
import type { ReportEvent } from "../model/event.ts";
import type { Log } from "./log.ts";

export function eventLogger(log: Log): ReportEvent {
  return (about, text, level = "info") => log[level](about, text);
}
