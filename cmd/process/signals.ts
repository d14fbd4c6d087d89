/**
 * Signals: how commands that run until they are stopped learn of it, and what they say if dns11 stops first.
 */
import { readFileSync } from "node:fs";

import { Fault } from "../../src/base/lib/fault.ts";

/** Aborts at the first SIGTERM or SIGINT, or one of these, for a graceful shutdown; a second one exits at once. */
export function abortOnSignal(...others: readonly NodeJS.Signals[]): AbortSignal {
  const controller = new AbortController();
  const onSignal = (): void => {
    if (controller.signal.aborted) process.exit(1);
    controller.abort();
  };
  for (const name of ["SIGTERM", "SIGINT", ...others] as const) process.on(name, onSignal);
  return controller.signal;
}

/** Whether the terminal sends its signals to this process; then it sends them to its children, too. */
export function isInForeground(): boolean {
  const stat = readFileSync("/proc/self/stat", "latin1");
  const [, , group, , , foreground] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return group === foreground;
}

export function stopped(): Fault {
  return new Fault("ENDED", "dns11 has stopped, or another process has replaced it", {
    remedy: "Run the command again. If dns11 does not run any more, its log says why.",
  });
}
