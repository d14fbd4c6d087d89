/**
 * Replacement: starts this program anew beside itself, as it is on disk by now, to take over. What does not come that far
 * changes nothing.
 */
import { spawn } from "node:child_process";

import { reasonOf } from "../base/lib/fault.ts";
import type { Log } from "../base/log/log.ts";
import { CALLS_DENIED } from "./deny-system-calls.ts";

const FLAG = "--replace";
/** Of a PID namespace. */
const FIRST = 1;

export function startReplacement(log: Log): void {
  if (process.pid === FIRST) {
    log.warn(
      "process 1 takes everybody along when it ends, and so cannot be replaced from inside; restart the container",
    );
    return;
  }
  const [, ...words] = process.argv;
  // A supervisor's watchdog is for whoever becomes its main process.
  const { WATCHDOG_PID: _, ...environment } = process.env;
  const child = spawn(process.execPath, [...process.execArgv, ...words, ...(words.includes(FLAG) ? [] : [FLAG])], {
    stdio: "inherit",
    env: { ...environment, [CALLS_DENIED]: "1" },
  });
  child.unref();
  log.info({ process: child.pid }, "another process is started to take over");
  child.on("error", (error) => log.warn({ reason: reasonOf(error) }, "it could not be started; serving on"));
  child.on("exit", (code, signal) => log.warn({ code, signal }, "the process that was to take over has ended"));
}
