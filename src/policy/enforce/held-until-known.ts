/**
 * HeldUntilKnown: containers that might have an enforced policy, of which nothing is known but their addresses. Nothing that they
 * send passes until they are known, and until the kernel has the policy that they turn out to have.
 */
import { OneAtATime } from "../../base/lib/one-at-a-time.ts";
import type { EnforcementState } from "./enforcement.ts";

interface HeldUntilKnownParts {
  /** Whether a policy holds connections: otherwise nobody is held. */
  readonly isHolding: () => boolean;
  /** Has the kernel drop what these addresses send, and no others but those that an earlier process left, where they are kept. */
  readonly hold: (addresses: readonly Uint8Array[], keepsOthers: boolean) => Promise<void>;
  /** What has become of the policy of a container; undefined if it has none. */
  readonly stateOf: (id: string) => EnforcementState | undefined;
  readonly onHeld: (id: string) => void;
  readonly onError: (error: unknown) => void;
}

interface Late {
  readonly addresses: readonly Uint8Array[];
  isKnown: boolean;
  isReported: boolean;
}

export class HeldUntilKnown {
  readonly #parts: HeldUntilKnownParts;
  readonly #late = new Map<string, Late>();
  readonly #changes: OneAtATime;
  /** What the kernel has by this process, as text. */
  #held = "[]";
  #keepsOthers = true;

  constructor(parts: HeldUntilKnownParts) {
    this.#parts = parts;
    this.#changes = new OneAtATime(async () => await this.#change(), parts.onError);
  }

  late(id: string, addresses: readonly Uint8Array[]): void {
    const isReported = this.#late.get(id)?.isReported === true;
    this.#late.set(id, { addresses, isKnown: false, isReported });
    this.refresh();
  }

  /** Its policy may be in force a moment later: `refresh` releases it. */
  known(id: string): void {
    const found = this.#late.get(id);
    if (found !== undefined) found.isKnown = true;
  }

  /** All containers are known, or late by now: so are those that an earlier process held. */
  releaseOthers(): void {
    this.#keepsOthers = false;
    this.#held = "";
    this.refresh();
  }

  /** Policies or what is known of containers have changed. */
  refresh(): void {
    this.#changes.request();
  }

  async #change(): Promise<void> {
    const { isHolding, hold, stateOf, onHeld } = this.#parts;
    for (const [id, { isKnown }] of this.#late) if (isKnown && isReleased(stateOf(id))) this.#late.delete(id);
    const all = isHolding() ? [...this.#late] : [];
    const addresses = all.flatMap(([, late]) => late.addresses);
    const text = JSON.stringify(addresses.map((each) => Buffer.from(each).toString("hex")).toSorted());
    if (text === this.#held) return;
    await hold(addresses, this.#keepsOthers);
    this.#held = text;
    for (const [id, late] of all) {
      if (!late.isReported) onHeld(id);
      late.isReported = true;
    }
  }
}

/** Its own rules hold it, or it has no policy that does. */
function isReleased(state: EnforcementState | undefined): boolean {
  return state === undefined || state.kind === "enforced" || state.kind === "hindered";
}
