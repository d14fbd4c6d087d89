/**
 * EngineEvents: records what happens to the containers and networks of an engine. The containers that run when dns11 starts are
 * no news. A start is recorded once the image's labels are known, because an image must not claim a service of others.
 */
import { composePlaceOf } from "../../container/facts/compose.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import type { Ending } from "../../container/watch/endings.ts";
import { type AttachmentState, failureText } from "../../container/attach/attachment-state.ts";
import type { EventRing, NewEvent } from "../../control/history/event-ring.ts";

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
    const { project = null, service = null } = composePlaceOf(fact) ?? {};
    this.#parts.events.record({ ...more, kind, container: fact.name, containerId: fact.id, project, service });
  }
}

function networksOf({ endpoints }: ContainerFact): Set<string> {
  return new Set(endpoints.map(({ networkName }) => networkName));
}
