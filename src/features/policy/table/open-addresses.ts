/**
 * OpenAddresses: what is open for one container, as the kernel has it: a mirror, so that an address with half its time left
 * costs nothing. It is bounded: the address that was opened first makes room, and connections to it stay.
 */
import type { NftCommand } from "../../../kernel/nfnetlink.ts";
import type { SetElement } from "../../../kernel/nft-table.ts";
import { type AddressLength, addressSet, portSet, setOfKey, TABLES } from "./layout.ts";
import { POLICY_LIMITS } from "../model/limits.ts";

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

  /** The commands that close all of it. */
  none(lengths: readonly AddressLength[]): NftCommand[] {
    return lengths.flatMap((length) => [
      TABLES.inet.flushSet(addressSet(this.#id, length)),
      TABLES.inet.flushSet(portSet(this.#id, length)),
    ]);
  }

  /** The keys that make room for these, the first ones. */
  crowdedOut(added: ReadonlyMap<string, number>): string[] {
    let excess = this.#ends.size - POLICY_LIMITS.openAddresses;
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

/** The addresses of an answer. */
interface Request {
  readonly keys: readonly string[];
  readonly lifeMs: number;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
  /** How many of them are open, or in the transaction that is under way. */
  taken: number;
}

/** What a container waits for, in its order. */
interface Queue {
  readonly requests: Request[];
  count: number;
}

/** What one container has in a transaction. */
interface Part {
  readonly mirror: OpenAddresses;
  readonly added: ReadonlyMap<string, number>;
  /** Some of the addresses of the last one may have to wait. */
  readonly requests: readonly Request[];
}

/**
 * Addresses that have to be open before answers with them are sent. All of a round of the event loop become
 * one transaction; while one is under way, the next one gathers. Each container has a share of each: the answers of one that
 * opens ever new addresses wait for each other, and nobody else does for more than a transaction of a few milliseconds.
 */
export class OpeningRounds {
  readonly #transact: (commands: readonly NftCommand[]) => Promise<void>;
  readonly #queues = new Map<OpenAddresses, Queue>();
  #isScheduled = false;
  #isUnderWay = false;

  /** `transact` applies all commands, or none and throws. */
  constructor(transact: (commands: readonly NftCommand[]) => Promise<void>) {
    this.#transact = transact;
  }

  /** Resolves when the kernel has all of `keys` open for at least half of `lifeMs`; undefined if it has already. */
  open(mirror: OpenAddresses, keys: readonly string[], lifeMs: number): Promise<void> | undefined {
    const nowMs = performance.now();
    const missing = keys.filter((key) => !mirror.isOpen(key, lifeMs, nowMs));
    if (missing.length === 0) return undefined;
    return this.#add(mirror, missing, lifeMs);
  }

  async #add(mirror: OpenAddresses, keys: readonly string[], lifeMs: number): Promise<void> {
    const queue = this.#queues.get(mirror) ?? { requests: [], count: 0 };
    // Answers can have thousands of addresses.
    if (queue.count + keys.length > POLICY_LIMITS.openAddresses)
      throw new Error(`the container opens more than ${POLICY_LIMITS.openAddresses} addresses at once`);
    this.#queues.set(mirror, queue);
    queue.count += keys.length;
    const done = new Promise<void>((resolve, reject) =>
      queue.requests.push({ keys, lifeMs, resolve, reject, taken: 0 }),
    );
    this.#schedule();
    await done;
  }

  #schedule(): void {
    if (this.#isScheduled || this.#isUnderWay) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      void this.#send();
    });
  }

  async #send(): Promise<void> {
    this.#isUnderWay = true;
    try {
      while (this.#queues.size > 0) await this.#sendRound(this.#take());
    } finally {
      this.#isUnderWay = false;
    }
  }

  /** The same share of each container, in all as much as one transaction may hold; of very many, those that have waited longest. */
  #take(): Part[] {
    const queues = [...this.#queues].slice(0, POLICY_LIMITS.openedAtOnce);
    const share = Math.floor(POLICY_LIMITS.openedAtOnce / queues.length);
    return queues.map(([mirror, queue]) => this.#takeOf(mirror, queue, share));
  }

  #takeOf(mirror: OpenAddresses, queue: Queue, share: number): Part {
    const added = new Map<string, number>();
    const requests: Request[] = [];
    for (let left = share; left > 0 && queue.requests.length > 0;) {
      const [request] = queue.requests as [Request, ...Request[]];
      const { keys, lifeMs, taken } = request;
      const count = Math.min(left, keys.length - taken);
      for (const key of keys.slice(taken, taken + count)) added.set(key, Math.max(lifeMs, added.get(key) ?? 0));
      request.taken += count;
      queue.count -= count;
      left -= count;
      requests.push(request);
      if (request.taken === keys.length) queue.requests.shift();
    }
    // What is left of it waits behind the others.
    this.#queues.delete(mirror);
    if (queue.requests.length > 0) this.#queues.set(mirror, queue);
    return { mirror, added, requests };
  }

  async #sendRound(parts: readonly Part[]): Promise<void> {
    try {
      await this.#apply(parts);
    } catch (error) {
      if (parts.length === 1) this.#fail(parts[0] as Part, error);
      // One container's trouble is nobody else's.
      else for (const part of parts) await this.#sendRound([part]);
      return;
    }
    for (const { requests } of parts)
      for (const { taken, keys, resolve } of requests) if (taken === keys.length) resolve();
  }

  async #apply(parts: readonly Part[]): Promise<void> {
    const removals = parts.map(({ mirror, added }) => mirror.crowdedOut(added));
    await this.#transact(parts.flatMap(({ mirror, added }, index) => mirror.commands(added, removals[index] ?? [])));
    const nowMs = performance.now();
    for (const [index, { mirror, added }] of parts.entries()) mirror.apply(added, removals[index] ?? [], nowMs);
  }

  /** What would have followed of its answers is not opened any more. */
  #fail({ mirror, requests }: Part, error: unknown): void {
    const queue = this.#queues.get(mirror);
    for (const request of requests) {
      request.reject(error);
      if (queue?.requests[0] !== request) continue;
      queue.requests.shift();
      queue.count -= request.keys.length - request.taken;
      if (queue.requests.length === 0) this.#queues.delete(mirror);
    }
  }
}
