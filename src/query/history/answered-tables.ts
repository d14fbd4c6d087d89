/**
 * AnsweredTables: the answered names of all containers, by container ID. Those of a container that has ended are kept for a
 * moment: its last connections are read after it.
 */
import { LIMITS } from "../../base/limits.ts";
import type { QueryNames } from "../../base/model/query-record.ts";
import { TablesByContainer } from "../record/tables-by-container.ts";
import { AnsweredNames, type AnsweredPolicy } from "./answered-names.ts";

export class AnsweredTables {
  readonly #policy: AnsweredPolicy = { isOn: false, hasNames: false };
  readonly #tables: TablesByContainer<AnsweredNames>;

  constructor(now: () => number = () => performance.now()) {
    this.#tables = new TablesByContainer(LIMITS.egressLingerMs, now);
  }

  /** Whether names may be shown. */
  get hasNames(): boolean {
    return this.#policy.hasNames;
  }

  /** What is noted from now on; what would no longer be noted is dropped. */
  configure(isOn: boolean, names: QueryNames): void {
    this.#policy.hasNames = names === "full";
    this.#policy.isOn = isOn && this.#policy.hasNames;
    if (this.#policy.isOn) return;
    for (const table of this.#tables.all()) table.clear();
  }

  open(containerId: string): AnsweredNames {
    return this.#tables.open(containerId, () => new AnsweredNames(this.#policy));
  }

  close(containerId: string): void {
    this.#tables.close(containerId, ({ isEmpty }) => !isEmpty);
  }

  of(containerId: string, address: string, untilMs: number): readonly string[] {
    return this.#tables.get(containerId)?.of(address, untilMs) ?? [];
  }
}
