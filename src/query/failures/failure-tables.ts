/**
 * FailureTables: the failure tables of all containers, by container ID. A container that fails, exits and is started again
 * finds its table, because its client is another one but its failures are the same.
 */
import { LIMITS } from "../../base/limits.ts";
import type { QueryNames } from "../../base/model/query-record.ts";
import { type RecordingPolicy, changePolicy, recordingPolicy } from "../record/recording-policy.ts";
import { TablesByContainer } from "../record/tables-by-container.ts";
import { FailureTable, type FailureTableParts, type IsContainerName } from "./failure-table.ts";

export class FailureTables {
  readonly #policy: RecordingPolicy;
  readonly #parts: FailureTableParts;
  readonly #tables: TablesByContainer<FailureTable>;
  #isContainerName: IsContainerName = () => false;

  constructor(names: QueryNames, now: () => number = () => performance.now()) {
    this.#policy = recordingPolicy(names);
    this.#parts = {
      policy: this.#policy,
      isContainerName: (labels, length) => this.#isContainerName(labels, length),
      now,
      onFirst: (table) => this.#makeRoom(table),
    };
    this.#tables = new TablesByContainer(LIMITS.failureLingerMs, now);
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
    for (const table of this.#tables.all()) table.clear();
  }

  open(containerId: string): FailureTable {
    const table = this.#tables.open(containerId, () => new FailureTable(containerId, this.#parts));
    table.containerName = undefined;
    return table;
  }

  close({ containerId }: FailureTable): void {
    this.#tables.close(containerId, ({ hasEntries }) => hasEntries);
  }

  /** Sets the name of a container that is about to end, for its table. */
  name(containerId: string, name: string): void {
    const table = this.#tables.get(containerId);
    if (table !== undefined) table.containerName = name;
  }

  /** Lists those of one container or of all that have entries. */
  *tables(containerId?: string): Generator<FailureTable> {
    for (const table of this.#tables.all()) {
      if (containerId !== undefined && table.containerId !== containerId) continue;
      table.bringUpToDate?.();
      if (table.hasEntries) yield table;
    }
  }

  /** Another container fails: of too many, the one whose last failure is oldest loses its entries. */
  #makeRoom(next: FailureTable): void {
    let count = 0;
    let oldest: FailureTable | undefined;
    for (const table of this.#tables.all()) {
      if (!table.hasEntries || table === next) continue;
      count++;
      if (oldest === undefined || table.lastMs < oldest.lastMs) oldest = table;
    }
    if (count < LIMITS.failureTables || oldest === undefined) return;
    oldest.clear();
    this.#tables.drop(oldest.containerId);
  }
}
