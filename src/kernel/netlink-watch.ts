/**
 * NetlinkWatch: a socket that receives what the kernel reports to a group: changes of rules, of links. It uses the netlink
 * package, whose socket opens synchronously on the calling thread (so in the thread's namespace) and is polled by libuv.
 */
import { randomInt } from "node:crypto";
import { closeSync, openSync, readdirSync } from "node:fs";
import { RawNetlinkSocket } from "node-netlink/dist/raw.js";
import { codeOf } from "../base/lib/fault.ts";
import { guard } from "../base/lib/guard.ts";
import { closeNetfilter } from "./in-pool.ts";
import { duplicate, ignoreOverflow, netlinkPort } from "./libc.ts";
import { type NetlinkMessage, messagesIn } from "./netlink-message.ts";
import { addressText } from "../base/model/address.ts";
import { LIMITS } from "../base/limits.ts";
import type { NetlinkMemory } from "./netlink-socket.ts";
import { RouteSocket } from "./rtnetlink.ts";
import * as rt from "./rtnetlink-constants.ts";

/**
 * Which addresses belong to a namespace itself, as the kernel's routes say: packets to them arrive there. Results are kept until the kernel
 * reports a change of addresses or routes.
 */
export class LocalAddresses {
  readonly #routes: RouteSocket;
  readonly #watch: NetlinkWatch;
  readonly #known = new Map<string, boolean>();

  /** Opens the sockets in the thread's namespace. */
  constructor(memory: NetlinkMemory) {
    this.#routes = new RouteSocket(memory);
    const forget = (): void => this.#known.clear();
    try {
      this.#watch = new NetlinkWatch(rt.NETLINK_ROUTE, rt.ADDRESS_GROUPS, {
        onMessages: forget,
        onUnreadable: forget,
      });
    } catch (error) {
      this.#routes.close();
      throw error;
    }
  }

  has(address: Uint8Array): boolean {
    const key = Buffer.from(address).toString("latin1");
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const isLocal = this.#routes.arrivesHere(addressText(address));
    if (this.#known.size >= LIMITS.hostAddresses) this.#known.clear();
    this.#known.set(key, isLocal);
    return isLocal;
  }

  close(): void {
    this.#watch.close();
    this.#routes.close();
  }
}

/** Port ids that the kernel gives to sockets that ask for none are below these, the process id among them. */
const PORTS = { first: 0x4000_0000, end: 0x8000_0000 };
const BIND_ATTEMPTS = 16;
const RETRY_MS = 1_000;

/** The ports of this process's watches: each is used once, because the kernel keeps them apart only within a namespace. */
const ports = new Set<number>();
/** Open watches. Node polls its sockets once more while it exits, and the package aborts at a message then. */
const open = new Set<NetlinkWatch>();
process.on("exit", () => {
  for (const watch of open) watch.close();
});

interface NetlinkWatchHooks {
  /** Called with the messages of a datagram. */
  readonly onMessages: (messages: Iterable<NetlinkMessage>) => void;
  /** Called if a report was lost or cannot be read. */
  readonly onUnreadable: () => void;
}

export class NetlinkWatch {
  readonly #socket: RawNetlinkSocket;
  readonly #fd: number;

  /** Opens the watch in the thread's namespace. `groups` are bits of a bind address. */
  constructor(protocol: number, groups: number, { onMessages, onUnreadable }: NetlinkWatchHooks) {
    this.#socket = openSocket(protocol, groups);
    try {
      this.#fd = descriptorOf(this.#socket);
      // An overflow is a socket error, at which the package ends the process. Enough arrives despite an overflow to
      // show that something changed.
      ignoreOverflow(this.#fd);
    } catch (error) {
      this.#socket.close();
      throw error;
    }
    const notify = (): void => void guard.run("netlink", 0, onUnreadable);
    this.#socket.on("message", (datagram) => void guard.run("netlink", 0, () => onMessages(messagesIn(datagram))));
    this.#socket.on("error", notify);
    this.#socket.on("truncatedMessage", notify);
    this.#socket.unref();
    open.add(this);
  }

  /** Open as long as the watch; a caller that needs it longer duplicates it. */
  get fd(): number {
    return this.#fd;
  }

  /**
   * The package closes its descriptor on this thread. That does not wait, because it is not the socket's last descriptor; where there is no
   * room for another one, all of it is closed later.
   */
  close(): void {
    if (!open.has(this)) return;
    let last: number;
    try {
      last = duplicate(this.#fd);
    } catch {
      setTimeout(() => this.close(), RETRY_MS).unref();
      return;
    }
    open.delete(this);
    ports.delete(this.#socket.address().port);
    this.#socket.close();
    closeNetfilter(last);
  }
}

function openSocket(protocol: number, localGroups: number): RawNetlinkSocket {
  for (let attempt = 1; ; attempt++) {
    const localPort = unusedPort();
    try {
      const options = { localPort, localGroups, recvBufferSize: 0, sendBufferSize: 0 };
      const socket = new RawNetlinkSocket(protocol, options);
      ports.add(localPort);
      return socket;
    } catch (error) {
      if (codeOf(error) !== "EADDRINUSE" || attempt === BIND_ATTEMPTS) throw error;
    }
  }
}

function unusedPort(): number {
  for (;;) {
    const port = randomInt(PORTS.first, PORTS.end);
    if (!ports.has(port)) return port;
  }
}

/** The package does not expose its descriptor. It is the one with the socket's port id, which no other socket of ours has. */
function descriptorOf(socket: RawNetlinkSocket): number {
  const { port } = socket.address();
  // The descriptor was made last, and the kernel assigns the lowest free number: one opened now is close to it.
  const near = openSync("/dev/null", "r");
  closeSync(near);
  for (let fd = near - 1; fd >= 0; fd--) if (netlinkPort(fd) === port) return fd;
  for (const name of readdirSync("/proc/self/fd")) if (netlinkPort(Number(name)) === port) return Number(name);
  throw new Error("Cannot find the descriptor of the netlink socket");
}
