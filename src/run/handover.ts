/**
 * HandingOver: how a run makes room for its successor, and takes it back if that does not come.
 *
 *   serving --(somebody wants to take over)--> still --(it serves)--> gone
 *      ^                                         |
 *      +---------(it came to nothing)------------+
 *
 * Whoever holds the instance's lock serves: so where nobody is left who could tell, the lock does.
 */
import { reasonOf } from "../base/lib/fault.ts";
import type { Log } from "../base/log/log.ts";
import type { ContainerSide } from "./container-side.ts";
import type { ExclusiveResources } from "./exclusive-resources.ts";
import type { RunKeeper } from "./run-keeper.ts";

interface HandoverParts {
  readonly log: Log;
  readonly containerSide: ContainerSide;
  readonly presence: ExclusiveResources;
  readonly safekeeping: RunKeeper;
  /** Somebody else serves: this process, or 0. */
  readonly onGone: (successor: number) => void;
}

export class Handover {
  readonly #parts: HandoverParts;
  #state: "serving" | "still" | "gone" = "serving";
  /** One step after the other. */
  #last: Promise<void> = Promise.resolve();

  constructor(parts: HandoverParts) {
    this.#parts = parts;
  }

  /** Whether what is served by may be ours to touch. */
  get isServing(): boolean {
    return this.#state === "serving";
  }

  requested(): void {
    this.#next(async () => {
      if (this.#state !== "serving") return;
      const { log, containerSide, presence, safekeeping } = this.#parts;
      log.info("another process is to take over; standing still");
      this.#state = "still";
      await containerSide.standStill();
      presence.release();
      safekeeping.yield();
    });
  }

  cancelled(): void {
    this.#next(async () => {
      if (this.#state !== "still") return;
      await this.#parts.presence.acquire();
      this.#state = "serving";
      this.#parts.containerSide.goOn();
      this.#parts.log.warn("nobody took over; serving on");
    });
  }

  completed(successor: number): void {
    this.#next(() => {
      if (this.#state === "gone") return;
      this.#state = "gone";
      this.#parts.safekeeping.detach();
      this.#parts.log.info({ successor }, "another process has taken over");
      this.#parts.onGone(successor);
    });
  }

  #next(step: () => Promise<void> | void): void {
    this.#last = this.#last.then(step).catch((error: unknown) => {
      this.#parts.log.warn({ reason: reasonOf(error) }, "somebody else serves by now");
      this.completed(0);
    });
  }
}
