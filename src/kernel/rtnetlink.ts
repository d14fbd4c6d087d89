/**
 * RouteSocket: a netlink socket to the links, addresses and routes of the namespace it was made in. Every method is one synchronous
 * exchange, so that it can run inside a namespace.
 */
import { addressBytes, addressText } from "../base/model/address.ts";
import { AF_INET, AF_INET6 } from "./libc.ts";
import {
  NLM_F_ACK,
  NLM_F_CREATE,
  NLM_F_DUMP,
  NLM_F_EXCL,
  type NetlinkWriter,
  attributesIn,
  textOf,
} from "./netlink-message.ts";
import { type NetlinkMemory, type NetlinkRequest, NetlinkSocket } from "./netlink-socket.ts";
import * as rt from "./rtnetlink-constants.ts";

export interface Link {
  readonly index: number;
  readonly name: string;
  readonly isUp: boolean;
  readonly isLoopback: boolean;
  /** Packets can be sent: it is up, so is its peer, and the kernel has processed both. */
  readonly isRunning: boolean;
  /** The index of the bridge that it is a port of. */
  readonly master?: number;
  /** The sysctl route_localnet; undefined for a link without IPv4. */
  readonly routeLocalnet?: boolean;
}

export interface InterfaceAddress {
  readonly index: number;
  readonly address: string;
  readonly prefixLength: number;
  readonly label: string | undefined;
}

interface DefaultGateway {
  readonly family: 4 | 6;
  readonly gateway: string;
  readonly index: number;
}

interface VethPair {
  readonly name: string;
  /** The other end: its name, and a descriptor of the namespace that it is put into. */
  readonly peer: { readonly name: string; readonly namespace: number };
}

interface NewRoute {
  /** undefined is the default route; it needs a gateway. */
  readonly destination: string | undefined;
  readonly prefixLength: number;
  readonly gateway?: string;
  readonly index: number;
}

type GatewayWithMetric = DefaultGateway & { readonly metric: number };

type Call = keyof typeof rt.CALLS;

/** `absent`: the kernel's errors if the object does not exist. */
interface Answer<T> {
  readonly read: (body: Buffer) => T;
  readonly absent: ReadonlySet<string>;
}

/** A link has forty other attributes. */
const LINK_ATTRIBUTES = new Set([rt.IFLA_IFNAME, rt.IFLA_MASTER, rt.IFLA_OPERSTATE, rt.IFLA_AF_SPEC]);
const ADDRESS_ATTRIBUTES = new Set([rt.IFA_LOCAL, rt.IFA_ADDRESS, rt.IFA_LABEL]);
const INET = new Set([AF_INET]);
const INET_CONF = new Set([rt.IFLA_INET_CONF]);
const CREATE = NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
const NO_LINK = new Set(["ENODEV"]);
/** Errors for an unreachable address: no route, a route that refuses, or no such family at all. */
const NO_ROUTE = new Set(["ENETUNREACH", "EHOSTUNREACH", "EINVAL", "EACCES", "EAFNOSUPPORT", "EOPNOTSUPP"]);

export class RouteSocket {
  readonly #socket: NetlinkSocket;

  /** Opens the socket in the thread's namespace. */
  constructor(memory: NetlinkMemory) {
    this.#socket = new NetlinkSocket(memory, rt.NETLINK_ROUTE);
  }

  close(): void {
    this.#socket.close();
  }

  links(): readonly Link[] {
    const links: Link[] = [];
    this.#socket.request(LINKS, (body) => void links.push(linkOf(body)));
    return links;
  }

  /** Reads all links in parts between which other work may run, also in another namespace. */
  *linksInParts(links: Link[]): Generator<void> {
    yield* this.#socket.requestInParts(LINKS, (body) => void links.push(linkOf(body)));
  }

  /**
   * One link. A request for a single link makes the kernel process its pending state changes first. Before Linux 6.8
   * the kernel does that later, and until then the link is not running.
   */
  linkNamed(name: string): Link | undefined {
    const write = (w: NetlinkWriter): void => {
      w.raw(linkHeader(0));
      w.text(rt.IFLA_IFNAME, name);
    };
    return this.#get("RTM_GETLINK", name, write, { read: linkOf, absent: NO_LINK });
  }

