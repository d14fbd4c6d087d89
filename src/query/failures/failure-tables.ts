/**
 * FailureTables: the failure tables of all containers, by container ID. A container that fails, exits and is started again
 * finds its table, because its client is another one but its failures are the same.
 */
import { LIMITS } from "../../base/limits.ts";
import type { QueryNames } from "../../base/model/query-record.ts";
import { type RecordingPolicy, changePolicy, recordingPolicy } from "../record/recording-policy.ts";
import { FailureTable, type FailureTableParts, type IsContainerName } from "./failure-table.ts";

interface KnownTable {
  readonly table: FailureTable;
  /** Clients that write it: two for a moment while a container is attached again. */
  clients: number;
  /** When it is dropped, if no client opens it until then. */
  untilMs: number;
}

export class FailureTables {
  readonly #policy: RecordingPolicy;
  readonly #parts: FailureTableParts;
  readonly #tables = new Map<string, KnownTable>();
  #isContainerName: IsContainerName = () => false;

  constructor(names: QueryNames, now: () => number = () => performance.now()) {
    this.#policy = recordingPolicy(names);
    this.#parts = {
      policy: this.#policy,
      isContainerName: (labels, length) => this.#isContainerName(labels, length),
      now,
      onFirst: (table) => this.#makeRoom(table),
    };
  }

  get isEnabled(): boolean {
    return this.#policy.isEnabled;
  }

  /** Sets the test for names with several labels that exist on this engine. */
  setContainerNames(isContainerName: IsContainerName): void {
    this.#isContainerName = isContainerName;
  }

  /** Changes what is recorded, and drops recorded data that would no longer be recorded now. */
  setNames(names: QueryNames): void {
    if (!changePolicy(this.#policy, names)) return;
    for (const { table } of this.#tables.values()) table.clear();
  }

  open(containerId: string): FailureTable {
    this.#dropOld();
    const known = this.#tables.get(containerId) ?? {
      table: new FailureTable(containerId, this.#parts),
      clients: 0,
      untilMs: 0,
    };
    known.clients++;
    known.table.containerName = undefined;
    this.#tables.set(containerId, known);
    return known.table;
  }

  close({ containerId, hasEntries }: FailureTable): void {
    const known = this.#tables.get(containerId);
    if (known === undefined) return;
    known.clients--;
    if (known.clients > 0) return;
    if (hasEntries) known.untilMs = this.#parts.now() + LIMITS.failureLingerMs;
    else this.#tables.delete(containerId);
  }

  /** Sets the name of a container that is about to end, for its table. */
  name(containerId: string, name: string): void {
    const known = this.#tables.get(containerId);
    if (known !== undefined) known.table.containerName = name;
  }

  /** Lists those of one container or of all that have entries. */
  *tables(containerId?: string): Generator<FailureTable> {
    this.#dropOld();
    for (const { table } of this.#tables.values()) {
      if (containerId !== undefined && table.containerId !== containerId) continue;
      table.bringUpToDate?.();
      if (table.hasEntries) yield table;
    }
  }

  /** Another container fails: of too many, the one whose last failure is oldest loses its entries. */
  #makeRoom(next: FailureTable): void {
    this.#dropOld();
    let count = 0;
    let oldest: FailureTable | undefined;
    for (const { table } of this.#tables.values()) {
      if (!table.hasEntries || table === next) continue;
      count++;
      if (oldest === undefined || table.lastMs < oldest.lastMs) oldest = table;
    }
    if (count < LIMITS.failureTables || oldest === undefined) return;
    oldest.clear();
    if (this.#tables.get(oldest.containerId)?.clients === 0) this.#tables.delete(oldest.containerId);
  }

  #dropOld(): void {
    const now = this.#parts.now();
    for (const [id, { clients, untilMs }] of this.#tables) {
      if (clients === 0 && untilMs <= now) this.#tables.delete(id);
    }
  }
}
