/**
 * ResolvedMode: the host's own namespace is served through systemd-resolved. It sends us queries for names of the domain
 * and for addresses of containers, whoever asks it and however (its stub, nss-resolve, varlink, D-Bus), and others it
 * never sends. What it was sent goes with the link, so nothing has to be undone.
 *
 * The link is one of our own, which nothing is sent through. systemd-resolved keeps servers and domains per link, and drops
 * them with the link: so whatever ends this process also ends what it has set.
 */
import { constants } from "node:fs";
import { Fault, codeOf, reasonOf } from "../../base/lib/fault.ts";
import type { AttachMode, ServedNamespace } from "../../container/attach/attach-mode.ts";
import { type Capture, DOCKER_RESOLVER } from "../../container/capture/capture.ts";
import { closeQuietly, openInRoot, addressOf, bind, lastErrno, SystemFault } from "../../kernel/libc.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { type Link, RouteSocket } from "../../kernel/rtnetlink.ts";
import { type Subnet, reverseZoneNames } from "./members.ts";
import { type LinkDomain, type LinkSettings, isRefusal } from "./resolved-bus.ts";

/**
 * The server that systemd-resolved asks. Nothing listens there: our rules redirect it, so that the sockets may be
 * others after a failure or a takeover, and that it leads nowhere when they are gone.
 */
const SERVER = "127.0.0.153";

const CAPTURE: Capture = {
  redirects: [{ bind: DOCKER_RESOLVER, fromInside: [SERVER], fromPods: [], replySource: SERVER }],
  bypassInterfaces: [],
  guardsLoopback: false,
  guardsPorts: true,
};

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

interface ResolvedModeParts {
  /** Names below these domains resolve. */
  readonly domains: () => readonly string[];
  /** The subnets of reachable containers. */
  readonly subnets: () => Iterable<Subnet>;
  /** The root folder of the host. */
  readonly root: () => number;
  readonly memory: NetlinkMemory;
  readonly bus: {
    domains(): Promise<readonly LinkDomain[]>;
    setLink(settings: LinkSettings): Promise<void>;
  };
  /** systemd-resolved did not accept the link, for this reason. */
  readonly onRefused: (reason: string) => void;
}

export class ResolvedMode implements AttachMode {
  readonly #parts: ResolvedModeParts;
  #link: TunLink | undefined;
  #namespace: ServedNamespace | undefined;
  /** What systemd-resolved was sent last. */
  #sent = "";
  /** How often another process has become systemd-resolved. */
  #starts = 0;
  /** One after the other, so that the last one wins. */
  #turn: Promise<void> = Promise.resolve();
  /** The one that waits for its turn, and will tell what is true then. */
  #next: Promise<void> | undefined;

  constructor(parts: ResolvedModeParts) {
    this.#parts = parts;
  }

  /** Makes the link; throws a Fault where that is not possible. Call inside the host's namespace. */
  openLink(): void {
    const { root, memory } = this.#parts;
    if (this.#link !== undefined && isUsable(this.#link, memory)) return;
    this.#closeLink();
    this.#link = openTunLink(root(), memory);
  }

  /** Another process is systemd-resolved now, and knows nothing. */
  forget(): void {
    this.#starts++;
    this.#sent = "";
    this.#tell().catch(() => undefined);
  }

  capture(): Capture {
    this.openLink();
    return CAPTURE;
  }

  async onVerified(namespace: ServedNamespace): Promise<void> {
    this.#namespace = namespace;
    await this.#tell();
  }

  /** Closes the link first: what is asked from now on goes where it went before. */
  withdraw(): void {
    this.#namespace = undefined;
    this.#sent = "";
    this.#closeLink();
  }

  undo(): void {
    this.withdraw();
  }

  #closeLink(): void {
    if (this.#link !== undefined) closeQuietly(this.#link.fd);
    this.#link = undefined;
  }

  async #tell(): Promise<void> {
    if (this.#next === undefined) {
      this.#next = this.#tellInTurn();
      this.#turn = this.#next.catch(() => undefined);
    }
    await this.#next;
  }

  async #tellInTurn(): Promise<void> {
    await this.#turn;
    this.#next = undefined;
    await this.#tellNow();
  }

  async #tellNow(): Promise<void> {
    const [link, namespace] = [this.#link, this.#namespace];
    if (link === undefined || namespace === undefined) return;
    const { bus, subnets, memory, onRefused } = this.#parts;
    const starts = this.#starts;
    try {
      const names = namespace.within(() => linkNames(memory));
      const all = await bus.domains();
      const others = all.filter(({ index }) => !isOwnLink(names.get(index)));
      const taken = new Set(others.map((each) => each.domain));
      const domains = [...this.#parts.domains(), ...reverseZoneNames(subnets()).filter((zone) => !taken.has(zone))];
      const settings = { index: link.index, server: SERVER, domains };
      const text = JSON.stringify(settings);
      // Another program may have changed the link: resolvectl revert, or a network manager.
      const own = new Set(all.filter(({ index }) => index === link.index).map((each) => each.domain));
      const isSet = domains.every((each) => own.has(each));
      if ((isSet && text === this.#sent) || this.#link !== link) return;
      await bus.setLink(settings);
      this.#sent = text;
    } catch (error) {
      // While it was restarted, the bus said that there is none; the new process is told next.
      if (starts !== this.#starts) return;
      if (isRefusal(error)) onRefused(reasonOf(error));
      throw error;
    }
  }
}

interface TunLink {
  readonly index: number;
  readonly fd: number;
}

/** Call inside the host's namespace. `root` is its root folder. */
function openTunLink(root: number, memory: NetlinkMemory): TunLink {
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
function isUsable({ index }: TunLink, memory: NetlinkMemory): boolean {
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

const ioctl = bind<(fd: number, request: number, argument: number) => number>(
  "int ioctl(int fd, unsigned long request, uintptr_t argument)",
);

/** linux/if_tun.h */
const TUNSETIFF = 0x400454ca;
const IFF_TUN = 0x0001;
const IFF_NO_PI = 0x1000;
const REQUEST_BYTES = 40;
const NAME_BYTES = 16;

/**
 * Makes a network link of an open /dev/net/tun, in the namespace in which that was opened, and returns its name: "%d" in
 * `name` becomes the first free number. The kernel removes the link when the descriptor closes, however the process ends.
 */
function makeTun(device: number, name: string): string {
  const request = Buffer.alloc(REQUEST_BYTES);
  request.write(name, 0, NAME_BYTES - 1, "latin1");
  request.writeUInt16LE(IFF_TUN | IFF_NO_PI, NAME_BYTES);
  if (ioctl(device, TUNSETIFF, addressOf(request)) < 0) throw new SystemFault("ioctl", lastErrno(), "/dev/net/tun");
  return request.toString("latin1", 0, request.indexOf(0));
}
