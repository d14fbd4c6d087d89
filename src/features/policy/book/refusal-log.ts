/**
 * RefusalLog: what policies have refused, or would have, for people who look at what happened. The same query of a container is one
 * entry with a count, and when the log is full, the container with the most loses its oldest one: a container that makes up names
 * does not displace what happened to others.
 */
import { setTimeout as sleep } from "node:timers/promises";

import type { Refusal } from "../judge/refusal.ts";

export interface LoggedRefusal {
  /** Grows with each entry; an entry that is repeated after a while gets a new one. */
  readonly number: number;
  readonly containerId: string;
  /** null where names are hidden. */
  readonly name: string | null;
  readonly type: number;
  /** The last one: after a reload, the same words may be of another policy. */
  refusal: Refusal;
  count: number;
  readonly firstMs: number;
  lastMs: number;
}

const ENTRIES_MAX = 2_000;
/** A repetition is a new entry for followers when so much time has passed. */
const AGAIN_MS = 60_000;
/** How often followers are sent what is new. */
const POLL_MS = 250;

export class RefusalLog {
  /** By container; each in the order of its numbers, by what is repeated. */
  readonly #containers = new Map<string, Map<string, LoggedRefusal>>();
  #count = 0;
  #last = 0;

  /** Returns whether it is new to followers. */
  note(containerId: string, refusal: Refusal, name: string | null, type: number, nowMs: number): boolean {
    const entries = this.#containers.get(containerId) ?? new Map<string, LoggedRefusal>();
    this.#containers.set(containerId, entries);
    const key = `${type} ${name ?? ""} ${refusal.text}`;
    const known = entries.get(key);
    // Not after the clock was set back: it would be long until it is news again.
    if (known !== undefined && nowMs >= known.firstMs && nowMs - known.firstMs < AGAIN_MS) {
      known.refusal = refusal;
      known.count++;
      known.lastMs = nowMs;
      return false;
    }
    if (known !== undefined) {
      entries.delete(key);
      this.#count--;
    }
    const number = ++this.#last;
    entries.set(key, { number, containerId, name, type, refusal, count: 1, firstMs: nowMs, lastMs: nowMs });
    this.#count++;
    if (this.#count > ENTRIES_MAX) this.#drop();
    return true;
  }

  /** The last `limit` after a number, oldest first. */
  read(limit: number, since = 0, isChosen: (containerId: string) => boolean = () => true): LoggedRefusal[] {
    const all = [...this.#containers]
      .filter(([id]) => isChosen(id))
      .flatMap(([, entries]) => [...entries.values()].filter(({ number }) => number > since))
      .toSorted((a, b) => a.number - b.number);
    return limit === 0 ? [] : all.slice(-limit);
  }

  /** The last `limit`, then each as it happens, until `signal`. */
  async *follow(
    limit: number,
    isChosen: (containerId: string) => boolean,
    signal: AbortSignal,
  ): AsyncGenerator<LoggedRefusal, void> {
    let last = this.#last;
    yield* this.read(limit, 0, isChosen);
    while (!signal.aborted) {
      const since = last;
      last = this.#last;
      if (last > since) yield* this.read(ENTRIES_MAX, since, isChosen);
      await sleep(POLL_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  /** The last refusal of a name in a container. */
  last(containerId: string, name: string, type: number): LoggedRefusal | undefined {
    const found = [...(this.#containers.get(containerId)?.values() ?? [])];
    return found.findLast((each) => each.name === name && each.type === type);
  }

  /** The oldest entry of the container with the most. */
  #drop(): void {
    let most: [string, Map<string, LoggedRefusal>] | undefined;
    for (const each of this.#containers) if (most === undefined || each[1].size > most[1].size) most = each;
    const [id = "", entries] = most ?? [];
    const [oldest = ""] = entries?.keys() ?? [];
    if (entries?.delete(oldest) === true) this.#count--;
    if (entries?.size === 0) this.#containers.delete(id);
  }
}
