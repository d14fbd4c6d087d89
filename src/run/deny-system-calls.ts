/**
 * DenySystemCalls: the system calls that a run never makes. The kernel refuses them to every thread from then on, and
 * to every program that this process starts.
 */
import type { RunSettings } from "../config/settings.ts";
import { DENIED_TO_MAIN } from "../keeper/denied-calls.ts";
import { denyCalls } from "../kernel/seccomp.ts";
import { reasonOf } from "../base/lib/fault.ts";
import type { Log } from "../base/log/log.ts";

/** Set for a new process, which inherits the filter: each further filter would be checked at every system call. */
export const CALLS_DENIED = "DNS11_CALLS_DENIED";

export function denyUnusedCalls({ answers }: RunSettings, log: Log): void {
  if (process.env[CALLS_DENIED] === "1") return;
  try {
    const denied = answers !== "process" ? DENIED_TO_MAIN.filter((call) => call !== "bpf") : DENIED_TO_MAIN;
    if (!denyCalls(denied))
      log.info({ architecture: process.arch }, "system call filter is not supported on this architecture");
  } catch (error) {
    // A supervisor's own filter may forbid seccomp; that filter then applies.
    log.info({ reason: reasonOf(error) }, "cannot install the system call filter");
  }
}

/** The same for the call that loads programs into the kernel, once it is known that there are none to load. */
export function denyKernelAnswers({ answers }: RunSettings): void {
  if (process.env[CALLS_DENIED] === "1" || answers === "process") return;
  try {
    denyCalls(["bpf"]);
  } catch {
    // The same as above, where it has been logged.
  }
}