  /** The addresses of both families. */
  addresses(): readonly InterfaceAddress[] {
    const addresses: InterfaceAddress[] = [];
    const write = (w: NetlinkWriter): void => w.raw(Buffer.alloc(rt.ADDRESS_HEADER_BYTES));
    this.#dump("RTM_GETADDR", "addresses", write, (body) => {
      const address = interfaceAddressOf(body);
      if (address !== undefined) addresses.push(address);
    });
    return addresses;
  }

  /** The default gateways, by family and metric. */
  defaultGateways(): readonly DefaultGateway[] {
    const found: GatewayWithMetric[] = [];
    const write = (w: NetlinkWriter): void => w.raw(Buffer.alloc(rt.ROUTE_HEADER_BYTES));
    this.#dump("RTM_GETROUTE", "routes", write, (body) => {
      const gateway = defaultGatewayOf(body);
      if (gateway !== undefined) found.push(gateway);
    });
    return found
      .toSorted((a, b) => a.family - b.family || a.metric - b.metric)
      .map(({ family, gateway, index }) => ({ family, gateway, index }));
  }

  /** Whether a packet to `address` would be sent or delivered locally. */
  hasRouteTo(address: string): boolean {
    const type = this.#routeTypeTo(address);
    return type !== undefined && !rt.REFUSING_ROUTES.has(type);
  }

  /** The gateway of packets to `address`; undefined without a route, or on a link of ours. */
  gatewayTo(address: string): string | undefined {
    const read = (body: Buffer): string | undefined => hopOf(attributesIn(body, rt.ROUTE_HEADER_BYTES))?.gateway;
    return this.#route(address, read);
  }

  /** Whether packets to `address` are delivered locally. A newly added IPv6 address takes a moment. */
  isLocal(address: string): boolean {
    return this.#routeTypeTo(address) === rt.RTN_LOCAL;
  }

  /** Whether packets to `address` arrive here, also those to a shared address such as a network's broadcast. */
  arrivesHere(address: string): boolean {
    return rt.ARRIVING_ROUTES.has(this.#routeTypeTo(address) ?? 0);
  }

  /** Adds an address; throws EEXIST if it already exists. */
  addAddress(added: {
    readonly index: number;
    readonly address: string;
    readonly prefixLength: number;
    readonly label?: string;
  }): void {
    this.#request("RTM_NEWADDR", CREATE, aboutAddress(added), (w) => {
      writeAddress(w, added);
      if (added.label !== undefined) w.text(rt.IFA_LABEL, added.label);
      // Skips duplicate address detection: it takes a second, and there can be no duplicate.
      if (added.address.includes(":")) w.nativeU32(rt.IFA_FLAGS, rt.IFA_F_NODAD);
    });
  }

  removeAddress(removed: { readonly index: number; readonly address: string; readonly prefixLength: number }): void {
    this.#request("RTM_DELADDR", NLM_F_ACK, aboutAddress(removed), (w) => writeAddress(w, removed));
  }

  /** Makes a pair of links, one end here, the other in another namespace. */
  createVeth({ name, peer }: VethPair): void {
    this.#request("RTM_NEWLINK", CREATE, `veth ${name}`, (w) => {
      w.raw(linkHeader(0));
      w.text(rt.IFLA_IFNAME, name);
      w.nested(rt.IFLA_LINKINFO, () => {
        w.text(rt.IFLA_INFO_KIND, "veth");
        w.nested(rt.IFLA_INFO_DATA, () => {
          w.nested(rt.VETH_INFO_PEER, () => {
            w.raw(linkHeader(0));
            w.text(rt.IFLA_IFNAME, peer.name);
            w.nativeU32(rt.IFLA_NET_NS_FD, peer.namespace);
          });
        });
      });
    });
  }

  createBridge(name: string): void {
    this.#request("RTM_NEWLINK", CREATE, `bridge ${name}`, (w) => {
      w.raw(linkHeader(0));
      w.text(rt.IFLA_IFNAME, name);
      w.nested(rt.IFLA_LINKINFO, () => w.text(rt.IFLA_INFO_KIND, "bridge"));
    });
  }

  setUp(index: number): void {
    this.#request("RTM_NEWLINK", NLM_F_ACK, `interface ${index}`, (w) => w.raw(linkHeader(index, rt.IFF_UP)));
  }

  removeLink(index: number): void {
    this.#request("RTM_DELLINK", NLM_F_ACK, `interface ${index}`, (w) => w.raw(linkHeader(index)));
  }

  addRoute({ destination, prefixLength, gateway, index }: NewRoute): void {
    const to = destination === undefined ? undefined : bytesOf(destination);
    const via = gateway === undefined ? undefined : bytesOf(gateway);
    const known = to ?? via;
    if (known === undefined) throw new TypeError("A default route needs a gateway");
    const family = familyOf(known);
    const scope = via === undefined && family === AF_INET ? rt.RT_SCOPE_LINK : rt.RT_SCOPE_UNIVERSE;
    this.#request("RTM_NEWROUTE", CREATE, `${destination ?? "default"}/${prefixLength}`, (w) => {
      w.raw(
        Buffer.of(family, prefixLength, 0, 0, rt.RT_TABLE_MAIN, rt.RTPROT_STATIC, scope, rt.RTN_UNICAST, 0, 0, 0, 0),
      );
      if (to !== undefined) w.attribute(rt.RTA_DST, to);
      if (via !== undefined) w.attribute(rt.RTA_GATEWAY, via);
      w.nativeU32(rt.RTA_OIF, index);
    });
  }

  #routeTypeTo(address: string): number | undefined {
    return this.#route(address, (body) => body.readUInt8(rt.ROUTE_TYPE_OFFSET));
  }

  #route<T>(address: string, read: (body: Buffer) => T): T | undefined {
    const to = bytesOf(address);
    const write = (w: NetlinkWriter): void => {
      w.raw(Buffer.of(familyOf(to), to.length * 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
      w.attribute(rt.RTA_DST, to);
    };
    return this.#get("RTM_GETROUTE", address, write, { read, absent: NO_ROUTE });
  }

  /** Requests one object; undefined if the kernel's error says that it does not exist. */
  #get<T>(
    call: Call,
    about: string,
    write: (writer: NetlinkWriter) => void,
    { read, absent }: Answer<T>,
  ): T | undefined {
    let found: T | undefined;
    this.#socket.request({ type: rt.CALLS[call], flags: NLM_F_ACK, call, about, absent, write }, (body) => {
      found = read(body);
    });
    return found;
  }

  #dump(call: Call, about: string, write: (writer: NetlinkWriter) => void, visit: (body: Buffer) => void): void {
    this.#socket.request({ type: rt.CALLS[call], flags: NLM_F_DUMP, call, about, write }, visit);
  }

  #request(call: Call, flags: number, about: string, write: (writer: NetlinkWriter) => void): void {
    this.#socket.request({ type: rt.CALLS[call], flags, call, about, write });
  }
}

