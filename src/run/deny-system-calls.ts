/**
 * DenySystemCalls: the system calls that a run never makes. The kernel refuses them to every thread from then on, and
 * to every program that this process starts.
 */
import type { RunSettings } from "../config/settings.ts";
import type { FeatureEntry } from "../config/feature-entry.ts";
import { FEATURES } from "../features.ts";
import { DENIED_TO_MAIN } from "../keeper/denied-calls.ts";
import { denyCalls } from "../kernel/seccomp.ts";
import type { SystemCall } from "../kernel/system-calls.ts";
import { reasonOf } from "../base/lib/fault.ts";
import type { Log } from "../base/log/log.ts";

/** Set for a new process, which inherits the filter: each further filter would be checked at every system call. */
export const CALLS_DENIED = "DNS11_CALLS_DENIED";

export function denyUnusedCalls(settings: RunSettings, log: Log): void {
  if (process.env[CALLS_DENIED] === "1") return;
  try {
    const entries: readonly FeatureEntry[] = FEATURES;
    const made = new Set(entries.flatMap(({ calls }) => calls?.(settings) ?? []));
    if (!denyCalls(DENIED_TO_MAIN.filter((call) => !made.has(call))))
      log.info({ architecture: process.arch }, "system call filter is not supported on this architecture");
  } catch (error) {
    // A supervisor's own filter may forbid seccomp; that filter then applies.
    log.info({ reason: reasonOf(error) }, "cannot install the system call filter");
  }
}

/** The same for calls that a feature makes, once it is known that there is nothing to make them for. */
export function denyFurtherCalls(calls: readonly SystemCall[]): void {
  if (process.env[CALLS_DENIED] === "1") return;
  try {
    denyCalls(calls);
  } catch {
    // The same as above, where it has been logged.
  }
}
