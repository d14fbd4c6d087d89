/**
 * LameDuck: the time between a stop signal and the shutdown, in which queries are still answered while health checks
 * already fail.
 */

/** A signal that follows `signal` after as many milliseconds as `onStop` returns. */
export function afterLameDuck(signal: AbortSignal, onStop: () => number): AbortSignal {
  const over = new AbortController();
  const stop = (): void => {
    const ms = onStop();
    if (ms === 0) over.abort();
    else setTimeout(() => over.abort(), ms);
  };
  if (signal.aborted) stop();
  else signal.addEventListener("abort", stop, { once: true });
  return over.signal;
}
