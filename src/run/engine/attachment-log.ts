/**
 * AttachmentLog: what the log says when a container is attached, or cannot be: who answers it then. What repeats is limited
 * per container.
 */
import type { Log } from "../../base/log/log.ts";
import type { RateLimitedLog } from "../../base/log/rate-limited-log.ts";
import type { AttachmentState } from "../../container/attach/attachment-state.ts";
import { HOST_ID } from "../../container/host/host-fact.ts";
import type { ContainerFact } from "../../container/registry/fact.ts";

interface AttachmentLogParts {
  readonly log: Log;
  readonly limitedLog: RateLimitedLog;
  readonly factOf: (id: string) => ContainerFact | undefined;
}

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
    const { code, reason, culprits } = state;
    if (code === "NAMESPACE_GONE" && !this.#gone.has(id)) {
      this.#gone.add(id);
      log.debug({ container, reason }, "namespace is gone, perhaps with its container");
      return;
    }
    const about = { container, code, reason, culprits };
    limitedLog.log("warn", container, about, `not attached, ${this.#whoAnswers(id, code)}`, { topic: "attaching" });
  }

  #whoAnswers(id: string, code: string): string {
    if (code === "OWNED_ELSEWHERE") return "served by another dns11";
    if (id === HOST_ID) return "names do not resolve on the host";
    const isCaptured = this.#parts.factOf(id)?.nameservers.kind === "captured";
    return isCaptured ? "the servers of its resolv.conf answer" : "Docker's resolver answers";
  }
}
