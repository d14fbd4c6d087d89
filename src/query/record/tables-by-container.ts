/**
 * TablesByContainer: what is recorded of each container, by its ID. The table of a container that has ended is kept for a while:
 * the container finds it when it starts again, and others can still read it. Opening one costs the same however many there are.
 */
import type { QueryNames } from "../../base/model/query-record.ts";

interface OpenTable<T> {
  readonly table: T;
  /** Clients that write it: two for a moment while a container is attached again. */
  clients: number;
}

export class TablesByContainer<T> {
  readonly #lingerMs: number;
  readonly #now: () => number;
  readonly #open = new Map<string, OpenTable<T>>();
  /** Of containers that have ended: the one to be dropped first is the first. */
  readonly #ended = new Map<string, { readonly table: T; readonly untilMs: number }>();

  constructor(lingerMs: number, now: () => number) {
    this.#lingerMs = lingerMs;
    this.#now = now;
  }

  get(containerId: string): T | undefined {
    return (this.#open.get(containerId) ?? this.#ended.get(containerId))?.table;
  }

  /** Tables of containers that have ended come last. */
  *all(): Generator<T> {
    this.#dropOld();
    for (const tables of [this.#open, this.#ended]) for (const { table } of tables.values()) yield table;
  }

  open(containerId: string, create: () => T): T {
    this.#dropOld();
    const table = this.get(containerId) ?? create();
    this.#ended.delete(containerId);
    const { clients } = this.#open.get(containerId) ?? { clients: 0 };
    this.#open.set(containerId, { table, clients: clients + 1 });
    return table;
  }

  /** `isKept` tells, once the last client is gone, whether the table is worth keeping. */
  close(containerId: string, isKept: (table: T) => boolean): void {
    const open = this.#open.get(containerId);
    if (open === undefined) return;
    open.clients--;
    if (open.clients > 0) return;
    this.#open.delete(containerId);
    if (isKept(open.table)) this.#ended.set(containerId, { table: open.table, untilMs: this.#now() + this.#lingerMs });
  }

  /** Nobody needs the table of a container that has ended. */
  drop(containerId: string): void {
    this.#ended.delete(containerId);
  }

  #dropOld(): void {
    const now = this.#now();
    for (const [id, { untilMs }] of this.#ended) {
      if (now < untilMs) return;
      this.#ended.delete(id);
    }
  }
}

/**
 * Whether queries are recorded, and with their names. One object is shared by all that record; it
 * changes with the settings.
 */
export interface RecordingPolicy {
  isEnabled: boolean;
  hasNames: boolean;
}

export function recordingPolicy(names: QueryNames): RecordingPolicy {
  return { isEnabled: names !== "off", hasNames: names === "full" };
}

/** Applies a setting; returns whether something that may have been recorded would not be recorded now. */
export function changePolicy(policy: RecordingPolicy, names: QueryNames): boolean {
  const { isEnabled, hasNames } = policy;
  Object.assign(policy, recordingPolicy(names));
  return (isEnabled && !policy.isEnabled) || (hasNames && !policy.hasNames);
}
