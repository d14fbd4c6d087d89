/**
 * LameDuck: who is told to stop may answer on for a while, so that whoever sends it work finds out first.
 */

/** A signal that follows `signal` as many milliseconds later as `onStop` says when it is told. */
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
