/**
 * AnsweredTables: the answered names of all containers, by container ID. Those of a container that has ended are kept for a
 * moment: its last connections are read after it.
 */
import { LIMITS } from "../../base/limits.ts";
import type { QueryNames } from "../../base/model/query-record.ts";
import { AnsweredNames, type AnsweredPolicy } from "./answered-names.ts";

interface KnownNames {
  readonly names: AnsweredNames;
  clients: number;
  /** When they are dropped, if no client opens them until then. */
  untilMs: number;
}

export class AnsweredTables {
  readonly #policy: AnsweredPolicy = { isOn: false, hasNames: false };
  readonly #known = new Map<string, KnownNames>();
  readonly #now: () => number;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
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
    for (const { names: each } of this.#known.values()) each.clear();
  }

  open(containerId: string): AnsweredNames {
    this.#dropOld();
    const known = this.#known.get(containerId) ?? { names: new AnsweredNames(this.#policy), clients: 0, untilMs: 0 };
    known.clients++;
    this.#known.set(containerId, known);
    return known.names;
  }

  close(containerId: string): void {
    const known = this.#known.get(containerId);
    if (known === undefined) return;
    known.clients--;
    if (known.clients > 0) return;
    if (known.names.isEmpty) this.#known.delete(containerId);
    else known.untilMs = this.#now() + LIMITS.egressLingerMs;
  }

  of(containerId: string, address: string, untilMs: number): readonly string[] {
    return this.#known.get(containerId)?.names.of(address, untilMs) ?? [];
  }

  #dropOld(): void {
    const now = this.#now();
    for (const [id, { clients, untilMs }] of this.#known) if (clients === 0 && untilMs <= now) this.#known.delete(id);
  }
}
