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

/**
 * Whether what was listed from a store is still answered. While the store is away, what is known counts for a
 * limited time. Before the first list nothing does.
 */
const MS = 1_000;

export class Freshness {
  readonly #staleSecondsMax: number;
  readonly #now: () => number;
  #hasList = false;
  /** Undefined while the store confirms what is known. */
  #staleSince: number | undefined;

  constructor(staleSecondsMax: number, now: () => number = () => performance.now()) {
    this.#staleSecondsMax = staleSecondsMax;
    this.#now = now;
  }

  /** There has been a list. */
  get hasList(): boolean {
    return this.#hasList;
  }

  setListed(): void {
    this.#hasList = true;
  }

  /** Whether the store confirms what is known. */
  setCurrent(isCurrent: boolean): void {
    this.#staleSince = isCurrent ? undefined : (this.#staleSince ?? this.#now());
  }

  get isStale(): boolean {
    return this.#staleSince !== undefined;
  }

  /** How long ago the store last confirmed what is known; undefined while it does. */
  get staleMs(): number | undefined {
    return this.#staleSince === undefined ? undefined : this.#now() - this.#staleSince;
  }

  get isUsable(): boolean {
    return this.#hasList && (this.staleMs ?? 0) <= this.#staleSecondsMax * MS;
  }
}

/**
 * The fields of a JSON object that somebody else wrote. The errors are sentences about the value, for whoever
 * can correct it.
 * Throws an Error with the reason.
 */
export function jsonObject(value: Buffer): Readonly<Record<string, unknown>> {
  let json: unknown;
  try {
    json = JSON.parse(value.toString());
  } catch {
    throw new Error("it is not valid JSON");
  }
  if (typeof json !== "object" || json === null || Array.isArray(json)) throw new Error("it is not a JSON object");
  return json as Record<string, unknown>;
}
