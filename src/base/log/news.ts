/**
 * News that go into the log, for those who tell them without knowing of logs.
 */
import type { TellNews } from "../model/news.ts";
import type { Log } from "./log.ts";

export function newsInto(log: Log): TellNews {
  return (about, text, level = "info") => log[level](about, text);
}
