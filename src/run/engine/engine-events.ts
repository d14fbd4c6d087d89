/**
 * EngineEvents: records what happens to the containers and networks of an engine. The containers that run when dns11 starts are
 * no news. A start is recorded once the image's labels are known, because an image must not claim a service of others.
 */
import { composeServiceOf } from "../../container/facts/compose.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import type { Ending } from "../../container/watch/endings.ts";
import { type AttachmentState, failureText } from "../../container/attach/attachment-state.ts";
import type { EventRing, NewEvent } from "../../control/history/history-rings.ts";
import type { Log } from "../../base/log/log.ts";
import type { RateLimitedLog } from "../../base/log/rate-limited-log.ts";
import type { LockWait } from "../../container/attach/attachment-parts.ts";

interface EngineEventsParts {
  readonly events: EventRing;
  readonly factOf: (id: string) => ContainerFact | undefined;
  /** Every container that was running at the start is known. */
  readonly isSynced: () => boolean;
}

export class EngineEvents {
  readonly #parts: EngineEventsParts;
  /** "attached", or the code of its failure. */
  readonly #served = new Map<string, string>();
  /** Containers that have started, and whose image is being inspected. */
  readonly #starting = new Set<string>();

  constructor(parts: EngineEventsParts) {
    this.#parts = parts;
  }

  /** A container is about to be known with these facts. */
  onContainer(fact: ContainerFact): void {
    const before = this.#parts.factOf(fact.id);
    if (before === undefined && !this.#parts.isSynced()) return;
    const isNews = before?.isStarting !== true && before?.startedAt !== fact.startedAt;
    const isStart = this.#starting.delete(fact.id) || isNews;
    if (isStart && fact.imageLabels.source === "awaited") this.#starting.add(fact.id);
    else if (isStart) this.#record("container-started", fact);
    if (isStart || before === undefined) return;
    const [old, now] = [networksOf(before), networksOf(fact)];
    for (const network of now) if (!old.has(network)) this.#record("network-joined", fact, { network });
    for (const network of old) if (!now.has(network)) this.#record("network-left", fact, { network });
  }

  /** A container is about to be forgotten. */
  onGone(id: string, { exitCode, isAsked }: Ending): void {
    const fact = this.#parts.factOf(id);
    const isStarting = this.#starting.delete(id);
    this.#served.delete(id);
    if (fact === undefined) return;
    if (isStarting) this.#record("container-started", fact);
    const hasFailed = exitCode !== undefined && exitCode !== 0 && !isAsked;
    this.#record(hasFailed ? "container-died" : "container-stopped", fact, { exitCode: exitCode ?? null });
  }

  onNetwork(network: string, isCreated: boolean): void {
    this.#parts.events.record({ kind: isCreated ? "network-created" : "network-removed", network });
  }

  onState(id: string, state: AttachmentState): void {
    const fact = this.#parts.factOf(id);
    const before = this.#served.get(id);
    if (state.kind === "closed") this.#served.delete(id);
    if (fact === undefined) return;
    if (state.kind === "attached" && before !== "attached") {
      this.#served.set(id, "attached");
      this.#record("attached", fact);
    }
    if (state.kind === "failed" && before !== state.code) {
      this.#served.set(id, state.code);
      this.#record("attach-failed", fact, { detail: failureText(state) });
    }
    if (state.kind === "closed" && before === "attached") this.#record("handed-back", fact);
  }

  #record(kind: NewEvent["kind"], fact: ContainerFact, more: Partial<NewEvent> = {}): void {
    const { project = null, service = null } = composeServiceOf(fact) ?? {};
    this.#parts.events.record({ ...more, kind, container: fact.name, containerId: fact.id, project, service });
  }
}

function networksOf({ endpoints }: ContainerFact): Set<string> {
  return new Set(endpoints.map(({ networkName }) => networkName));
}

interface AttachmentLogParts {
  readonly log: Log;
  readonly limitedLog: RateLimitedLog;
  readonly factOf: (id: string) => ContainerFact | undefined;
  /** What it means that a namespace is not served which is no container's. */
  readonly unserved: (id: string) => string | undefined;
}

const HELD = "nobody answers instead, because a policy is enforced";
const MS_PER_SECOND = 1_000;

/**
 * What the log says when a container is attached, or cannot be: who answers it then. What repeats is limited
 * per container.
 */
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
