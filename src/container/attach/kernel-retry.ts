/**
 * KernelRetry: when a namespace in which answers of the kernel have not arrived is tried again. Each try costs two changes
 * of rules, so the pauses grow. They start shorter after a change that may have removed the cause, such as rules of the
 * container, which may change them as often as it likes.
 */
import { LIMITS } from "../../base/limits.ts";
import { backoffMs } from "../../base/lib/backoff.ts";

export class KernelRetry {
  #failures = 0;
  #failedMs = Number.NEGATIVE_INFINITY;
  #isHurried = false;

  /** It does not work now. Failures count until there has been none for a long time. */
  fail(nowMs = performance.now()): void {
    const isFirst = nowMs - this.#failedMs > 2 * LIMITS.kernelRetryLastMs;
    this.#failures = isFirst ? 1 : this.#failures + 1;
    this.#failedMs = nowMs;
    this.#isHurried = false;
  }

  /** Something has changed in the namespace. */
  hurry(): void {
    this.#isHurried = true;
  }

  /** An operator wants to know: at the next verification. */
  forget(): void {
    this.#failures = 0;
  }

  /** Whether to try at this verification. */
  isDue(nowMs = performance.now()): boolean {
    if (this.#failures === 0) return true;
    const first = this.#isHurried ? LIMITS.kernelRetryAfterChangeMs : LIMITS.kernelRetryFirstMs;
    return nowMs - this.#failedMs >= backoffMs(this.#failures - 1, first, LIMITS.kernelRetryLastMs, RANDOM);
  }
}

/** Verifications are spread already. */
const RANDOM = 0.5;
