/**
 * ConnectionHistory: where one container connected to, from what the kernel recorded at each reading. The kernel counts from
 * when it has a destination until nothing has used it for a while, and may then begin anew.
 */
import { addressText } from "../../base/model/address.ts";
import { EGRESS_LIMITS } from "./limits.ts";
import type { Recorded } from "./recorder.ts";

export interface Connection {
  readonly address: string;
  readonly protocol: number;
  /** 0 where the protocol has none, or the packet did not show it. */
  readonly port: number;
  /** On the clock of `Date.now`. The first is exact where it was the only one until it was read. */
  readonly firstMs: number;
  readonly lastMs: number;
  readonly count: number;
  /** What it had asked that was answered with the address. */
  readonly names: readonly string[];
}

interface Entry extends Connection {
  firstMs: number;
  lastMs: number;
  count: number;
  names: readonly string[];
  /** The kernel's count when it was read last. */
  counted: number;
}

export interface NewConnections {
  asked: number;
  unasked: number;
}

/** The names that were answered with an address until then. */
export type NamesOf = (address: string, untilMs: number) => readonly string[];

export class ConnectionHistory {
  /** The one that was used last is at the end. */
  readonly #entries = new Map<string, Entry>();
  /** The earliest connection that may be missing. */
  #missingSinceMs: number | undefined;
  #readMs: number;

  /** `startMs`: from when on the kernel records. */
  constructor(startMs: number) {
    this.#readMs = startMs;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Since when connections may be missing, because there was no room; undefined if all are here. */
  get missingSinceMs(): number | undefined {
    return this.#missingSinceMs;
  }

  /** Adds what the kernel has recorded. Returns how many connections are new: to addresses with a name, and without. */
  add(recorded: readonly Recorded[], isFull: boolean, nowMs: number, namesOf: NamesOf): NewConnections {
    const fresh = { asked: 0, unasked: 0 };
    const beforeMs = this.#readMs;
    this.#readMs = nowMs;
    for (const each of recorded) {
      const { names, count } = this.#addOne(each, beforeMs, nowMs, namesOf);
      fresh[names.length === 0 ? "unasked" : "asked"] += count;
    }
    if (isFull) this.#missingSinceMs ??= beforeMs;
    return fresh;
  }

  #addOne(
    { address: bytes, protocol, port, count, agoMs }: Recorded,
    beforeMs: number,
    nowMs: number,
    namesOf: NamesOf,
  ): { readonly names: readonly string[]; readonly count: number } {
    const lastMs = nowMs - agoMs;
    const address = addressText(bytes);
    const key = `${protocol} ${port} ${address}`;
    const known = this.#entries.get(key);
    const fresh = known === undefined ? count : freshOf(known, count, lastMs);
    if (known !== undefined && fresh === 0) return { names: known.names, count: 0 };
    const names = namesOf(address, lastMs);
    if (known === undefined) {
      // Several since the last reading: the first was any time since then.
      const firstMs = count === 1 ? lastMs : Math.min(lastMs, beforeMs);
      this.#entries.set(key, { address, protocol, port, firstMs, lastMs, count, names, counted: count });
      if (this.#entries.size > EGRESS_LIMITS.connections) this.dropOldest();
      return { names, count: fresh };
    }
    known.count += fresh;
    known.counted = count;
    known.lastMs = lastMs;
    known.names = merged(known.names, names);
    this.#entries.delete(key);
    this.#entries.set(key, known);
    return { names: known.names, count: fresh };
  }

  /** The kernel has dropped what it had. */
  countAnew(): void {
    for (const entry of this.#entries.values()) entry.counted = 0;
  }

  /** The same, and nothing was recorded until now. */
  beginAnew(nowMs: number): void {
    this.countAnew();
    this.#readMs = nowMs;
  }

  /** There is no room for all. */
  dropOldest(): void {
    for (const [key, { firstMs }] of this.#entries) {
      this.#entries.delete(key);
      this.#missingSinceMs = Math.min(this.#missingSinceMs ?? firstMs, firstMs);
      return;
    }
  }

  /** The one that was used last comes first. */
  list(): readonly Connection[] {
    return [...this.#entries.values()].toSorted((a, b) => b.lastMs - a.lastMs);
  }
}

/** How many are new since it was read last. */
function freshOf({ counted, lastMs: beforeMs }: Entry, count: number, lastMs: number): number {
  if (count === counted && lastMs - beforeMs <= EGRESS_LIMITS.kernelMs) return 0;
  // The kernel had forgotten it.
  if (count < counted) return count;
  return lastMs - beforeMs > EGRESS_LIMITS.kernelMs ? Math.max(1, count - counted) : count - counted;
}

function merged(a: readonly string[], b: readonly string[]): readonly string[] {
  const fresh = b.filter((name) => !a.includes(name));
  return fresh.length === 0 ? a : [...a, ...fresh].slice(-EGRESS_LIMITS.names);
}
