/**
 * HostLinks: the links of a namespace as the kernel describes them there: a veth on the host says which namespace its other end is in.
 * Processes in that other namespace cannot change what is read here.
 */
import type { NetlinkMessage } from "./netlink-message.ts";
import { NLM_F_ACK, type NetlinkWriter, attributesIn, textOf } from "./netlink-message.ts";
import { type NetlinkMemory, type NetlinkRequest, NetlinkSocket } from "./netlink-socket.ts";
import { NetlinkWatch } from "./netlink-watch.ts";
import * as rt from "./rtnetlink-constants.ts";
import { LINKS, linkHeader } from "./rtnetlink.ts";

export interface HostLink {
  readonly index: number;
  readonly name: string;
  readonly mac: Uint8Array | undefined;
  /** The index of the bridge that it is a port of. */
  readonly master: number | undefined;
  /** The other end of a veth, if it is in another namespace. */
  readonly peer:
    | {
        /** Its index in that namespace. */
        readonly index: number;
        /** The id of that namespace in this one; once the namespace is gone, another one may get the id. */
        readonly namespace: number;
      }
    | undefined;
}

/** A change of one link: what it is now, or that it is gone. */
export type LinkChange =
  | { readonly kind: "link"; readonly link: HostLink }
  | { readonly kind: "gone"; readonly index: number };

/** The family of reports about links. Reports with another family are a bridge's, about its ports. */
const AF_UNSPEC = 0;
const LINK_ATTRIBUTES = new Set([
  rt.IFLA_ADDRESS,
  rt.IFLA_IFNAME,
  rt.IFLA_LINK,
  rt.IFLA_MASTER,
  rt.IFLA_LINKINFO,
  rt.IFLA_LINK_NETNSID,
]);
const INFO_ATTRIBUTES = new Set([rt.IFLA_INFO_KIND]);
/** Errors for a link that does not exist; EINVAL: the namespace with this id is gone. */
const NO_LINK = new Set(["ENODEV", "EINVAL"]);
const NOT_ASSIGNED = -1;

export class HostLinkSocket {
  readonly #socket: NetlinkSocket;

  /** Opens the socket in the thread's namespace. */
  constructor(memory: NetlinkMemory) {
    this.#socket = new NetlinkSocket(memory, rt.NETLINK_ROUTE);
  }

  close(): void {
    this.#socket.close();
  }

  /** Reads all links, in parts between which other work may run, also in another namespace. */
  *linksInParts(visit: (link: HostLink) => void): Generator<void> {
    yield* this.#socket.requestInParts(LINKS, (body) => visit(hostLinkOf(body)));
  }

  /** Waits in the pool for the lock that all changes of links take: make one such call after the other. */
  async link(index: number): Promise<HostLink | undefined> {
    const found = await this.#get(`interface ${index}`, (w) => w.raw(linkHeader(index)));
    return found && hostLinkOf(found);
  }

  /** A link in the namespace with this id. A process with NET_ADMIN there chooses the link's name and its MAC. */
  async linkIn(namespace: number, index: number): Promise<HostLink | undefined> {
    const found = await this.#get(`interface ${index} elsewhere`, (w) => {
      w.raw(linkHeader(index));
      w.nativeU32(rt.IFLA_TARGET_NETNSID, namespace);
    });
    return found && hostLinkOf(found);
  }

  /** The id of a namespace in this one; undefined while nothing here is connected with it. Takes no lock. */
  numberOf(namespaceFd: number): number | undefined {
    let number = NOT_ASSIGNED;
    const write = (w: NetlinkWriter): void => {
      w.raw(Buffer.alloc(rt.NAMESPACE_HEADER_BYTES));
      w.nativeU32(rt.NETNSA_FD, namespaceFd);
    };
    const call = "RTM_GETNSID";
    this.#socket.request({ type: rt.CALLS[call], flags: NLM_F_ACK, call, about: "namespace", write }, (body) => {
      number = attributesIn(body, rt.NAMESPACE_HEADER_BYTES).get(rt.NETNSA_NSID)?.readInt32LE(0) ?? NOT_ASSIGNED;
    });
    return number === NOT_ASSIGNED ? undefined : number;
  }

  async #get(about: string, write: NetlinkRequest["write"]): Promise<Buffer | undefined> {
    let found: Buffer | undefined;
    const call = "RTM_GETLINK";
    const request = { type: rt.CALLS[call], flags: NLM_F_ACK, call, about, absent: NO_LINK, write };
    await this.#socket.requestInPool(request, (body) => {
      // Copied, because the next reply is received into the same memory.
      found = Buffer.from(body);
    });
    return found;
  }
}

/** Opens a watch in the thread's namespace. `onUnreadable` is called if changes cannot be reported one by one. */
export function watchLinks(onChange: (change: LinkChange) => void, onUnreadable: () => void): NetlinkWatch {
  return new NetlinkWatch(rt.NETLINK_ROUTE, rt.LINK_GROUP, {
    onMessages: (messages) => {
      for (const message of messages) {
        const change = changeOf(message);
        if (change !== undefined) onChange(change);
      }
    },
    onUnreadable,
  });
}

function changeOf({ type, body }: NetlinkMessage): LinkChange | undefined {
  if (body.length < rt.LINK_HEADER_BYTES || body.readUInt8(0) !== AF_UNSPEC) return undefined;
  if (type === rt.CALLS.RTM_DELLINK) return { kind: "gone", index: body.readInt32LE(rt.LINK_INDEX_OFFSET) };
  return type === rt.CALLS.RTM_NEWLINK ? { kind: "link", link: hostLinkOf(body) } : undefined;
}

function hostLinkOf(body: Buffer): HostLink {
  const attributes = attributesIn(body, rt.LINK_HEADER_BYTES, LINK_ATTRIBUTES);
  return {
    index: body.readInt32LE(rt.LINK_INDEX_OFFSET),
    name: textOf(attributes.get(rt.IFLA_IFNAME)),
    mac: macOf(attributes.get(rt.IFLA_ADDRESS)),
    master: attributes.get(rt.IFLA_MASTER)?.readUInt32LE(0),
    peer: peerIn(attributes),
  };
}

/** Copied, because the next reply is received into the same memory. */
function macOf(value: Buffer | undefined): Uint8Array | undefined {
  return value === undefined ? undefined : Uint8Array.from(value);
}

function peerIn(attributes: ReadonlyMap<number, Buffer>): HostLink["peer"] {
  const index = attributes.get(rt.IFLA_LINK)?.readInt32LE(0);
  const namespace = attributes.get(rt.IFLA_LINK_NETNSID)?.readInt32LE(0);
  const info = attributes.get(rt.IFLA_LINKINFO);
  if (index === undefined || namespace === undefined || namespace < 0 || info === undefined) return undefined;
  // A macvlan's link is the device below it, for example.
  const kind = textOf(attributesIn(info, 0, INFO_ATTRIBUTES).get(rt.IFLA_INFO_KIND));
  return kind === "veth" ? { index, namespace } : undefined;
}
