/**
 * The watch on a namespace's rules: told whenever somebody else changes nf_tables there. It stands on the netlink package,
 * whose socket opens synchronously on the calling thread (so in the namespace that the thread is in) and waits in libuv.
 */
import { closeSync, openSync, readdirSync } from "node:fs";

// Of the package its raw sockets alone: the whole of it costs 3 MB.
import { RawNetlinkSocket } from "node-netlink/dist/raw.js";

import { guard } from "../base/lib/guard.ts";
import { ignoreOverflow, netlinkPort } from "./libc.ts";
import { NETLINK_NETFILTER } from "./nfnetlink.ts";
import { messagesIn } from "./netlink-message.ts";

/** linux/netfilter/nfnetlink.h: NFNLGRP_NFTABLES, as a bit of a bind address. */
const NFTABLES_GROUP = 1 << (7 - 1);
const ANY_PORT = 0;

/** Those that are open. Node looks into its sockets once more while it ends, and at a message then the package aborts. */
const open = new Set<NftWatch>();
process.on("exit", () => {
  for (const watch of open) watch.close();
});

export class NftWatch {
  readonly #socket: RawNetlinkSocket;

  /** Opens the watch in the namespace that the thread is in; changes caused by one of `ownPorts` are not told. */
  constructor(ownPorts: ReadonlySet<number>, onChange: () => void) {
    this.#socket = new RawNetlinkSocket(NETLINK_NETFILTER, {
      localPort: ANY_PORT,
      localGroups: NFTABLES_GROUP,
      recvBufferSize: 0,
      sendBufferSize: 0,
    });
    try {
      // An overflow is an error, and at an error of the socket the package ends the process. Of what overflows it, enough
      // arrives to tell that something changed.
      ignoreOverflow(descriptorOf(this.#socket));
    } catch (error) {
      this.#socket.close();
      throw error;
    }
    const tell = (): void => void guard.run("netlink", 0, onChange);
    this.#socket.on("message", (datagram) => {
      guard.run("netlink", 0, () => {
        for (const message of messagesIn(datagram)) if (!ownPorts.has(message.port)) return onChange();
      });
    });
    this.#socket.on("error", tell);
    this.#socket.on("truncatedMessage", tell);
    this.#socket.unref();
    open.add(this);
  }

  close(): void {
    if (open.delete(this)) this.#socket.close();
  }
}

/** The package does not tell its descriptor; among ours it is the one with its port. */
function descriptorOf(socket: RawNetlinkSocket): number {
  const { port } = socket.address();
  // It was made last, and the kernel gives the lowest number that is free: what is opened now lies near it.
  const near = openSync("/dev/null", "r");
  closeSync(near);
  for (let fd = near - 1; fd >= 0; fd--) if (netlinkPort(fd) === port) return fd;
  for (const name of readdirSync("/proc/self/fd")) if (netlinkPort(Number(name)) === port) return Number(name);
  throw new Error("The descriptor of the netlink socket is not among ours");
}
