/**
 * Book: the ledgers of all containers. One whose container is gone stays for a while, because what asks a single question
 * and ends (`docker run --rm`) is gone before anybody could look.
 */
import { LIMITS } from "../../base/limits.ts";
import type { QueryNames } from "../../base/model/asked-query.ts";
import { Ledger, type LedgerPolicy } from "./ledger.ts";

export class Book {
  readonly #policy: LedgerPolicy;
  readonly #open = new Set<Ledger>();
  /** Of containers that are gone, the oldest first, with the time at which each is forgotten. */
  readonly #closed = new Map<Ledger, number>();
  readonly #now: () => number;

  constructor(names: QueryNames, now: () => number = () => performance.now()) {
    this.#policy = { isKept: names !== "off", hasNames: names === "full" };
    this.#now = now;
  }

  get isKept(): boolean {
    return this.#policy.isKept;
  }

  /** From now on so much is kept; of what was kept, nothing that would not be kept now. */
  setNames(names: QueryNames): void {
    const { isKept, hasNames } = this.#policy;
    this.#policy.isKept = names !== "off";
    this.#policy.hasNames = names === "full";
    const isLess = (isKept && !this.#policy.isKept) || (hasNames && !this.#policy.hasNames);
    if (!isLess) return;
    for (const ledger of this.#open) ledger.clear();
    this.#closed.clear();
  }

  open(containerId: string): Ledger {
    const ledger = new Ledger(containerId, this.#policy);
    this.#open.add(ledger);
    return ledger;
  }

  close(ledger: Ledger): void {
    this.#open.delete(ledger);
    if (ledger.isEmpty) return;
    this.#closed.set(ledger, this.#now() + LIMITS.ledgerLingerMs);
    this.#forgetOld();
  }

  /** A container is about to be gone: what it was called stands in its ledgers from now on. */
  name(containerId: string, name: string): void {
    for (const ledger of this.ledgers(containerId)) ledger.containerName = name;
  }

  /** Of one container, or all of them; the oldest life of a container first. */
  *ledgers(containerId?: string): Generator<Ledger> {
    this.#forgetOld();
    for (const ledgers of [this.#closed.keys(), this.#open]) {
      for (const ledger of ledgers) {
        if (containerId === undefined || ledger.containerId === containerId) yield ledger;
      }
    }
  }

  #forgetOld(): void {
    const now = this.#now();
    for (const [ledger, untilMs] of this.#closed) {
      if (now < untilMs && this.#closed.size <= LIMITS.ledgersLingering) return;
      this.#closed.delete(ledger);
    }
  }
}
