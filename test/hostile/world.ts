// Owns what is true in the world of the hostile tests: the addresses of names below ok.test.

const KEPT = Buffer.of(192, 0, 2, 7);
const TARGET = Buffer.of(192, 0, 2, 8);

export const WORLD = {
  // What is asked for again and again, and so comes out of the cache.
  kept: "kept.ok.test",
  // Of names that end so the address tells whether the query came with EDNS; it is not to be kept.
  edns: "edns.ok.test",
  // What attackers tell lies about.
  target: "target.ok.test",
  addressOf(name: string): Buffer | undefined {
    if (name === WORLD.kept) return KEPT;
    if (name === WORLD.target) return TARGET;
    const number = Number(/^n(\d+)\.ok\.test$/.exec(name)?.[1] ?? NaN);
    if (Number.isNaN(number)) return undefined;
    return Buffer.of(10, (number >> 16) & 0xff, (number >> 8) & 0xff, number & 0xff);
  },
};
