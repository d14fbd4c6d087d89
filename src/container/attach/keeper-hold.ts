/**
 * KeeperHold: what the keeper has of a namespace that is served: copies of the descriptors with which it hands the namespace
 * back when this process dies, refuses its queries, or passes it on to the next one.
 */
import type { Hold, Keep, ServedNamespace, WhenAlone } from "../../base/model/held-namespace.ts";
import type { NamespaceId } from "../namespace/namespace-runner.ts";
import type { NamespaceClaim } from "../namespace/proof.ts";
import type { AttachmentParts } from "./attachment-parts.ts";
import type { Serving } from "./serving.ts";

/** What the attachment knows of the namespace now. */
type Known = Pick<ServedNamespace, "spared"> & { readonly id: NamespaceId };

export class KeeperHold {
  readonly #keep: Keep | undefined;
  readonly #known: () => Known | undefined;
  readonly #containerId: string;
  readonly #isEnforcedIn: AttachmentParts["isEnforced"];
  #serving: Serving | undefined;
  #hold: Hold | undefined;
  #alone: WhenAlone = "hand-back";

  constructor(
    { containerId }: NamespaceClaim,
    { keep, isEnforced }: Pick<AttachmentParts, "keep" | "isEnforced">,
    known: () => Known | undefined,
  ) {
    this.#keep = keep;
    this.#known = known;
    this.#containerId = containerId;
    this.#isEnforcedIn = isEnforced;
  }

  begin(serving: Serving): void {
    this.#serving = serving;
    const held = this.#held();
    if (held !== undefined) this.#hold = this.#keep?.(held);
  }

  /** Something that the keeper has of the namespace has changed. */
  renew(): void {
    const { held } = this;
    if (held !== undefined) this.#hold?.update(held);
  }

  /** Policies may have changed. */
  renewPolicy(): void {
    if (this.#whenAlone() !== this.#alone) this.renew();
  }

  /** Whether a policy is enforced in the namespace. */
  readonly isEnforced = (): boolean => this.#isEnforcedIn?.(this.#containerId) === true;

  /** Docker's resolver must not answer the container. Where only probes come to us, it does in any case. */
  get staysClosed(): boolean {
    return this.isEnforced() && this.#serving?.isTrial === false;
  }

  /** Whether the keeper refuses its queries when nobody serves it. */
  get isRefusing(): boolean {
    return this.#hold !== undefined && this.#alone !== "hand-back";
  }

  /** What the keeper has; undefined without one. */
  get held(): ServedNamespace | undefined {
    return this.#hold && this.#held();
  }

  /** There is nothing to hand back any more. */
  release(): void {
    this.#hold?.release();
    this.forget();
  }

  /** The namespace belongs to the next process. */
  forget(): void {
    this.#hold = undefined;
    this.#serving = undefined;
  }

  #held(): ServedNamespace | undefined {
    const known = this.#known();
    if (this.#serving === undefined || known === undefined) return undefined;
    const { netns, rules, zone, bound: pairs, extra, passage } = this.#serving;
    const programs = extra?.held ?? [];
    const openGate = (): number | undefined => netns.openGate();
    const alone = (this.#alone = this.#whenAlone());
    const isLocked = netns.isAtLock;
    const { mark } = passage;
    return { ...known, ...rules.removal, zone, mark, pairs, programs, openGate, isLocked, alone };
  }

  #whenAlone(): WhenAlone {
    return this.staysClosed ? "refuse" : "hand-back";
  }
}
