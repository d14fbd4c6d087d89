/**
 * Metered: an answerer and a forwarder that count what they do. They stand around the real ones, which know nothing of it.
 */
import type { Answerer, Deferred } from "./answer.ts";
import { DEFERRED, DROPPED } from "./answer.ts";
import type { Asker } from "./asker.ts";
import type { AnswersAtOnce, Forward } from "./listen/ports.ts";
import type { Meter } from "./meter.ts";

const RCODE_AT = 3;
const RCODE_BITS = 15;

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

export function meteredForward(forward: Forward, meter: Meter): Forward {
  return (asker, deferred, transport, respond) => {
    const startMs = performance.now();
    forward(asker, deferred, transport, (reply, how, server) => {
      meter.delivered(deferred.type, transport === "tcp", (reply[RCODE_AT] as number) & RCODE_BITS, startMs);
      respond(reply, how, server);
    });
  };
}
