/**
 * HeldDescriptors: copies of one namespace's descriptors. While the process that serves the namespace lives, the keeper
 * only holds them: a netlink socket delivers its replies to the first reader, so only one process may send requests on
 * it.
 */
import { LIMITS } from "../base/limits.ts";
import { closeQuietly } from "../kernel/libc.ts";
import type { NetlinkMemory } from "../kernel/netlink-socket.ts";
import { NFPROTO_IPV4, NFPROTO_IPV6, NftSocket, deleteTable } from "../kernel/nfnetlink.ts";
import type { HeldNamespace } from "../base/model/held-namespace.ts";

const FAMILY_NUMBER = { ip: NFPROTO_IPV4, ip6: NFPROTO_IPV6 } as const;

/** Removes our tables after the serving process is gone, one transaction each. Returns whether there were any. */
export function removeTables({ netlink, tables }: HeldNamespace, memory: NetlinkMemory): boolean {
  let removed = 0;
  try {
    const nft = new NftSocket(memory, netlink);
    for (const { family, name } of tables) {
      try {
        nft.transact([deleteTable(FAMILY_NUMBER[family], name)]);
        removed++;
      } catch {
        // The serving process had removed it already, or was about to.
      }
    }
  } catch {
    // Not a netlink socket, so it owns no table either.
  }
  return removed > 0;
}

export function closeDescriptors(namespace: HeldNamespace): void {
  for (const fd of [...withoutNetlink(namespace), namespace.netlink]) closeQuietly(fd);
}

function withoutNetlink({ pairs, programs }: HeldNamespace): number[] {
  return [...pairs.flatMap(({ udp, tcp }) => [udp, tcp]), ...programs];
}

/**
 * DeferredClose: closes released descriptors. Sockets are closed at once. Closing a netlink socket right after its
 * table was deleted makes the kernel wait until it is done with the table; a second later it does not.
 */
export class DeferredClose {
  #pending: { readonly fd: number; readonly atMs: number }[] = [];

  add(namespace: HeldNamespace, nowMs: number): void {
    for (const fd of withoutNetlink(namespace)) closeQuietly(fd);
    this.#pending.push({ fd: namespace.netlink, atMs: nowMs + LIMITS.nftLingerMs });
  }

  /** All of them later. */
  addAll(namespace: HeldNamespace, atMs: number): void {
    for (const fd of [...withoutNetlink(namespace), namespace.netlink]) this.#pending.push({ fd, atMs });
  }

  /** The same for a process with an event loop. */
  closeLater(): void {
    setTimeout(() => this.closeDue(performance.now()), LIMITS.nftLingerMs + 1).unref();
  }

  /** Closes the descriptors that are due. */
  closeDue(nowMs: number): void {
    const isDue = ({ atMs }: { readonly atMs: number }): boolean => atMs <= nowMs;
    for (const { fd } of this.#pending.filter(isDue)) closeQuietly(fd);
    this.#pending = this.#pending.filter((each) => !isDue(each));
  }
}
