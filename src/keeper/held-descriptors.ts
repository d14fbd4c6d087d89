/**
 * HeldDescriptors: copies of one namespace's descriptors. While the process that serves the namespace lives, the keeper
 * only holds them: a netlink socket delivers its replies to the first reader, so only one process may send requests on
 * it.
 */
import { LIMITS } from "../base/limits.ts";
import { closeInPool } from "../kernel/in-pool.ts";
import { closeQuietly, duplicate } from "../kernel/libc.ts";
import type { NetlinkMemory } from "../kernel/netlink-socket.ts";
import { NFPROTO_BRIDGE, NFPROTO_IPV4, NFPROTO_IPV6, NftSocket, deleteTable } from "../kernel/nfnetlink.ts";
import type { HeldNamespace } from "../base/model/held-namespace.ts";

const FAMILY_NUMBER = { ip: NFPROTO_IPV4, ip6: NFPROTO_IPV6, bridge: NFPROTO_BRIDGE } as const;

/**
 * Removes our tables after the serving process is gone, one transaction each. Returns whether there were any, and the netlink
 * socket unless a failure has closed it.
 */
export async function removeTables(
  { netlink, tables }: HeldNamespace,
  memory: NetlinkMemory,
): Promise<{ readonly hasRemoved: boolean; readonly netlink: number | undefined }> {
  let nft: NftSocket;
  try {
    nft = new NftSocket(memory, netlink);
  } catch {
    // It is no netlink socket, so it owns no table either.
    return { hasRemoved: false, netlink: undefined };
  }
  let hasRemoved = false;
  for (const { family, name } of tables) {
    try {
      await nft.transact([deleteTable(FAMILY_NUMBER[family], name)]);
      hasRemoved = true;
    } catch {
      // The serving process had removed it already, or was about to.
    }
  }
  return { hasRemoved, netlink };
}

/** Descriptors of our own for all of it, but the gate, which is for the keeper. Throws if there is no room for all, and leaves none open. */
export function copyOf(served: Omit<HeldNamespace, "gate">): HeldNamespace {
  const made: number[] = [];
  const copy = (fd: number): number => {
    const own = duplicate(fd);
    made.push(own);
    return own;
  };
  try {
    return {
      ...served,
      netlink: copy(served.netlink),
      pairs: served.pairs.map((pair) => ({ ...pair, udp: copy(pair.udp), tcp: copy(pair.tcp) })),
      programs: served.programs.map(copy),
      gate: undefined,
    };
  } catch (error) {
    for (const fd of made) closeQuietly(fd);
    throw error;
  }
}

/** Those of a namespace that are open. */
type OpenDescriptors = Pick<HeldNamespace, "pairs" | "programs" | "gate"> & { readonly netlink: number | undefined };

export function closeDescriptors(open: OpenDescriptors): void {
  closeAllButNetlink(open);
  if (open.netlink !== undefined) void closeInPool(open.netlink);
}

/** Nobody waits for a program, for which the kernel takes its time, or for a lock. */
function closeAllButNetlink({ pairs, programs, gate }: OpenDescriptors): void {
  for (const { udp, tcp } of pairs) for (const fd of [udp, tcp]) closeQuietly(fd);
  for (const fd of [...programs, gate]) if (fd !== undefined) void closeInPool(fd);
}

/**
 * DeferredClose: closes released descriptors. Sockets are closed at once. Closing a netlink socket right after its
 * table was deleted makes the kernel wait until it is done with the table; a second later it does not.
 */
export class DeferredClose {
  #pending: { readonly close: () => void; readonly atMs: number }[] = [];

  add(namespace: HeldNamespace, nowMs: number): void {
    closeAllButNetlink(namespace);
    this.#pending.push({ close: () => void closeInPool(namespace.netlink), atMs: nowMs + LIMITS.nftLingerMs });
  }

  /** All of them later. */
  addAll(open: OpenDescriptors, atMs: number): void {
    this.#pending.push({ close: () => closeDescriptors(open), atMs });
  }

  /** The same for a process with an event loop. */
  closeLater(): void {
    setTimeout(() => this.closeDue(performance.now()), LIMITS.nftLingerMs + 1).unref();
  }

  /** Closes the descriptors that are due. */
  closeDue(nowMs: number): void {
    const due = this.#pending.filter(({ atMs }) => atMs <= nowMs);
    this.#pending = this.#pending.filter(({ atMs }) => atMs > nowMs);
    for (const { close } of due) close();
  }
}
