/**
 * Retry: something that is tried again, later and later, as long as it fails.
 */
import { backoffMs } from "./backoff.ts";
import { guard } from "./guard.ts";

export class Retry {
  readonly #act: () => void;
  readonly #firstMs: number;
  readonly #lastMs: number;
  #failures = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(act: () => void, firstMs: number, lastMs: number) {
    this.#act = act;
    this.#firstMs = firstMs;
    this.#lastMs = lastMs;
  }

  /** It has been tried once more. */
  note(hasFailed: boolean): void {
    this.close();
    if (!hasFailed) {
      this.#failures = 0;
      return;
    }
    const waitMs = backoffMs(this.#failures++, this.#firstMs, this.#lastMs, Math.random());
    this.#timer = setTimeout(() => guard.run("timer", 0, this.#act), waitMs).unref();
  }

  /** It is not tried any more, until it is noted again. */
  close(): void {
    clearTimeout(this.#timer);
  }
}
