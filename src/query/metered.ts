/**
 * MeteredAnswerer: an answerer that counts what it does. It stands around the real one, which knows nothing of it.
 */
import type { Answerer, Deferred } from "./answer.ts";
import { DEFERRED, DROPPED } from "./answer.ts";
import type { Asker } from "./asker.ts";
import type { AnswersAtOnce } from "./listen/ports.ts";
import type { Meter } from "./meter.ts";

export class MeteredAnswerer implements AnswersAtOnce {
  readonly #inner: Answerer;
  readonly #meter: Meter;

  constructor(inner: Answerer, meter: Meter) {
    this.#inner = inner;
    this.#meter = meter;
  }

  answer(asker: Asker, block: Buffer, offset: number, length: number, isStream: boolean): number {
    const { cached } = asker.counters;
    const result = this.#inner.answer(asker, block, offset, length, isStream);
    if (result === DROPPED) {
      this.#meter.counts.dropped++;
      return result;
    }
    if (this.#inner.wasOurs) return result;
    const { lastType, lastRcode } = this.#inner;
    this.#meter.asked(lastType, isStream);
    if (result !== DEFERRED) this.#meter.answered(lastType, isStream, lastRcode, asker.counters.cached !== cached);
    return result;
  }

  takeDeferred(block: Buffer): Deferred {
    return this.#inner.takeDeferred(block);
  }
}
