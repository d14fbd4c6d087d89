// Owns the fuzzer's random numbers: each input depends on the run's seed and its own number only, so that one input can
// be reproduced without those before it.

export class Random {
  #state: number;

  constructor(seed: number, index: number) {
    // Spreads neighbouring numbers.
    this.#state = (Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(index + 1, 0xc2b2ae35)) | 0;
    this.bits();
  }

  // 32 bits, by splitmix.
  bits(): number {
    this.#state = (this.#state + 0x9e3779b9) | 0;
    let x = this.#state;
    x = Math.imul(x ^ (x >>> 16), 0x21f0aaad);
    x = Math.imul(x ^ (x >>> 15), 0x735a2d97);
    return (x ^ (x >>> 15)) >>> 0;
  }

  below(bound: number): number {
    return Math.floor((this.bits() / 0x1_0000_0000) * bound);
  }

  // True once in `times` on average.
  once(inSoMany: number): boolean {
    return this.below(inSoMany) === 0;
  }

  pick<T>(from: readonly T[]): T {
    const picked = from[this.below(from.length)];
    if (picked === undefined) throw new Error("nothing to pick from");
    return picked;
  }

  bytes(length: number): Buffer {
    return Buffer.from(Array.from({ length }, () => this.below(256)));
  }
}
