/**
 * LocalAddresses: which addresses are those of a namespace itself, as the kernel's routes say: what is sent to one of them arrives
 * there. What the kernel said is kept until it reports a change of addresses or routes.
 */
import { addressText } from "../base/model/address.ts";
import { LIMITS } from "../base/limits.ts";
import type { NetlinkMemory } from "./netlink-socket.ts";
import { NetlinkWatch } from "./netlink-watch.ts";
import { RouteSocket } from "./rtnetlink.ts";
import * as rt from "./rtnetlink-constants.ts";

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
    if (this.#known.size >= LIMITS.policyHostAddresses) this.#known.clear();
    this.#known.set(key, isLocal);
    return isLocal;
  }

  close(): void {
    this.#watch.close();
    this.#routes.close();
  }
}
