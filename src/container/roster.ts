/**
 * Roster: what became of every running container. It takes the facts, has the names kept and the namespace attached, and
 * remembers the decision, so that whoever asks why a container is not served gets an answer.
 */
import type { OnlyFilter } from "../config/settings.ts";
import { type Decision, decide } from "./attach/decision.ts";
import type { Reconciler } from "./attach/reconciler.ts";
import type { Directory } from "./registry/directory.ts";
import type { ContainerFact } from "./registry/fact.ts";

export interface RosterParts {
  readonly directory: Directory;
  readonly reconciler: Reconciler;
  readonly only: readonly OnlyFilter[];
  readonly onWarning: (fact: ContainerFact, warning: string) => void;
}

export class Roster {
  readonly #parts: RosterParts;
  readonly #decisions = new Map<string, Decision>();

  constructor(parts: RosterParts) {
    this.#parts = parts;
  }

  put(fact: ContainerFact): void {
    const { directory, reconciler, only, onWarning } = this.#parts;
    directory.putContainer(fact);
    const decision = decide(fact, (id) => directory.network(id), only);
    if (decision.warning !== undefined && this.#decisions.get(fact.id)?.warning !== decision.warning) {
      onWarning(fact, decision.warning);
    }
    this.#decisions.set(fact.id, decision);
    if (decision.kind === "leave") {
      reconciler.unwant(fact.id);
      return;
    }
    const claim = { containerId: fact.id, sandboxKey: fact.sandboxKey, pid: fact.pid };
    reconciler.want(fact.id, { claim, view: directory.viewOf(fact) });
  }

  remove(containerId: string): void {
    this.#parts.directory.removeContainer(containerId);
    this.#parts.reconciler.unwant(containerId);
    this.#decisions.delete(containerId);
  }

  /** Every running container with what was decided about it. */
  *decisions(): Generator<[ContainerFact, Decision]> {
    for (const [id, decision] of this.#decisions) {
      const fact = this.#parts.directory.containers.get(id);
      if (fact !== undefined) yield [fact, decision];
    }
  }
}
