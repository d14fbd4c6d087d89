/**
 * Signals: how commands that run until they are stopped learn of it.
 */

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
