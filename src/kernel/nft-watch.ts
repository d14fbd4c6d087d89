/**
 * The watch on a namespace's rules: told whenever somebody else changes nf_tables there. It stands on the netlink package,
 * whose socket opens synchronously on the calling thread (so in the namespace that the thread is in) and waits in libuv.
 */
import netlink from "node-netlink";

import { NETLINK_NETFILTER } from "./nfnetlink.ts";
import { messagesIn } from "./netlink-message.ts";

/** linux/netfilter/nfnetlink.h: NFNLGRP_NFTABLES, as a bit of a bind address. */
const NFTABLES_GROUP = 1 << (7 - 1);
const ANY_PORT = 0;

export class NftWatch {
  readonly #socket: InstanceType<typeof netlink.RawNetlinkSocket>;
  #isClosed = false;

  /** Opens the watch in the namespace that the thread is in; changes caused by `ownPort` are not told. */
  constructor(ownPort: () => number | undefined, onChange: () => void) {
    this.#socket = new netlink.RawNetlinkSocket(NETLINK_NETFILTER, {
      localPort: ANY_PORT,
      localGroups: NFTABLES_GROUP,
      recvBufferSize: 0,
      sendBufferSize: 0,
    });
    this.#socket.on("message", (datagram) => {
      for (const message of messagesIn(datagram)) {
        if (message.port !== ownPort()) {
          onChange();
          return;
        }
      }
    });
    // The one error of such a socket is that it overflowed: then something changed, and more than once.
    this.#socket.on("error", onChange);
    this.#socket.on("truncatedMessage", onChange);
    this.#socket.unref();
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#socket.close();
  }
}
