/**
 * OpenAddresses: what is open for one container, as the kernel has it: a mirror, so that an address with half its time left
 * costs nothing. It is bounded: the address that was opened first makes room, and connections to it stay.
 */
import { LIMITS } from "../../base/limits.ts";
import type { NftCommand } from "../../kernel/nfnetlink.ts";
import type { SetElement } from "../../kernel/nft-table.ts";
import { type AddressLength, addressSet, portSet, setOfKey, TABLES } from "./layout.ts";

export class OpenAddresses {
  readonly #id: string;
  /** When each ends, by key, the one that was opened or renewed first at the beginning. */
  readonly #ends = new Map<string, number>();

  constructor(id: string) {
    this.#id = id;
  }

  /** How many are open. Those that have ended are still in the mirror. */
  countAt(nowMs: number): number {
    let count = 0;
    for (const end of this.#ends.values()) if (end > nowMs) count++;
    return count;
  }

  /** Whether the kernel has it for at least half the time. */
  isOpen(key: string, lifeMs: number, nowMs: number): boolean {
    const end = this.#ends.get(key);
    return end !== undefined && end - nowMs >= lifeMs / 2;
  }

  /** What the kernel had before. */
  adopt(key: string, endMs: number): void {
    this.#ends.set(key, endMs);
  }

  /** The commands that open all of it again for the time that is left, in sets that have lost it. */
  again(lengths: readonly AddressLength[], nowMs: number): NftCommand[] {
    const sets = new Set(lengths.flatMap((length) => [addressSet(this.#id, length), portSet(this.#id, length)]));
    for (const [key, end] of this.#ends)
      if (end <= nowMs || !sets.has(setOfKey(this.#id, Buffer.from(key, "latin1")))) this.#ends.delete(key);
    const elements = [...this.#ends].map(([key, end]) => ({
      key: Buffer.from(key, "latin1"),
      timeoutMs: Math.ceil(end - nowMs),
    }));
    return this.#change("add", elements);
  }

  /** The keys that make room for these, the first ones. */
  crowdedOut(added: ReadonlyMap<string, number>): string[] {
    let excess = this.#ends.size - LIMITS.policyOpenAddresses;
    for (const key of added.keys()) if (!this.#ends.has(key)) excess++;
    const out: string[] = [];
    if (excess <= 0) return out;
    for (const key of this.#ends.keys()) {
      if (out.length === excess) break;
      if (!added.has(key)) out.push(key);
    }
    return out;
  }

  /**
   * The commands that open `added`, each for its time. Kernels before 6.12 do not renew an element that exists: it is
   * removed and added in the same transaction, in which no packet finds it missing. Adding it before that makes sure that
   * there is one to remove.
   */
  commands(added: ReadonlyMap<string, number>, removed: readonly string[]): NftCommand[] {
    const elements = [...added].map(([key, timeoutMs]) => ({ key: Buffer.from(key, "latin1"), timeoutMs }));
    const known = elements.filter(({ key }) => this.#ends.has(key.toString("latin1")));
    const gone = removed.map((key) => ({ key: Buffer.from(key, "latin1"), timeoutMs: GONE_MS }));
    return [
      ...this.#change("add", [...elements, ...gone]),
      ...this.#change("remove", [...known, ...gone]),
      ...this.#change("add", known),
    ];
  }

  /** The kernel has done so. */
  apply(added: ReadonlyMap<string, number>, removed: readonly string[], nowMs: number): void {
    for (const key of removed) this.#ends.delete(key);
    for (const [key, lifeMs] of added) {
      this.#ends.delete(key);
      this.#ends.set(key, nowMs + lifeMs);
    }
  }

  #change(change: "add" | "remove", elements: readonly SetElement[]): NftCommand[] {
    const bySet = new Map<string, SetElement[]>();
    for (const element of elements) {
      const set = setOfKey(this.#id, element.key);
      const members = bySet.get(set);
      if (members === undefined) bySet.set(set, [element]);
      else members.push(element);
    }
    return [...bySet].flatMap(([set, members]) => TABLES.inet.elements(change, set, members));
  }
}

/** An element that is added to be removed at once. */
const GONE_MS = 60_000;
