/**
 * FormerNames: names that containers had until they were renamed. Docker forgets a name at once, on all networks, and who looks it up gets
 * NXDOMAIN: only this tells that its container still runs.
 */
import { LIMITS } from "../../base/limits.ts";
import type { ContainerFact } from "../facts/fact.ts";

export interface FormerName {
  readonly containerId: string;
  readonly name: string;
  /** A time of the clock of `performance.now`. */
  readonly atMs: number;
}

export class FormerNames {
  readonly #now: () => number;
  /** The oldest first. */
  #all: readonly FormerName[] = [];

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  note({ id: containerId, name }: ContainerFact, after: ContainerFact): void {
    if (name === after.name) return;
    this.#all = [...this.#all, { containerId, name, atMs: this.#now() }].slice(-LIMITS.formerNames);
  }

  /** The container is gone: it is not called anything any more. */
  forget(containerId: string): void {
    this.#all = this.#all.filter((each) => each.containerId !== containerId);
  }

  list(): readonly FormerName[] {
    return this.#all;
  }
}
