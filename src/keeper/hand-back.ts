/**
 * HandBack: removes the tables of all namespaces once nobody serves them, all at once, in threads of the pool. A transaction
 * that waits for the lock of a namespace makes those in all others wait, too. So each is sent after the gate of its namespace
 * was closed, which waits for that lock alone. Without a gate, and where the main process has reported that the lock is held, none is
 * sent: the tables go with the last descriptor of the socket that owns them.
 */
import type { HeldNamespace } from "../base/model/held-namespace.ts";
import { mapConcurrent } from "../base/lib/map-concurrent.ts";
import { POOL_CALLS, closeInPool } from "../kernel/in-pool.ts";
import type { NetlinkMemory } from "../kernel/netlink-socket.ts";
import { removeTables } from "./held-descriptors.ts";

export class HandBack {
  readonly #memory: NetlinkMemory;
  /** Namespaces whose tables were removed, and those that are still to be handed back. */
  removed = 0;
  waiting = 0;

  constructor(memory: NetlinkMemory) {
    this.#memory = memory;
  }

  /** Resolves when all are handed back. */
  async run(all: readonly HeldNamespace[]): Promise<void> {
    this.waiting = all.length;
    const lockedLast = all.toSorted((a, b) => Number(a.isLocked) - Number(b.isLocked));
    // Otherwise the first table would go after the last gate.
    await mapConcurrent(lockedLast, POOL_CALLS, async (each) => await this.#remove(each));
  }

  async #remove(namespace: HeldNamespace): Promise<void> {
    const { isLocked, isOwned, netlink, gate } = namespace;
    if (gate !== undefined) await closeInPool(gate);
    if (isOwned && (isLocked || gate === undefined)) await closeInPool(netlink);
    else if (await removeTables(namespace, this.#memory)) this.removed++;
    this.waiting--;
  }
}
