/**
 * NamespaceJobs: what changes something in one namespace, one job at a time. A job may have to wait for a lock that a process
 * of the namespace holds, for as long as that process likes. Nobody else waits with it:
 *
 *   begun --> slow: others take their turn --> late: reported, and charged to the container --> done: the next job begins
 *      \_________________\____________________________________________________________________/
 *
 * However long it takes, it is done as soon as the lock is free, and until then no other job of the namespace begins.
 */
import { LIMITS } from "../../base/limits.ts";

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
export type OnWait = (stage: WaitStage | "done", waitedMs: number) => void;

/** Whoever goes on when a job reaches a stage. */
interface Watcher {
  readonly stage: WaitStage;
  readonly release: () => void;
}

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
