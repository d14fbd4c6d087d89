/**
 * NftWatch: reports changes of other processes to nf_tables in a namespace. It uses the netlink package, whose socket
 * opens synchronously on the calling thread (so in the thread's namespace) and is polled by libuv.
 */
import { closeSync, openSync, readdirSync } from "node:fs";

// Only the raw sockets of the package: importing all of it costs 3 MB.
import { RawNetlinkSocket } from "node-netlink/dist/raw.js";

import { guard } from "../base/lib/guard.ts";
import { ignoreOverflow, netlinkPort } from "./libc.ts";
import { NETLINK_NETFILTER } from "./nfnetlink.ts";
import { messagesIn } from "./netlink-message.ts";

/** linux/netfilter/nfnetlink.h: NFNLGRP_NFTABLES, as a bit of a bind address. */
const NFTABLES_GROUP = 1 << (7 - 1);
const ANY_PORT = 0;

/** Open watches. Node polls its sockets once more while it exits, and the package aborts at a message then. */
const open = new Set<NftWatch>();
process.on("exit", () => {
  for (const watch of open) watch.close();
});

export class NftWatch {
  readonly #socket: RawNetlinkSocket;

  /** Opens the watch in the thread's namespace; changes caused by one of `ownPorts` are not reported. */
  constructor(ownPorts: ReadonlySet<number>, onChange: () => void) {
    this.#socket = new RawNetlinkSocket(NETLINK_NETFILTER, {
      localPort: ANY_PORT,
      localGroups: NFTABLES_GROUP,
      recvBufferSize: 0,
      sendBufferSize: 0,
    });
    try {
      // An overflow is a socket error, at which the package ends the process. Enough arrives despite an overflow to
      // show that something changed.
      ignoreOverflow(descriptorOf(this.#socket));
    } catch (error) {
      this.#socket.close();
      throw error;
    }
    const notify = (): void => void guard.run("netlink", 0, onChange);
    this.#socket.on("message", (datagram) => {
      guard.run("netlink", 0, () => {
        for (const message of messagesIn(datagram)) if (!ownPorts.has(message.port)) return onChange();
      });
    });
    this.#socket.on("error", notify);
    this.#socket.on("truncatedMessage", notify);
    this.#socket.unref();
    open.add(this);
  }

  close(): void {
    if (open.delete(this)) this.#socket.close();
  }
}

/** The package does not expose its descriptor: it is the one with the socket's port id. */
function descriptorOf(socket: RawNetlinkSocket): number {
  const { port } = socket.address();
  // It was made last, and the kernel assigns the lowest free number: one opened now is close to it.
  const near = openSync("/dev/null", "r");
  closeSync(near);
  for (let fd = near - 1; fd >= 0; fd--) if (netlinkPort(fd) === port) return fd;
  for (const name of readdirSync("/proc/self/fd")) if (netlinkPort(Number(name)) === port) return Number(name);
  throw new Error("Cannot find the descriptor of the netlink socket");
}
