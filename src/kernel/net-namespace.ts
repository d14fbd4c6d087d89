/**
 * NetNamespace: a network namespace to work in. Every process with CAP_NET_ADMIN there can hold the lock of its nf_tables, for
 * seconds, and nothing interrupts whoever waits for it. What is done inside takes no lock; what takes it is left to threads
 * of the pool (`in-pool.ts`).
 *
 * A transaction that waits for this lock holds another one meanwhile, which all transactions of the machine take
 * (nfnetlink, one for each subsystem). So nobody may send one before the namespace's own lock is free: the close of a socket
 * that has done nothing waits for that lock, and for nothing else.
 */
import { untilClosed } from "./in-pool.ts";
import type { NftCommand, NftSocket } from "./nfnetlink.ts";
import { NETLINK_NETFILTER, type NetlinkMemory, NetlinkSocket } from "./netlink-socket.ts";

/** So long after a close the lock counts as free: the next step of a job follows at once. */
const FREE_FOR_MS = 2;

/** Runs `work` inside a namespace, in one synchronous step. */
export type Within = <T>(work: () => T) => T;

export class NetNamespace {
  /** A descriptor of the namespace. */
  readonly fd: number;
  readonly within: Within;
  readonly memory: NetlinkMemory;
  #waiting = 0;
  #freeAtMs = -Infinity;

  constructor(fd: number, within: Within, memory: NetlinkMemory) {
    this.fd = fd;
    this.within = within;
    this.memory = memory;
  }

  /** Whether something waits for the namespace's own lock now. */
  get isAtLock(): boolean {
    return this.#waiting > 0;
  }

  /** Runs `work` inside; resolves when the kernel has closed the netfilter sockets that were opened for it. */
  async read<T>(work: () => T): Promise<T> {
    return await this.untilClosed(() => this.within(work));
  }

  /** The same for work that enters by itself. */
  async untilClosed<T>(work: () => T): Promise<T> {
    this.#waiting++;
    try {
      const { result, closed } = await untilClosed(work);
      if (closed > 0) this.#freeAtMs = performance.now();
      return result;
    } finally {
      this.#waiting--;
    }
  }

  /** Applies all commands, or none, once nobody holds the lock. */
  async transact(nft: NftSocket, commands: readonly NftCommand[]): Promise<void> {
    await this.untilFree();
    await nft.transact(commands);
    this.#freeAtMs = performance.now();
  }

  /** Resolves when nobody holds the lock. */
  async untilFree(): Promise<void> {
    if (performance.now() - this.#freeAtMs <= FREE_FOR_MS) return;
    await this.read(() => new NetlinkSocket(this.memory, NETLINK_NETFILTER).close());
  }

  /**
   * A descriptor of a netfilter socket that has done nothing. Whoever closes its last copy waits for the lock, and for nothing else.
   * Undefined if there can be none.
   */
  openGate(): number | undefined {
    try {
      return this.within(() => new NetlinkSocket(this.memory, NETLINK_NETFILTER).fd);
    } catch {
      return undefined;
    }
  }
}
