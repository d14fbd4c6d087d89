/**
 * AttachmentLog: what the log says when a container is attached, or cannot be: who answers it then. What repeats is limited
 * per container.
 */
import type { Log } from "../../base/log/log.ts";
import type { RateLimitedLog } from "../../base/log/rate-limited-log.ts";
import type { LockWait } from "../../container/attach/attachment-parts.ts";
import type { AttachmentState } from "../../container/attach/attachment-state.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";

interface AttachmentLogParts {
  readonly log: Log;
  readonly limitedLog: RateLimitedLog;
  readonly factOf: (id: string) => ContainerFact | undefined;
  /** What it means that a namespace is not served which is no container's. */
  readonly unserved: (id: string) => string | undefined;
}

const HELD = "nobody answers instead, because a policy is enforced";
const MS_PER_SECOND = 1_000;

export class AttachmentLog {
  readonly #parts: AttachmentLogParts;
  /** Containers whose namespace was gone. The engine tells a moment later that one has ended; a warning would be false. */
  readonly #gone = new Set<string>();

  constructor(parts: AttachmentLogParts) {
    this.#parts = parts;
  }

  onState(id: string, container: string, state: AttachmentState, wasFailed: boolean): void {
    const { log, limitedLog } = this.#parts;
    if (state.kind === "attached" && wasFailed) {
      limitedLog.log("info", container, { container }, "attached again", { topic: "attaching" });
    } else if (state.kind === "attached") log.debug({ container }, "attached");
    if (state.kind !== "failed") {
      this.#gone.delete(id);
      return;
    }
    const { code, reason, culprits, isHeld } = state;
    if (code === "NAMESPACE_GONE" && !this.#gone.has(id)) {
      this.#gone.add(id);
      log.debug({ container, reason }, "namespace is gone, perhaps with its container");
      return;
    }
    const about = { container, code, reason, culprits };
    limitedLog.log("warn", container, about, `not attached, ${isHeld ? HELD : this.#whoAnswers(id, code)}`, {
      topic: "attaching",
    });
  }

  onLocked(container: string, { isWaiting, isOwn, waitedMs }: LockWait): void {
    const { limitedLog } = this.#parts;
    const about = { container, seconds: Math.round(waitedMs / MS_PER_SECOND) };
    const options = { topic: "lock" };
    if (!isWaiting) limitedLog.log("info", container, about, "changes of rules go on", options);
    else if (isOwn) limitedLog.log("warn", container, about, "a process of the container locks its rules", options);
    else limitedLog.log("warn", container, about, "changes of rules wait for another container", options);
  }

  onLeft(container: string): void {
    this.#parts.log.warn({ container }, "a policy is enforced, but Docker's resolver answers from now on");
  }

  #whoAnswers(id: string, code: string): string {
    if (code === "OWNED_ELSEWHERE") return "served by another dns11";
    const unserved = this.#parts.unserved(id);
    if (unserved !== undefined) return unserved;
    const isCaptured = this.#parts.factOf(id)?.nameservers.kind === "captured";
    return isCaptured ? "the servers of its resolv.conf answer" : "Docker's resolver answers";
  }
}
