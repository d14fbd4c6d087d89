/** How long to wait before trying again: doubling, up to a last value, with a spread so that many do not come at once. */
export function backoffMs(attempt: number, firstMs: number, lastMs: number, random: number): number {
  const waitMs = Math.min(lastMs, firstMs * 2 ** Math.min(attempt, 30));
  return Math.round(waitMs * (0.75 + random / 2));
}
