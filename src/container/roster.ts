/**
 * Roster: every running container and the decision about it. It updates the directory and the reconciler from a
 * container's facts, and records the decision, so that status can report why a container is not served.
 */
import type { OnlyFilter } from "../base/model/container-choice.ts";
import { type Decision, decide, quarantined, withWarnings } from "./attach/decision.ts";
import { type AttachMode, type Attaching, CONTAINER_BY_PROCESS, CONTAINER_MODE } from "./attach/attach-mode.ts";
import type { Reconciler } from "./attach/reconciler.ts";
import type { Directory } from "./registry/directory.ts";
import type { ContainerFact } from "./facts/fact.ts";
import type { NodeContext } from "./names/source/name-source.ts";
import { labelAnswers } from "./facts/label-choices.ts";
import { type Labels, effectiveLabels } from "./facts/labels.ts";
import { guard } from "../base/lib/guard.ts";
import { inSlices } from "../base/lib/slices.ts";
import type { DefaultBridgeSetting, LabelPolicy } from "../base/model/name-choices.ts";
import { missingText } from "../base/model/server-text.ts";
import type { Upstreams, View } from "../base/model/view.ts";

interface RosterParts {
  /** The current one. */
  readonly directory: () => Directory;
  readonly reconciler: Reconciler;
  /** What is different for a container through which others ask dns11, too. */
  readonly nodeContextOf?: (fact: ContainerFact) => NodeContext | undefined;
  /** What features make of a decision that is not in force yet. */
  readonly decide?: (fact: ContainerFact, decision: Decision) => Decision;
  /** How a container is attached about which this is decided, and what to warn of, where it is attached by `mode` without that. */
  readonly attach?: (fact: ContainerFact, decision: Decision, mode: AttachMode | undefined) => Attaching;
  readonly only: readonly OnlyFilter[];
  /** Why a container is quarantined: dns11 crashed because of it. Undefined if it is not. */
  readonly quarantineOf?: (containerId: string) => string | undefined;
  /** Whether a policy is enforced for a container, so that it may not opt out. */
  readonly isEnforced?: (containerId: string) => boolean;
  readonly labelPolicy: LabelPolicy;
  /** What features find wrong with the labels of a container; `labels` are those that count. */
  readonly labelWarnings?: (
    fact: ContainerFact,
    labels: Labels,
    policy: LabelPolicy,
  ) => readonly (string | undefined)[];
  readonly defaultBridge: DefaultBridgeSetting;
  /** Called when a container has changed that others, and perhaps the host, have as a server. */
  readonly onOthers?: () => void;
  /** What a container sees, or whether it is served, may have changed. */
  readonly onDecided?: (containerId: string) => void;
  readonly onWarning: (fact: ContainerFact, warning: string) => void;
}

/** The containers that were named as its upstream servers and cannot be queried, each once. */
function missingServers(upstreams: Upstreams | undefined): readonly string[] {
  const missing = (upstreams?.routes ?? []).flatMap((route) => route.missing ?? []);
  return [...new Set(missing.map((each) => `upstream ${missingText(each)}`))];
}

export class Roster {
  readonly #parts: RosterParts;
  readonly #decisions = new Map<string, Decision>();
  /** Containers to decide about again. */
  readonly #stale = new Set<string>();
  #isRefreshing = false;
  #refreshed: Promise<unknown> = Promise.resolve();
  #only: readonly OnlyFilter[];
  #labelPolicy: LabelPolicy;
  #defaultBridge: DefaultBridgeSetting;

  constructor(parts: RosterParts) {
    this.#parts = parts;
    this.#only = parts.only;
    this.#labelPolicy = parts.labelPolicy;
    this.#defaultBridge = parts.defaultBridge;
  }

  /** Sets the filters and whether image labels count, for decisions from now on. */
  setOnly(only: readonly OnlyFilter[], labelPolicy: LabelPolicy): void {
    this.#only = only;
    this.#labelPolicy = labelPolicy;
  }

  get defaultBridge(): DefaultBridgeSetting {
    return this.#defaultBridge;
  }

  /** Sets whether the default bridge is served, for decisions from now on. */
  setDefaultBridge(setting: DefaultBridgeSetting): void {
    this.#defaultBridge = setting;
  }

