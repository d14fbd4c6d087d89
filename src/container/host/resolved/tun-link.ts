/**
 * TunLink: a network link of our own on the host, which nothing is sent through. systemd-resolved keeps servers and
 * domains per link, and drops them with the link: so whatever ends this process also ends what it told.
 */
import { constants } from "node:fs";

import { Fault } from "../../../base/lib/fault.ts";
import { closeQuietly, openInRoot } from "../../../kernel/libc.ts";
import type { NetlinkMemory } from "../../../kernel/netlink-socket.ts";
import { type Link, RouteSocket } from "../../../kernel/rtnetlink.ts";
import { makeTun } from "../../../kernel/tun.ts";

const DEVICE = "/dev/net/tun";
/** Beside another instance's, and beside that of the process that this one replaces. */
const NAMES = "dns11-%d";
const OWN_NAME = /^dns11-\d+$/;
/**
 * systemd-resolved ignores links without an address of global scope. One of IPv6 only: with a second IPv4 address,
 * Docker's swarm mode would no longer know which one to advertise.
 */
const ADDRESS = "fd64:6e73:3131::1";

export interface TunLink {
  readonly index: number;
  readonly fd: number;
}

/** Call inside the host's namespace. `root` is its root folder. */
export function openTunLink(root: number, memory: NetlinkMemory): TunLink {
  let fd = -1;
  try {
    fd = openInRoot(root, DEVICE, constants.O_RDWR);
    const name = makeTun(fd, NAMES);
    const index = withRoutes(memory, (routes) => {
      const { index: made } = routes.linkNamed(name) as Link;
      routes.setUp(made);
      routes.addAddress({ index: made, address: ADDRESS, prefixLength: 128 });
      return made;
    });
    return { index, fd };
  } catch (error) {
    closeQuietly(fd);
    throw new Fault("HOST_NO_LINK", "Cannot make a network link for systemd-resolved", {
      cause: error,
      remedy: `Allow ${DEVICE} to dns11, load the module tun and leave IPv6 enabled; or use --host-names=capture.`,
    });
  }
}

/** The links of the host, by index. Call inside its namespace. */
export function linkNames(memory: NetlinkMemory): ReadonlyMap<number, string> {
  const links = withRoutes(memory, (routes) => routes.links());
  return new Map(links.map(({ index, name }) => [index, name]));
}

/** Whether the link is one of an instance of dns11. */
export function isOwnLink(name: string | undefined): boolean {
  return name !== undefined && OWN_NAME.test(name);
}

function withRoutes<T>(memory: NetlinkMemory, use: (routes: RouteSocket) => T): T {
  const routes = new RouteSocket(memory);
  try {
    return use(routes);
  } finally {
    routes.close();
  }
}
