/**
 * OpeningRounds: addresses that have to be open before answers with them are sent. All of a round of the event loop become
 * one transaction; while one is under way, the next one gathers. Each container has a share of each: the answers of one that
 * opens ever new addresses wait for each other, and nobody else does for more than a transaction of a few milliseconds.
 */
import { LIMITS } from "../../base/limits.ts";
import type { NftCommand } from "../../kernel/nfnetlink.ts";
import type { OpenAddresses } from "./open-addresses.ts";

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
    if (queue.count + keys.length > LIMITS.policyOpenAddresses)
      throw new Error(`the container opens more than ${LIMITS.policyOpenAddresses} addresses at once`);
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
    const queues = [...this.#queues].slice(0, LIMITS.policyOpenedAtOnce);
    const share = Math.floor(LIMITS.policyOpenedAtOnce / queues.length);
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
