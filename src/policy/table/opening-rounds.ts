/**
 * OpeningRounds: addresses that have to be open before answers with them are sent. All of a round of the event loop become
 * one transaction; while one is under way, the next one gathers.
 */
import { LIMITS } from "../../base/limits.ts";
import type { NftCommand } from "../../kernel/nfnetlink.ts";
import type { OpenAddresses } from "./open-addresses.ts";

/** What one container waits for. */
interface Part {
  readonly mirror: OpenAddresses;
  readonly added: Map<string, number>;
  readonly waiting: { readonly resolve: () => void; readonly reject: (error: unknown) => void }[];
}

export class OpeningRounds {
  readonly #transact: (commands: readonly NftCommand[]) => Promise<void>;
  #gathering = new Map<OpenAddresses, Part>();
  #isScheduled = false;
  #isUnderWay = false;

  /** `transact` applies all commands, or none and throws. */
  constructor(transact: (commands: readonly NftCommand[]) => Promise<void>) {
    this.#transact = transact;
  }

  /** Resolves when the kernel has all of `keys` open for at least half of `lifeMs`; undefined if it has already. */
  open(mirror: OpenAddresses, keys: readonly string[], lifeMs: number): Promise<void> | undefined {
    const nowMs = performance.now();
    const missing = keys.filter((key) => !mirror.isOpen(key, lifeMs, nowMs));
    if (missing.length === 0) return undefined;
    return this.#add(mirror, missing, lifeMs);
  }

  async #add(mirror: OpenAddresses, missing: readonly string[], lifeMs: number): Promise<void> {
    let part = this.#gathering.get(mirror);
    // Answers can have thousands of addresses. Others wait for the same transaction.
    if ((part?.added.size ?? 0) + missing.length > LIMITS.policyOpenAddresses)
      throw new Error(`the container opens more than ${LIMITS.policyOpenAddresses} addresses at once`);
    if (part === undefined) this.#gathering.set(mirror, (part = { mirror, added: new Map(), waiting: [] }));
    for (const key of missing) part.added.set(key, Math.max(lifeMs, part.added.get(key) ?? 0));
    const { waiting } = part;
    const done = new Promise<void>((resolve, reject) => waiting.push({ resolve, reject }));
    this.#schedule();
    await done;
  }

  #schedule(): void {
    if (this.#isScheduled || this.#isUnderWay) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      void this.#send();
    });
  }

  async #send(): Promise<void> {
    this.#isUnderWay = true;
    try {
      while (this.#gathering.size > 0) await this.#sendRound(this.#take());
    } finally {
      this.#isUnderWay = false;
    }
  }

  /** As much as one transaction may hold: whole parts, at least one. */
  #take(): Part[] {
    const parts: Part[] = [];
    let count = 0;
    for (const [mirror, part] of this.#gathering) {
      count += part.added.size;
      if (parts.length > 0 && count > LIMITS.policyOpenedAtOnce) break;
      parts.push(part);
      this.#gathering.delete(mirror);
    }
    return parts;
  }

  async #sendRound(parts: readonly Part[]): Promise<void> {
    try {
      await this.#apply(parts);
    } catch (error) {
      if (parts.length === 1) this.#fail(parts[0] as Part, error);
      // One container's trouble is nobody else's.
      else for (const part of parts) await this.#sendRound([part]);
      return;
    }
    for (const { waiting } of parts) for (const { resolve } of waiting) resolve();
  }

  async #apply(parts: readonly Part[]): Promise<void> {
    const removals = parts.map(({ mirror, added }) => mirror.crowdedOut(added));
    await this.#transact(parts.flatMap(({ mirror, added }, index) => mirror.commands(added, removals[index] ?? [])));
    const nowMs = performance.now();
    for (const [index, { mirror, added }] of parts.entries()) mirror.apply(added, removals[index] ?? [], nowMs);
  }

  #fail({ waiting }: Part, error: unknown): void {
    for (const { reject } of waiting) reject(error);
  }
}
