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
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { NetNamespace } from "../../kernel/net-namespace.ts";
import { Passages } from "./passages.ts";
import { LIMITS, POOL_VARIABLE } from "../../base/limits.ts";

/** The steps that a test can make fail. */
interface NamespaceSteps {
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

/** How long a job has waited. */
export type WaitStage = "slow" | "late";

const TICK_MS = 25;
/** Between two ticks, at most this counts: a process that gets no processor time does not wait for a lock. */
const TICK_MS_MAX = 2 * TICK_MS;
const STAGES: readonly (readonly [WaitStage, number])[] = [
  ["slow", LIMITS.jobSlowMs],
  ["late", LIMITS.jobLateMs],
];

/** Called when a job that waits reaches a stage, with the time that it has waited; and when one that did is done after all. */
type OnWait = (stage: WaitStage | "done", waitedMs: number) => void;

/** Whoever goes on when a job reaches a stage. */
interface Watcher {
  readonly stage: WaitStage;
  readonly release: () => void;
}

/**
 * What changes something in one namespace, one job at a time. A job may have to wait for a lock that a process
 * of the namespace holds, for as long as that process likes. Nobody else waits with it:
 *
 *   begun --> slow: others take their turn --> late: reported, and charged to the container --> done: the next job begins
 *      \_________________\____________________________________________________________________/
 *
 * However long it takes, it is done as soon as the lock is free, and until then no other job of the namespace begins.
 */
export class NamespaceJobs {
  readonly #onWait: OnWait;
  #last: Promise<unknown> = Promise.resolve();
  /** The stage of the job that runs, while it waits. */
  #stage: WaitStage | undefined;
  #watchers: readonly Watcher[] = [];

  constructor(onWait: OnWait) {
    this.#onWait = onWait;
  }

  /** Whether a job has been waiting for too long. */
  get isLate(): boolean {
    return this.#stage === "late";
  }

  /** Runs the job after those before it. */
  async run<T>(job: () => Promise<T>): Promise<T> {
    const mine = this.#last.then(async () => await this.#watched(job));
    this.#last = mine.then(ignore, ignore);
    return await mine;
  }

  /** Resolves when the jobs so far are done. */
  async idle(): Promise<void> {
    await this.#last;
  }

  /** Resolves when `work` has ended, or when a job has waited this long: others need not wait for it. */
  async endOf(work: Promise<unknown>, orStage: WaitStage): Promise<void> {
    // Nobody may be left who would handle its failure.
    work.catch(ignore);
    if (this.#hasReached(orStage)) return;
    let watcher: Watcher | undefined;
    const reached = new Promise<void>((release) => {
      watcher = { stage: orStage, release };
      this.#watchers = [...this.#watchers, watcher];
    });
    try {
      await Promise.race([work, reached]);
    } finally {
      this.#watchers = this.#watchers.filter((each) => each !== watcher);
    }
  }

  async #watched<T>(job: () => Promise<T>): Promise<T> {
    let waitedMs = 0;
    let lastMs = performance.now();
    const timer = setInterval(() => {
      const nowMs = performance.now();
      waitedMs += Math.min(nowMs - lastMs, TICK_MS_MAX);
      lastMs = nowMs;
      for (const [stage, ms] of STAGES) if (waitedMs >= ms && !this.#hasReached(stage)) this.#reach(stage, waitedMs);
    }, TICK_MS).unref();
    try {
      return await job();
    } finally {
      clearInterval(timer);
      const hasWaited = this.#stage !== undefined;
      this.#stage = undefined;
      if (hasWaited) this.#onWait("done", waitedMs);
    }
  }

  #hasReached(stage: WaitStage): boolean {
    return this.#stage === stage || this.#stage === "late";
  }

  #reach(stage: WaitStage, waitedMs: number): void {
    this.#stage = stage;
    for (const watcher of this.#watchers) if (watcher.stage === stage) watcher.release();
    this.#onWait(stage, waitedMs);
  }
}

function ignore(): void {
  // Whoever began it handles its end.
}
