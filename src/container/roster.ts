/**
 * Roster: what became of every running container. It takes the facts, has the names kept and the namespace attached, and
 * remembers the decision, so that whoever asks why a container is not served gets an answer.
 */
import type { OnlyFilter } from "../base/model/only.ts";
import { DETACHED, type Decision, decide, quarantined, withWarnings } from "./attach/decision.ts";
import { CONTAINER_MODE } from "./attach/attach-mode.ts";
import type { Reconciler } from "./attach/reconciler.ts";
import type { Nodes } from "./kind/nodes.ts";
import type { NodeContext } from "./names/name-source.ts";
import type { Directory } from "./registry/directory.ts";
import type { ContainerFact } from "./registry/fact.ts";
import { isSameAddress } from "../base/model/address.ts";
import type { LabelPolicy } from "../base/model/label-policy.ts";
import type { View } from "../base/model/view.ts";

export interface RosterParts {
  readonly directory: Directory;
  readonly reconciler: Reconciler;
  readonly nodes: Nodes;
  readonly only: readonly OnlyFilter[];
  /** Why a container is not attached although it could be: dns11 died by it. */
  readonly quarantineOf?: (containerId: string) => string | undefined;
  readonly labelPolicy: LabelPolicy;
  readonly onWarning: (fact: ContainerFact, warning: string) => void;
}

/** Who has a node served wants to hear why it is not, and which server would be itself. */
function withNodeWarnings(decision: Decision, { nameservers }: ContainerFact, place: NodeContext): Decision {
  const servers = nameservers.kind === "listed" ? nameservers.servers : [];
  const ourselves = servers.filter(
    ({ from, address }) => from === "container" && place.ownAddresses.some((own) => isSameAddress(own, address)),
  );
  return withWarnings(decision, [
    decision.warning,
    decision.kind === "leave" ? `it is a KIND node, and its pods are not served: ${decision.reason}` : undefined,
    ...ourselves.map(({ address }) => `its nameserver ${address} is not asked: that is where its pods ask us`),
  ]);
}

export class Roster {
  readonly #parts: RosterParts;
  readonly #decisions = new Map<string, Decision>();
  #only: readonly OnlyFilter[];
  #labelPolicy: LabelPolicy;

  constructor(parts: RosterParts) {
    this.#parts = parts;
    this.#only = parts.only;
    this.#labelPolicy = parts.labelPolicy;
  }

  /** Who may be served, and whose labels count, from now on. Decisions made before do not change. */
  setOnly(only: readonly OnlyFilter[], labelPolicy: LabelPolicy): void {
    this.#only = only;
    this.#labelPolicy = labelPolicy;
  }

  /** Decides anew about every container, for settings or the host that changed. */
  refresh(): void {
    for (const fact of this.#parts.directory.containers.values()) this.#decide(fact);
  }

  put(fact: ContainerFact): void {
    this.#parts.directory.putContainer(fact);
    this.#decide(fact);
  }

  remove(containerId: string): void {
    this.#parts.directory.removeContainer(containerId);
    this.#parts.reconciler.clearDesired(containerId);
    this.#parts.nodes.forget(containerId);
    this.#decisions.delete(containerId);
  }

  /** What the namespace of this container may know now. */
  viewOf(fact: ContainerFact): View {
    const { directory, nodes } = this.#parts;
    return directory.viewOf(fact, nodes.isNode(fact) ? nodes.placeOf(fact) : undefined);
  }

  /** Leaves a node as it was, or serves it again. */
  setDetached(fact: ContainerFact, isDetached: boolean): void {
    this.#parts.nodes.setDetached(fact, isDetached);
    this.#decide(fact);
  }

  /** What was decided about a container that runs. */
  decisionOf(containerId: string): Decision | undefined {
    return this.#decisions.get(containerId);
  }

  /** Every running container with what was decided about it. */
  *decisions(): Generator<[ContainerFact, Decision]> {
    for (const [id, decision] of this.#decisions) {
      const fact = this.#parts.directory.containers.get(id);
      if (fact !== undefined) yield [fact, decision];
    }
  }

  #decided(fact: ContainerFact): Decision {
    const { directory, nodes, quarantineOf } = this.#parts;
    if (nodes.isDetached(fact)) return DETACHED;
    const decision = decide(fact, directory.network.bind(directory), this.#only, this.#labelPolicy);
    const why = decision.kind === "serve" ? quarantineOf?.(fact.id) : undefined;
    return why === undefined ? decision : quarantined(why);
  }

  /** Names are known at once; what labels decide waits until it is known whose they are, and stays as it was meanwhile. */
  #decide(fact: ContainerFact): void {
    if (fact.imageLabels.source === "awaited") return;
    const { reconciler, nodes, onWarning } = this.#parts;
    const decided = this.#decided(fact);
    const told = withWarnings(decided, [decided.warning, nodes.ignoredLabel(fact)]);
    const decision = nodes.isNode(fact) ? withNodeWarnings(told, fact, nodes.placeOf(fact)) : told;
    if (decision.warning !== undefined && this.#decisions.get(fact.id)?.warning !== decision.warning) {
      onWarning(fact, decision.warning);
    }
    this.#decisions.set(fact.id, decision);
    if (decision.kind === "leave") {
      reconciler.clearDesired(fact.id);
      return;
    }
    const claim = { containerId: fact.id, sandboxKey: fact.sandboxKey, pid: fact.pid };
    const mode = nodes.isNode(fact) ? nodes.ensureMode(fact) : CONTAINER_MODE;
    reconciler.setDesired(fact.id, { claim, mode, view: this.viewOf(fact) });
  }
}