  /** Decides again about every container, in slices, after settings or the host changed. */
  refresh(): void {
    for (const id of this.#parts.directory().containers.keys()) this.#stale.add(id);
    if (!this.#isRefreshing) this.#refreshed = inSlices(this.#decideStale());
  }

  /** Resolves when nothing is left of a refresh. */
  async refreshed(): Promise<void> {
    await this.#refreshed;
  }

  /** Whether nothing is left of a refresh. */
  get isRefreshed(): boolean {
    return !this.#isRefreshing;
  }

  put(fact: ContainerFact): void {
    const changesOthers = this.#parts.directory().putContainer(fact);
    this.#stale.delete(fact.id);
    this.decide(fact);
    if (changesOthers) this.#refreshOthers();
  }

  remove(containerId: string): void {
    const changesOthers = this.#parts.directory().removeContainer(containerId);
    this.#parts.reconciler.clearDesired(containerId);
    this.#decisions.delete(containerId);
    if (changesOthers) this.#refreshOthers();
  }

  #refreshOthers(): void {
    this.refresh();
    this.#parts.onOthers?.();
  }

  /** The names and upstreams of this container now. */
  viewOf(fact: ContainerFact): View {
    const { directory, nodeContextOf } = this.#parts;
    return directory().viewOf(fact, nodeContextOf?.(fact));
  }

  decisionOf(containerId: string): Decision | undefined {
    return this.#decisions.get(containerId);
  }

  *decisions(): Generator<[ContainerFact, Decision]> {
    for (const [id, decision] of this.#decisions) {
      const fact = this.#parts.directory().containers.get(id);
      if (fact !== undefined) yield [fact, decision];
    }
  }

  /** One container at a time. What is added meanwhile is decided as well. */
  *#decideStale(): Generator<void> {
    this.#isRefreshing = true;
    try {
      for (const id of this.#stale) {
        this.#stale.delete(id);
        const fact = this.#parts.directory().containers.get(id);
        if (fact !== undefined) guard.run("attach", 0, () => this.decide(fact));
        yield;
      }
    } finally {
      this.#isRefreshing = false;
    }
  }

  #decided(fact: ContainerFact): Decision {
    const { quarantineOf, isEnforced, labelWarnings } = this.#parts;
    const policy = this.#labelPolicy;
    const decided = decide(
      fact,
      this.#only,
      policy,
      this.#defaultBridge,
      () => isEnforced?.(fact.id) === true,
      (labels) => labelWarnings?.(fact, labels, policy) ?? [],
    );
    const decision = this.#parts.decide?.(fact, decided) ?? decided;
    const quarantineReason = decision.kind === "serve" ? quarantineOf?.(fact.id) : undefined;
    return quarantineReason === undefined ? decision : quarantined(quarantineReason);
  }

  #containerMode(fact: ContainerFact): AttachMode {
    const { policy } = labelAnswers(effectiveLabels(fact, this.#labelPolicy));
    return policy === "process" ? CONTAINER_BY_PROCESS : CONTAINER_MODE;
  }

  /**
   * Decides whether to serve a container. Waits, with the previous decision in force, until the image's labels are
   * known; names resolve at once.
   */
  decide(fact: ContainerFact): void {
    if (fact.imageLabels.source === "awaited") return;
    const { reconciler, onWarning } = this.#parts;
    const decided = this.#decided(fact);
    const usual = decided.kind === "serve" ? this.#containerMode(fact) : undefined;
    const { mode, warning } = this.#parts.attach?.(fact, decided, usual) ?? { mode: usual };
    const view = mode && this.viewOf(fact);
    const decision = withWarnings(decided, [decided.warning, warning, ...missingServers(view?.upstreams)]);
    if (decision.warning !== undefined && this.#decisions.get(fact.id)?.warning !== decision.warning) {
      onWarning(fact, decision.warning);
    }
    this.#decisions.set(fact.id, decision);
    this.#parts.onDecided?.(fact.id);
    const claim = { containerId: fact.id, sandboxKey: fact.sandboxKey, pid: fact.pid };
    if (mode === undefined || view === undefined) {
      // Otherwise a container could leave its policy by having dns11 crash.
      const isRefused =
        decision.kind === "skip" && decision.code === "quarantined" && this.#parts.isEnforced?.(fact.id);
      if (isRefused === true) reconciler.refuse(claim);
      else reconciler.clearDesired(fact.id);
      return;
    }
    reconciler.setDesired(fact.id, { claim, mode, view });
  }
}
