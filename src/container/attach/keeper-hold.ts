/**
 * KeeperHold: what the keeper has of a namespace that is served: copies of the descriptors with which it hands the namespace
 * back when this process dies, or passes it on to the next one.
 */
import type { Hold, Keep, ServedNamespace } from "../../base/model/held-namespace.ts";
import type { NamespaceId } from "../namespace/namespace-runner.ts";
import type { Serving } from "./serving.ts";

/** What the attachment knows of it now. */
type Known = Pick<ServedNamespace, "spared"> & { readonly id: NamespaceId };

export class KeeperHold {
  readonly #keep: Keep | undefined;
  readonly #known: () => Known | undefined;
  #serving: Serving | undefined;
  #hold: Hold | undefined;

  constructor(keep: Keep | undefined, known: () => Known | undefined) {
    this.#keep = keep;
    this.#known = known;
  }

  begin(serving: Serving): void {
    this.#serving = serving;
    const held = this.#held();
    if (held !== undefined) this.#hold = this.#keep?.(held);
  }

  /** Something of it has changed. */
  renew(): void {
    const held = this.#hold && this.#held();
    if (held !== undefined) this.#hold?.update(held);
  }

  /** There is nothing to hand back any more. */
  release(): void {
    this.#hold?.release();
    this.forget();
  }

  /** It belongs to the next process. */
  forget(): void {
    this.#hold = undefined;
    this.#serving = undefined;
  }

  /** undefined for rules that a netlink socket cannot change. */
  #held(): ServedNamespace | undefined {
    const known = this.#known();
    if (this.#serving === undefined || known === undefined) return undefined;
    const { netns, rules, zone, bound: pairs, kernel } = this.#serving;
    const programs = kernel.space?.held ?? [];
    const openGate = (): number | undefined => netns.openGate();
    return rules.removal && { ...known, ...rules.removal, zone, pairs, programs, openGate, isLocked: netns.isAtLock };
  }
}
