/**
 * UnreadFiles: containers with a file that could not be read without waiting, because a process holds a lease on it.
 * They are tried again later: the kernel breaks a lease 45 seconds after our attempt, unless its holder takes another
 * one at once.
 */
import { LIMITS } from "../../base/limits.ts";

export class UnreadFiles {
  readonly #retry: (containerIds: readonly string[]) => void;
  readonly #ids = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  constructor(retry: (containerIds: readonly string[]) => void) {
    this.#retry = retry;
  }

  add(containerId: string): void {
    this.#ids.add(containerId);
    this.#timer ??= setTimeout(() => {
      const ids = [...this.#ids];
      this.#ids.clear();
      this.#timer = undefined;
      this.#retry(ids);
    }, LIMITS.unreadRetryMs).unref();
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