/** All links of the namespace. */
export const LINKS: NetlinkRequest = {
  type: rt.CALLS.RTM_GETLINK,
  flags: NLM_F_DUMP,
  call: "RTM_GETLINK",
  about: "links",
  write: (w) => {
    w.raw(linkHeader(0));
    // Counters are most of a link, and its most expensive part.
    w.nativeU32(rt.IFLA_EXT_MASK, rt.RTEXT_FILTER_SKIP_STATS);
  },
};

export function linkHeader(index: number, flags = 0): Buffer {
  const header = Buffer.alloc(rt.LINK_HEADER_BYTES);
  header.writeInt32LE(index, rt.LINK_INDEX_OFFSET);
  header.writeUInt32LE(flags, rt.LINK_FLAGS_OFFSET);
  header.writeUInt32LE(flags, rt.LINK_CHANGE_OFFSET);
  return header;
}

function linkOf(body: Buffer): Link {
  const flags = body.readUInt32LE(rt.LINK_FLAGS_OFFSET);
  const attributes = attributesIn(body, rt.LINK_HEADER_BYTES, LINK_ATTRIBUTES);
  const master = attributes.get(rt.IFLA_MASTER)?.readUInt32LE(0);
  const routeLocalnet = routeLocalnetIn(attributes.get(rt.IFLA_AF_SPEC));
  return {
    index: body.readInt32LE(rt.LINK_INDEX_OFFSET),
    name: textOf(attributes.get(rt.IFLA_IFNAME)),
    isUp: (flags & rt.IFF_UP) !== 0,
    isLoopback: (flags & rt.IFF_LOOPBACK) !== 0,
    isRunning: attributes.get(rt.IFLA_OPERSTATE)?.readUInt8(0) === rt.IF_OPER_UP,
    ...(master === undefined ? {} : { master }),
    ...(routeLocalnet === undefined ? {} : { routeLocalnet }),
  };
}

