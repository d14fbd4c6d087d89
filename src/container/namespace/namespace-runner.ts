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

import { Fault } from "../../base/lib/fault.ts";
import { setNetworkNamespace, unshareNetworkNamespace } from "../../kernel/libc.ts";
import { POOL_VARIABLE } from "../../kernel/in-pool.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { NetNamespace } from "../../kernel/net-namespace.ts";
import { Passages } from "./passages.ts";

/** The steps that a test can make fail. */
export interface NamespaceSteps {
  readonly enter: (fd: number) => void;
  readonly abort: () => never;
}

const REAL_STEPS: NamespaceSteps = { enter: setNetworkNamespace, abort: () => process.abort() };

/** The namespace that the thread is in. */
const CURRENT = "/proc/thread-self/ns/net";

/** Device and inode of a namespace: its identity as long as a descriptor to it is open. */
export type NamespaceId = string;

export function namespaceId(fd: number): NamespaceId {
  const { dev, ino } = fstatSync(fd);
  return `${dev}:${ino}`;
}

export class NamespaceRunner {
  readonly #home: number;
  readonly #steps: NamespaceSteps;
  #isClosed = false;
  /** dns11's own namespace, which must never be treated as a container's. */
  readonly homeId: NamespaceId;
  /** How this process's own queries pass its rules. */
  readonly passages = new Passages();

  constructor(steps: NamespaceSteps = REAL_STEPS) {
    this.#steps = steps;
    this.#home = openSync(CURRENT, "r");
    this.homeId = namespaceId(this.#home);
  }

  /** Runs `work` inside the namespace of `fd`. The thread is back in its own namespace when this returns or throws. */
  within<T>(fd: number, work: () => T): T {
    // A change that waited for a lock may go on while the process ends.
    if (this.#isClosed) throw new Fault("ENDED", "No namespace can be entered any more");
    this.#steps.enter(fd);
    try {
      return work();
    } finally {
      this.#return();
    }
  }

  /** The namespace of `fd`, which must stay open as long as the result is used. */
  namespaceOf(fd: number, memory: NetlinkMemory): NetNamespace {
    return new NetNamespace(fd, (work) => this.within(fd, work), memory);
  }

  /** The namespace that this process is in. */
  homeNamespace(memory: NetlinkMemory): NetNamespace {
    return new NetNamespace(this.#home, (work) => work(), memory);
  }

  /** Runs `work` with a new, empty namespace that disappears afterwards. */
  async withScratch<T>(memory: NetlinkMemory, work: (netns: NetNamespace) => Promise<T>): Promise<T> {
    const fd = this.withinScratch(() => openSync(CURRENT, "r"));
    try {
      return await work(this.namespaceOf(fd, memory));
    } finally {
      closeSync(fd);
    }
  }

  /** Runs `work` inside a new, empty namespace that disappears afterwards, unless `work` holds it. */
  withinScratch<T>(work: () => T): T {
    unshareNetworkNamespace();
    try {
      return work();
    } finally {
      this.#return();
    }
  }

  close(): void {
    this.#isClosed = true;
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
  const threads = Number(process.env[POOL_VARIABLE] ?? 4);
  await Promise.all(Array.from({ length: threads }, () => stat("/")));
}
