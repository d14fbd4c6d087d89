// WORLD: the correct addresses of the names below ok.test.

const KEPT = Buffer.of(192, 0, 2, 7);
const TARGET = Buffer.of(192, 0, 2, 8);

export const WORLD = {
  // Queried again and again, so answered from the cache.
  kept: "kept.ok.test",
  // For names with this ending the address shows whether the query had EDNS; not to be cached.
  edns: "edns.ok.test",
  // The name that attackers try to forge.
  target: "target.ok.test",
  addressOf(name: string): Buffer | undefined {
    if (name === WORLD.kept) return KEPT;
    if (name === WORLD.target) return TARGET;
    const number = Number(/^n(\d+)\.ok\.test$/.exec(name)?.[1] ?? NaN);
    if (Number.isNaN(number)) return undefined;
    return Buffer.of(10, (number >> 16) & 0xff, (number >> 8) & 0xff, number & 0xff);
  },
};