/** The kernel reports all sysctls of the interface as one array. */
function routeLocalnetIn(families: Buffer | undefined): boolean | undefined {
  const inet = families && attributesIn(families, 0, INET).get(AF_INET);
  const values = inet && attributesIn(inet, 0, INET_CONF).get(rt.IFLA_INET_CONF);
  if (values === undefined || values.length < rt.ROUTE_LOCALNET_OFFSET + 4) return undefined;
  return values.readUInt32LE(rt.ROUTE_LOCALNET_OFFSET) !== 0;
}

function interfaceAddressOf(body: Buffer): InterfaceAddress | undefined {
  const attributes = attributesIn(body, rt.ADDRESS_HEADER_BYTES, ADDRESS_ATTRIBUTES);
  // For point-to-point links IFA_ADDRESS is the peer's address and IFA_LOCAL ours.
  const bytes = attributes.get(rt.IFA_LOCAL) ?? attributes.get(rt.IFA_ADDRESS);
  if (bytes === undefined) return undefined;
  const label = attributes.get(rt.IFA_LABEL);
  return {
    index: body.readUInt32LE(rt.ADDRESS_INDEX_OFFSET),
    address: addressText(bytes),
    prefixLength: body.readUInt8(rt.ADDRESS_PREFIX_OFFSET),
    label: label === undefined ? undefined : textOf(label),
  };
}

function defaultGatewayOf(body: Buffer): GatewayWithMetric | undefined {
  const family = body.readUInt8(0);
  if (family !== AF_INET && family !== AF_INET6) return undefined;
  if (body.readUInt8(rt.ROUTE_PREFIX_OFFSET) !== 0) return undefined;
  if (body.readUInt8(rt.ROUTE_TABLE_OFFSET) !== rt.RT_TABLE_MAIN) return undefined;
  if (body.readUInt8(rt.ROUTE_TYPE_OFFSET) !== rt.RTN_UNICAST) return undefined;
  const attributes = attributesIn(body, rt.ROUTE_HEADER_BYTES);
  const hop = hopOf(attributes);
  if (hop === undefined) return undefined;
  const metric = attributes.get(rt.RTA_PRIORITY)?.readUInt32LE(0) ?? 0;
  return { family: family === AF_INET ? 4 : 6, ...hop, metric };
}

/** The first next hop of a route; undefined for one without a gateway of its own family. */
function hopOf(attributes: ReadonlyMap<number, Buffer>): { gateway: string; index: number } | undefined {
  const hops = attributes.get(rt.RTA_MULTIPATH);
  const own = hops === undefined ? attributes : attributesIn(firstOf(hops), rt.NEXT_HOP_HEADER_BYTES);
  const gateway = own.get(rt.RTA_GATEWAY);
  const index = hops?.readUInt32LE(rt.NEXT_HOP_INDEX_OFFSET) ?? attributes.get(rt.RTA_OIF)?.readUInt32LE(0);
  return gateway === undefined || index === undefined ? undefined : { gateway: addressText(gateway), index };
}

function firstOf(hops: Buffer): Buffer {
  return hops.subarray(0, hops.readUInt16LE(0));
}

function writeAddress(w: NetlinkWriter, { index, address, prefixLength }: Omit<InterfaceAddress, "label">): void {
  const bytes = bytesOf(address);
  // An address on lo serves local clients; it must not be a source of packets that leave.
  const scope = index === rt.LOOPBACK_INDEX ? rt.RT_SCOPE_HOST : rt.RT_SCOPE_UNIVERSE;
  const header = Buffer.alloc(rt.ADDRESS_HEADER_BYTES);
  header.set([familyOf(bytes), prefixLength, 0, scope]);
  header.writeUInt32LE(index, rt.ADDRESS_INDEX_OFFSET);
  w.raw(header);
  w.attribute(rt.IFA_LOCAL, bytes);
  w.attribute(rt.IFA_ADDRESS, bytes);
}

function aboutAddress({ index, address, prefixLength }: Omit<InterfaceAddress, "label">): string {
  return `${address}/${prefixLength} on interface ${index}`;
}

function bytesOf(address: string): Uint8Array {
  const bytes = addressBytes(address);
  if (bytes === undefined) throw new TypeError(`Not an IP address: "${address}"`);
  return bytes;
}

function familyOf(address: Uint8Array): number {
  return address.length === 4 ? AF_INET : AF_INET6;
}
