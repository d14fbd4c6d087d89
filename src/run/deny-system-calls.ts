/**
 * Which system calls a run can make: all but those that it never does. The kernel refuses them to every thread from here on,
 * and to all that this process starts.
 */
import type { RunSettings } from "../config/settings.ts";
import { DENIED_TO_MAIN } from "../keeper/denied-calls.ts";
import { denyCalls } from "../kernel/seccomp.ts";
import { reasonOf } from "../base/lib/fault.ts";
import type { Log } from "../base/log/log.ts";

/** Says to a successor that it has been done: each further list would be another one that each call passes. */
export const CALLS_DENIED = "DNS11_CALLS_DENIED";

export function denyUnusedCalls({ capabilities }: RunSettings, log: Log): void {
  if (capabilities === "keep" || process.env[CALLS_DENIED] === "1") return;
  try {
    if (!denyCalls(DENIED_TO_MAIN))
      log.info({ architecture: process.arch }, "system calls are not denied on this machine");
  } catch (error) {
    // A supervisor's own list may leave it out, and has its own.
    log.info({ reason: reasonOf(error) }, "system calls cannot be denied here");
  }
}
