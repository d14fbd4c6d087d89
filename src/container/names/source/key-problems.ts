/**
 * KeyProblems: the keys of a store that are left out because they are not valid, and why. The first ones are kept with
 * their reasons; of the others, which may be any number, only the number is.
 */
import { LIMITS } from "../../../base/limits.ts";

export interface KeyProblem {
  readonly key: string;
  readonly problem: string;
}

const KEY_CHARS = 300;
const REPORTED = 20;

export class KeyProblems {
  readonly #problems = new Map<string, string>();
  #more = 0;

  get count(): number {
    return this.#problems.size + this.#more;
  }

  get first(): readonly KeyProblem[] {
    return [...this.#problems].slice(0, REPORTED).map(([key, problem]) => ({ key, problem }));
  }

  note(key: string, error: unknown): void {
    const problem = error instanceof Error ? error.message : String(error);
    if (this.#problems.size < LIMITS.keyProblems) this.#problems.set(keptOf(key), problem);
    else this.#more++;
  }

  /** The key has another value now, or is gone. */
  forget(key: string): void {
    this.#problems.delete(keptOf(key));
  }

  clear(): void {
    this.#problems.clear();
    this.#more = 0;
  }
}

function keptOf(key: string): string {
  return key.slice(0, KEY_CHARS);
}
