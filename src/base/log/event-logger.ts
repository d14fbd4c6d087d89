/**
 * News that go into the log, for those who tell them without knowing of logs.
 */
import type { ReportEvent } from "../model/event.ts";
import type { Log } from "./log.ts";

export function eventLogger(log: Log): ReportEvent {
  return (about, text, level = "info") => log[level](about, text);
}
