/**
 * KernelRetry: when a namespace in which answers of the kernel have not arrived is tried again. Each try costs two changes
 * of rules, so the pauses grow. They are shorter after a change of the container's rules, which may have removed the cause;
 * but they grow, because a container may change its rules as often as it likes.
 */
import { LIMITS } from "../../base/limits.ts";
import { NO_JITTER, backoffMs } from "../../base/lib/backoff.ts";

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
    // After the first failure a change is followed at once.
    const steps = this.#isHurried ? this.#failures - 2 : this.#failures - 1;
    if (steps < 0) return true;
    const firstMs = this.#isHurried ? LIMITS.kernelRetryAfterChangeMs : LIMITS.kernelRetryFirstMs;
    return nowMs - this.#failedMs >= backoffMs(steps, firstMs, LIMITS.kernelRetryLastMs, NO_JITTER);
  }
}
