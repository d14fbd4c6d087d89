/** The jitter of what is spread already, or alone. */
export const NO_JITTER = 0.5;

/** The delay before a retry: doubles up to a last value, with jitter so that many do not retry at once. */
export function backoffMs(attempt: number, firstMs: number, lastMs: number, random: number): number {
  const waitMs = Math.min(lastMs, firstMs * 2 ** Math.min(attempt, 30));
  return Math.round(waitMs * (0.75 + random / 2));
}
