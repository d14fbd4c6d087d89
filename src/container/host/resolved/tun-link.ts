/**
 * TunLink: a network link of our own on the host, which nothing is sent through. systemd-resolved keeps servers and
 * domains per link, and drops them with the link: so whatever ends this process also ends what it has set.
 */
import { constants } from "node:fs";

import { Fault, codeOf } from "../../../base/lib/fault.ts";
import { closeQuietly, openInRoot } from "../../../kernel/libc.ts";
import type { NetlinkMemory } from "../../../kernel/netlink-socket.ts";
import { type Link, RouteSocket } from "../../../kernel/rtnetlink.ts";
import { makeTun } from "../../../kernel/tun.ts";

const DEVICE = "/dev/net/tun";
/** Beside another instance's, and beside that of the process that this one replaces. */
const NAMES = "dns11-%d";
const OWN_NAME = /^dns11-\d+$/;
/**
 * systemd-resolved ignores links without an address of global scope. One of IPv6: with a second IPv4 address, Docker's
 * swarm mode would no longer know which one to advertise. Where IPv6 is off, the dummy address of RFC 7600, which no
 * other host has either.
 */
const ADDRESSES = [
  { address: "fd64:6e73:3131::1", prefixLength: 128 },
  { address: "192.0.0.8", prefixLength: 32 },
] as const;
/** IPv6 is off: for this link, for the namespace, or in the kernel. */
const NO_IPV6 = new Set(["EACCES", "EPERM", "EAFNOSUPPORT", "EOPNOTSUPP"]);

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
      addOneAddress(routes, made);
      return made;
    });
    return { index, fd };
  } catch (error) {
    closeQuietly(fd);
    throw new Fault("HOST_NO_LINK", "Cannot make a network link for systemd-resolved", {
      cause: error,
      remedy: `Allow ${DEVICE} to dns11, and load the module tun; or use --host-names=capture.`,
    });
  }
}

/** Whether it still has its address, which goes when IPv6 is switched off. Call inside the host's namespace. */
export function isUsable({ index }: TunLink, memory: NetlinkMemory): boolean {
  return withRoutes(memory, (routes) =>
    routes
      .addresses()
      .some((each) => each.index === index && ADDRESSES.some(({ address }) => address === each.address)),
  );
}

function addOneAddress(routes: RouteSocket, index: number): void {
  const [first, second] = ADDRESSES;
  try {
    routes.addAddress({ index, ...first });
  } catch (error) {
    if (!NO_IPV6.has(codeOf(error) ?? "")) throw error;
    routes.addAddress({ index, ...second });
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
