/**
 * Signals: how commands that run until they are stopped learn of it, and what they say if dns11 stops first.
 */
import { Fault } from "../../src/base/lib/fault.ts";

/** Aborts at the first SIGTERM or SIGINT, for a graceful shutdown; a second one exits at once. */
export function abortOnSignal(): AbortSignal {
  const controller = new AbortController();
  const onSignal = (): void => {
    if (controller.signal.aborted) process.exit(1);
    controller.abort();
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  return controller.signal;
}

export function stopped(): Fault {
  return new Fault("ENDED", "dns11 has stopped", {
    remedy: "Its log says why. Start it, then run the command again.",
  });
}
