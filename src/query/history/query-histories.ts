/**
 * Book: the histories of all containers. One whose container is gone stays for a while, because what asks a single question
 * and ends (`docker run --rm`) is gone before anybody could look.
 */
import { LIMITS } from "../../base/limits.ts";
import type { QueryNames } from "../../base/model/query-record.ts";
import { QueryHistory, type HistoryPolicy } from "./query-history.ts";

export class QueryHistories {
  readonly #policy: HistoryPolicy;
  readonly #open = new Set<QueryHistory>();
  /** Of containers that are gone, the oldest first, with the time at which each is forgotten. */
  readonly #closed = new Map<QueryHistory, number>();
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
    for (const history of this.#open) history.clear();
    this.#closed.clear();
  }

  open(containerId: string): QueryHistory {
    const history = new QueryHistory(containerId, this.#policy);
    this.#open.add(history);
    return history;
  }

  close(history: QueryHistory): void {
    this.#open.delete(history);
    if (history.isEmpty) return;
    this.#closed.set(history, this.#now() + LIMITS.historyLingerMs);
    this.#forgetOld();
  }

  /** A container is about to be gone: what it was called stands in its histories from now on. */
  name(containerId: string, name: string): void {
    for (const history of this.histories(containerId)) history.containerName = name;
  }

  /** Of one container, or all of them; the oldest life of a container first. */
  *histories(containerId?: string): Generator<QueryHistory> {
    this.#forgetOld();
    for (const histories of [this.#closed.keys(), this.#open]) {
      for (const history of histories) {
        if (containerId === undefined || history.containerId === containerId) yield history;
      }
    }
  }

  #forgetOld(): void {
    const now = this.#now();
    for (const [history, untilMs] of this.#closed) {
      if (now < untilMs && this.#closed.size <= LIMITS.historiesLingering) return;
      this.#closed.delete(history);
    }
  }
}
