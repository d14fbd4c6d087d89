/**
 * QueryHistories: the query histories of all containers. The history of a container that has ended is kept for a while,
 * because a container that sends one query and exits (`docker run --rm`) would otherwise be gone before anyone could
 * read it.
 */
import { LIMITS } from "../../base/limits.ts";
import type { QueryNames } from "../../base/model/query-record.ts";
import { type RecordingPolicy, changePolicy, recordingPolicy } from "../record/tables-by-container.ts";
import { QueryHistory } from "./query-history.ts";

export class QueryHistories {
  readonly #policy: RecordingPolicy;
  readonly #open = new Set<QueryHistory>();
  /** The histories of containers that have ended, the oldest first, with the time at which each is dropped. */
  readonly #closed = new Map<QueryHistory, number>();
  /** Both kinds of histories, by container: a report asks for those of each. */
  readonly #byContainer = new Map<string, Set<QueryHistory>>();
  readonly #now: () => number;

  constructor(names: QueryNames, now: () => number = () => performance.now()) {
    this.#policy = recordingPolicy(names);
    this.#now = now;
  }

  get isEnabled(): boolean {
    return this.#policy.isEnabled;
  }

  /** Whether the names of queries may be shown. */
  get hasNames(): boolean {
    return this.#policy.hasNames;
  }

  /** Changes what is recorded, and drops recorded data that would no longer be recorded now. */
  setNames(names: QueryNames): void {
    const mustClear = changePolicy(this.#policy, names);
    for (const history of this.#open) {
      history.repeated?.switched();
      if (mustClear) history.clear();
    }
    if (mustClear) for (const history of this.#closed.keys()) this.#drop(history);
  }

  open(containerId: string): QueryHistory {
    const others = this.#byContainer.get(containerId);
    const lastSeq = Math.max(0, ...[...(others ?? [])].map((each) => each.lastSeq));
    const history = new QueryHistory(containerId, this.#policy, lastSeq);
    this.#open.add(history);
    if (others === undefined) this.#byContainer.set(containerId, new Set([history]));
    else others.add(history);
    return history;
  }

  close(history: QueryHistory): void {
    this.#open.delete(history);
    history.repeated?.read();
    if (history.isEmpty) return this.#drop(history);
    this.#closed.set(history, this.#now() + LIMITS.historyLingerMs);
    this.#dropOld();
  }

  /** Sets the name of a container that is about to end, for its history. */
  name(containerId: string, name: string): void {
    for (const history of this.histories(containerId)) history.containerName = name;
  }

  /** Of one container, or all of them, with all queries so far; earlier runs of a container come first. */
  *histories(containerId?: string): Generator<QueryHistory> {
    this.#dropOld();
    const all = containerId === undefined ? undefined : [...(this.#byContainer.get(containerId) ?? [])];
    for (const histories of [this.#closed, this.#open]) {
      for (const history of all?.filter((each) => histories.has(each)) ?? histories.keys()) {
        history.repeated?.read();
        yield history;
      }
    }
  }

  #dropOld(): void {
    const now = this.#now();
    for (const [history, untilMs] of this.#closed) {
      if (now < untilMs && this.#closed.size <= LIMITS.historiesLingering) return;
      this.#drop(history);
    }
  }

  #drop(history: QueryHistory): void {
    this.#closed.delete(history);
    const others = this.#byContainer.get(history.containerId);
    others?.delete(history);
    if (others?.size === 0) this.#byContainer.delete(history.containerId);
  }
}
