/**
 * Replacement: starts the program that is on disk now as a second process, which takes over. If it fails, nothing
 * changes.
 */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";

import { reasonOf } from "../base/lib/fault.ts";
import type { Log } from "../base/log/log.ts";
import { CALLS_DENIED } from "./deny-system-calls.ts";

const FLAG = "--replace";
const NOTIFY_SOCKET = "NOTIFY_SOCKET";

/**
 * Whether a process that a supervisor follows has started this one. The supervisor follows this one only after a takeover; if that
 * process ends without one, it starts the program again. Only `startReplacement` sets CALLS_DENIED.
 */
export function isStartedBySupervised(): boolean {
  return process.env[CALLS_DENIED] === "1" && (process.env[NOTIFY_SOCKET] ?? "") !== "";
}

/** Whether a supervisor such as systemd follows that process. */
export function isSupervised(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/environ`, "latin1")
      .split("\0")
      .some((each) => each.startsWith(`${NOTIFY_SOCKET}=`));
  } catch {
    return false;
  }
}

/** The first process of a PID namespace. */
const INIT_PID = 1;

export function startReplacement(log: Log): void {
  if (process.pid === INIT_PID) {
    log.warn("cannot replace process 1 of a container, restart the container instead");
    return;
  }
  const [, ...args] = process.argv;
  // The supervisor's watchdog is for the process that becomes its main process.
  const { WATCHDOG_PID: _, ...environment } = process.env;
  const child = spawn(process.execPath, [...process.execArgv, ...args, ...(args.includes(FLAG) ? [] : [FLAG])], {
    stdio: "inherit",
    env: { ...environment, [CALLS_DENIED]: "1" },
  });
  child.unref();
  log.info({ pid: child.pid }, "started a new process to take over");
  child.on("error", (error) =>
    log.warn({ reason: reasonOf(error) }, "cannot start a new process to take over; still serving"),
  );
  child.on("exit", (code, signal) => log.warn({ code, signal }, "the new process exited before it took over"));
}
