/**
 * Retry: retries an action with backoff as long as it fails.
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

  /** Reports the outcome of a try; schedules the next one after a failure. */
  note(hasFailed: boolean): void {
    this.close();
    if (!hasFailed) {
      this.#failures = 0;
      return;
    }
    const waitMs = backoffMs(this.#failures++, this.#firstMs, this.#lastMs, Math.random());
    this.#timer = setTimeout(() => guard.run("timer", 0, this.#act), waitMs).unref();
  }

  /** Stops retrying until the next `note`. */
  close(): void {
    clearTimeout(this.#timer);
  }
}
