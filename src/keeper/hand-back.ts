/**
 * HandBack: removes the tables of all namespaces once nobody serves them, all at once, in threads of the pool. A transaction
 * that waits for the lock of a namespace makes those in all others wait, too. So each is sent after the gate of its namespace
 * was closed, which waits for that lock alone. Without a gate, and where the main process has reported that the lock is held, none is
 * sent: the tables go with the last descriptor of the socket that owns them.
 *
 * All other descriptors are closed a second later, because a keeper may go on alone for long, and no namespace should wait for
 * the closes of another one.
 */
import { LIMITS } from "../base/limits.ts";
import type { HeldNamespace } from "../base/model/held-namespace.ts";
import { mapConcurrent } from "../base/lib/map-concurrent.ts";
import { POOL_CALLS, closeInPool } from "../kernel/in-pool.ts";
import type { NetlinkMemory } from "../kernel/netlink-socket.ts";
import { type DeferredClose, removeTables } from "./held-descriptors.ts";

export class HandBack {
  readonly #memory: NetlinkMemory;
  readonly #deferredClose: DeferredClose;
  /** Namespaces whose tables were removed, and those that are still to be handed back. */
  removed = 0;
  waiting = 0;

  constructor(memory: NetlinkMemory, deferredClose: DeferredClose) {
    this.#memory = memory;
    this.#deferredClose = deferredClose;
  }

  /** Resolves when all are handed back. */
  async run(all: readonly HeldNamespace[]): Promise<void> {
    this.waiting = all.length;
    const lockedLast = all.toSorted((a, b) => Number(a.isLocked) - Number(b.isLocked));
    // Otherwise the first table would go after the last gate.
    await mapConcurrent(lockedLast, POOL_CALLS, async (each) => await this.#remove(each));
  }

  async #remove(namespace: HeldNamespace): Promise<void> {
    const { gate } = namespace;
    if (gate !== undefined) await closeInPool(gate);
    const netlink = await this.#removeTables(namespace);
    this.waiting--;
    // The number of a closed descriptor may be that of another one by then.
    const open = { ...namespace, gate: undefined, netlink };
    this.#deferredClose.addAll(open, performance.now() + LIMITS.nftLingerMs);
  }

  /** Returns the netlink socket unless it is closed. */
  async #removeTables(namespace: HeldNamespace): Promise<number | undefined> {
    const { isLocked, isOwned, gate } = namespace;
    if (isOwned && (isLocked || gate === undefined)) {
      await closeInPool(namespace.netlink);
      return undefined;
    }
    const { hasRemoved, netlink } = await removeTables(namespace, this.#memory);
    if (hasRemoved) this.removed++;
    return netlink;
  }
}
