/**
 * NetNamespace: a network namespace to work in. Every process with CAP_NET_ADMIN there can hold the lock of its nf_tables, for seconds, and
 * a call that waits for it cannot be interrupted. Work inside takes no lock; calls that take it run in threads of the pool (`in-pool.ts`).
 *
 * A transaction that waits for this lock holds another one meanwhile, which all transactions of the machine take (nfnetlink, one for each
 * subsystem). So no transaction may be sent before the namespace's own lock is free: closing a socket that was never used waits for that
 * lock, and for nothing else.
 */
import { untilClosed } from "./in-pool.ts";
import type { NftCommand, NftSocket } from "./nfnetlink.ts";
import { NETLINK_NETFILTER, type NetlinkMemory, NetlinkSocket } from "./netlink-socket.ts";

/** After a close, the lock counts as free for this long: the next step of a job follows at once. */
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

  /** Does what `read` does for work that enters the namespace by itself. */
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

  /** Applies all commands, or none, once no process holds the lock. */
  async transact(nft: NftSocket, commands: readonly NftCommand[]): Promise<void> {
    await this.untilFree();
    await nft.transact(commands);
    this.#freeAtMs = performance.now();
  }

  /** Resolves when no process holds the lock. */
  async untilFree(): Promise<void> {
    if (performance.now() - this.#freeAtMs <= FREE_FOR_MS) return;
    await this.read(() => new NetlinkSocket(this.memory, NETLINK_NETFILTER).close());
  }

  /**
   * A descriptor of a netfilter socket that was never used: closing its last copy waits for the lock, and for nothing else. Undefined if it
   * cannot be opened.
   */
  openGate(): number | undefined {
    try {
      return this.within(() => new NetlinkSocket(this.memory, NETLINK_NETFILTER).fd);
    } catch {
      return undefined;
    }
  }
}
