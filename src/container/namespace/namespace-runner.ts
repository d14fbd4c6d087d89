/**
 * NamespaceRunner: runs a function inside another network namespace: enter, call, return, on one thread and without
 * yielding. A socket belongs for ever to the namespace in which it was created, so a tenth of a millisecond inside is
 * enough.
 *
 * The function must not await or start a thread. If the return fails the process aborts at once: a resolver left in a
 * container's namespace would open its next sockets there.
 */
import { closeSync, openSync, fstatSync } from "node:fs";
import { stat } from "node:fs/promises";

import { setNetworkNamespace, unshareNetworkNamespace } from "../../kernel/libc.ts";

/** The steps that a test can make fail. */
export interface NamespaceSteps {
  readonly enter: (fd: number) => void;
  readonly abort: () => never;
}

const REAL_STEPS: NamespaceSteps = { enter: setNetworkNamespace, abort: () => process.abort() };

/** Device and inode of a namespace: its identity as long as a descriptor to it is open. */
export type NamespaceId = string;

export function namespaceId(fd: number): NamespaceId {
  const { dev, ino } = fstatSync(fd);
  return `${dev}:${ino}`;
}

export class NamespaceRunner {
  readonly #home: number;
  readonly #steps: NamespaceSteps;
  /** dns11's own namespace, which must never be treated as a container's. */
  readonly homeId: NamespaceId;

  constructor(steps: NamespaceSteps = REAL_STEPS) {
    this.#steps = steps;
    this.#home = openSync("/proc/thread-self/ns/net", "r");
    this.homeId = namespaceId(this.#home);
  }

  /** Runs `work` inside the namespace of `fd`. The thread is back in its own namespace when this returns or throws. */
  within<T>(fd: number, work: () => T): T {
    this.#steps.enter(fd);
    try {
      return work();
    } finally {
      this.#return();
    }
  }

  /** Runs `work` inside a new, empty namespace that disappears afterwards. */
  withinScratch<T>(work: () => T): T {
    unshareNetworkNamespace();
    try {
      return work();
    } finally {
      this.#return();
    }
  }

  close(): void {
    closeSync(this.#home);
  }

  #return(): void {
    try {
      this.#steps.enter(this.#home);
    } catch {
      this.#steps.abort();
    }
  }
}

/**
 * Makes Node start its thread pool now, in our own namespace. Threads start at first use and stay for ever in the
 * namespace of the thread that started them.
 */
export async function warmThreadPool(): Promise<void> {
  const threads = Number(process.env["UV_THREADPOOL_SIZE"] ?? 4);
  await Promise.all(Array.from({ length: threads }, () => stat("/")));
}
