/**
 * Holding: copies of one namespace's descriptors. As long as the process that serves the namespace lives, they are kept and
 * nothing else: the netlink socket answers whoever reads it first, so that only one process may ask by it.
 */
import { LIMITS } from "../base/limits.ts";
import { closeQuietly } from "../kernel/libc.ts";
import type { NetlinkMemory } from "../kernel/netlink-socket.ts";
import { NFPROTO_IPV4, NFPROTO_IPV6, NftSocket, deleteTable } from "../kernel/nfnetlink.ts";
import type { HeldNamespace } from "../base/model/held-namespace.ts";

const FAMILY_NUMBER = { ip: NFPROTO_IPV4, ip6: NFPROTO_IPV6 } as const;

/** Nobody serves there any more: takes our tables away, one transaction each. Returns whether there were any. */
export function removeTables({ netlink, tables }: HeldNamespace, memory: NetlinkMemory): boolean {
  let removed = 0;
  try {
    const nft = new NftSocket(memory, netlink);
    for (const { family, name } of tables) {
      try {
        nft.transact([deleteTable(FAMILY_NUMBER[family], name)]);
        removed++;
      } catch {
        // Whoever served had removed it already, or has been in the middle of it.
      }
    }
  } catch {
    // It is no netlink socket: then it holds no table either.
  }
  return removed > 0;
}

export function closeDescriptors({ netlink, pairs }: HeldNamespace): void {
  for (const { udp, tcp } of pairs) for (const fd of [udp, tcp]) closeQuietly(fd);
  closeQuietly(netlink);
}

/**
 * What is let go of. The sockets are closed at once; a netlink socket whose table has just been deleted would have the
 * kernel wait at its closing until it is done with the table, and a second later it does not.
 */
export class DeferredClose {
  readonly #later: { readonly fd: number; readonly atMs: number }[] = [];

  add({ netlink, pairs }: HeldNamespace, nowMs: number): void {
    for (const { udp, tcp } of pairs) for (const fd of [udp, tcp]) closeQuietly(fd);
    this.#later.push({ fd: netlink, atMs: nowMs + LIMITS.nftLingerMs });
  }

  /** The same where an event loop waits. */
  closeLater(): void {
    setTimeout(() => this.closeDue(performance.now()), LIMITS.nftLingerMs + 1).unref();
  }

  /** Closes what is due. */
  closeDue(nowMs: number): void {
    while (this.#later[0] !== undefined && this.#later[0].atMs <= nowMs) closeQuietly(this.#later.shift()?.fd ?? -1);
  }
}
