/**
 * NftWatch: reports changes of other processes to nf_tables in a namespace.
 */
import { NETLINK_NETFILTER } from "./netlink-socket.ts";
import { NetlinkWatch } from "./netlink-watch.ts";

/** linux/netfilter/nfnetlink.h: NFNLGRP_NFTABLES, as a bit of a bind address. */
const NFTABLES_GROUP = 1 << (7 - 1);

export class NftWatch {
  readonly #watch: NetlinkWatch;

  /** Opens the watch in the thread's namespace; changes caused by one of `ownPorts` are not reported. */
  constructor(ownPorts: ReadonlySet<number>, onChange: () => void) {
    this.#watch = new NetlinkWatch(NETLINK_NETFILTER, NFTABLES_GROUP, {
      onMessages: (messages) => {
        for (const message of messages) if (!ownPorts.has(message.port)) return onChange();
      },
      onUnreadable: onChange,
    });
  }

  /** Open as long as the watch; a caller that needs it longer duplicates it. */
  get fd(): number {
    return this.#watch.fd;
  }

  close(): void {
    this.#watch.close();
  }
}
