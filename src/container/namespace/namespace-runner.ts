/**
 * The bracket: into another network namespace, do what has to be done there, home again, all on one thread and without
 * giving up control in between. A socket belongs to the namespace it was made in for ever, so being there for a tenth of
 * a millisecond is enough.
 *
 * Nothing inside may await or start a thread. If the way home fails the process ends at once: a resolver that goes on in
 * a stranger's namespace would open its next sockets there.
 */
import { closeSync, openSync, fstatSync } from "node:fs";
import { stat } from "node:fs/promises";

import { setNetworkNamespace, unshareNetworkNamespace } from "../../kernel/libc.ts";

/** The steps that a test may make fail. */
export interface NamespaceSteps {
  readonly enter: (fd: number) => void;
  readonly abort: () => never;
}

const REAL_STEPS: NamespaceSteps = { enter: setNetworkNamespace, abort: () => process.abort() };

/** A namespace's identity as long as anybody holds it: device and inode. */
export type NamespaceId = string;

export function namespaceId(fd: number): NamespaceId {
  const { dev, ino } = fstatSync(fd);
  return `${dev}:${ino}`;
}

export class NamespaceRunner {
  readonly #home: number;
  readonly #steps: NamespaceSteps;
  /** Our own namespace, which is never to be entered as somebody else's. */
  readonly homeId: NamespaceId;

  constructor(steps: NamespaceSteps = REAL_STEPS) {
    this.#steps = steps;
    this.#home = openSync("/proc/thread-self/ns/net", "r");
    this.homeId = namespaceId(this.#home);
  }

  /** Does `work` inside the namespace behind `fd`; what it throws arrives here, at home. */
  within<T>(fd: number, work: () => T): T {
    this.#steps.enter(fd);
    try {
      return work();
    } finally {
      this.#return();
    }
  }

  /** Does `work` inside a new, empty namespace that nobody else sees and that is gone afterwards. */
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
 * Has Node start its pool of threads now, at home. They are started at first use and would stay for ever in the namespace
 * that the calling thread happened to be in.
 */
export async function warmThreadPool(): Promise<void> {
  const threads = Number(process.env["UV_THREADPOOL_SIZE"] ?? 4);
  await Promise.all(Array.from({ length: threads }, () => stat("/")));
}
