/**
 * Handover: the old process's side of a takeover: it pauses for the new process, and resumes if that does not take over.
 *
 *   serving --(takeover requested)--> paused --(the new process serves)--> gone
 *      ^                                |
 *      +----------(cancelled)-----------+
 *
 * The process that holds the instance lock serves. So the lock alone decides in cases of doubt.
 */
import { Fault, reasonOf } from "../base/lib/fault.ts";
import { LIMITS } from "../base/limits.ts";
import { Retry } from "../base/lib/retry.ts";
import type { Log } from "../base/log/log.ts";
import type { ContainerSide } from "./container-side.ts";
import type { ExclusiveResources } from "./exclusive-resources.ts";
import type { RunKeeper } from "./run-keeper.ts";

interface HandoverParts {
  readonly log: Log;
  readonly containerSide: ContainerSide;
  readonly resources: ExclusiveResources;
  readonly keeper: RunKeeper;
  /** Another process serves now: its pid, or 0 where unknown. */
  readonly onCompleted: (successor: number) => void;
}

export class Handover {
  readonly #parts: HandoverParts;
  #state: "serving" | "paused" | "gone" = "serving";
  /** Steps run one after the other. */
  #last: Promise<void> = Promise.resolve();
  readonly #retry = new Retry(
    () => this.#next(async () => await this.#reopen()),
    LIMITS.retryFirstMs,
    LIMITS.retryLastMs,
  );
  /** Something could not be opened again; that is logged once. */
  #hasFailed = false;

  constructor(parts: HandoverParts) {
    this.#parts = parts;
  }

  /** Whether the served namespaces may be ours to touch. */
  get isServing(): boolean {
    return this.#state === "serving";
  }

  requested(): void {
    this.#next(async () => {
      if (this.#state !== "serving") return;
      const { log, containerSide, resources, keeper } = this.#parts;
      log.info("takeover requested, pausing");
      this.#state = "paused";
      this.#retry.close();
      try {
        await containerSide.pause();
      } catch (error) {
        // The other process waits in vain, and fails.
        log.warn({ reason: reasonOf(error) }, "cannot pause for a takeover, serving on");
        this.#state = "serving";
        containerSide.resume();
        this.#retry.note(this.#hasFailed);
        return;
      }
      resources.release();
      keeper.yield();
    });
  }

  cancelled(): void {
    this.#next(async () => {
      if (this.#state !== "paused") return;
      this.#parts.resources.takeLock();
      this.#state = "serving";
      this.#parts.containerSide.resume();
      this.#parts.log.warn("takeover failed, resuming");
      await this.#reopen();
    });
  }

  completed(successor: number): void {
    this.#next(() => {
      if (this.#state === "gone") return;
      this.#state = "gone";
      this.#parts.keeper.detach();
      this.#parts.log.info({ successor }, "the new process took over");
      this.#parts.onCompleted(successor);
    });
  }

  /**
   * Any process could take the metrics address during the pause. Containers do not need it, so this process serves them without
   * it, and tries again.
   */
  async #reopen(): Promise<void> {
    if (this.#state !== "serving") return;
    const { log, resources } = this.#parts;
    const hadFailed = this.#hasFailed;
    try {
      await resources.open();
      this.#hasFailed = false;
      if (hadFailed) log.info("opened the control socket and the metrics address again");
    } catch (error) {
      this.#hasFailed = true;
      const remedy = error instanceof Fault ? error.remedy : undefined;
      if (!hadFailed)
        log.warn(
          { reason: reasonOf(error), remedy },
          "cannot reopen the control socket or the metrics address, retrying",
        );
    }
    this.#retry.note(this.#hasFailed);
  }

  #next(step: () => Promise<void> | void): void {
    this.#last = this.#last.then(step).catch((error: unknown) => {
      this.#parts.log.warn({ reason: reasonOf(error) }, "cannot resume, another process serves");
      this.completed(0);
    });
  }
}
