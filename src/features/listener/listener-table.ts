/**
 * ListenerTable: who may ask the listener, as rules of the host. Queries come in by the bridges of Docker's networks, and a socket sees
 * only the bridge. So rules of the bridge family, which see the port, look up each packet's link and source address among those
 * of containers, and mark it. Rules of the IP families let only marked packets to the sockets. A container cannot mark a packet:
 * marks end where a packet leaves its namespace. Whatever the first rules do not see, such as a frame in two VLAN tags, has no mark.
 *
 * The sockets have ports that the kernel chose, so that another server of the host may have port 53, and that dns11 needs no
 * right to it. The rules write the ports. Connection tracking ignores the packets: they fill no table of the host, and nobody's translation
 * takes them elsewhere, such as that of a container that publishes port 53.
 *
 * Each asker has a limit of packets, so that none fills the buffer of the socket that all of them share.
 */
import type { ListenerRefusal } from "../../api/listener.ts";
import { addressBytes } from "../../base/model/address.ts";
import { LISTENER_ADDRESSES, LISTENER_MARKS } from "../../base/model/listener-addresses.ts";
import type { NetNamespace } from "../../kernel/net-namespace.ts";
import { NFPROTO_BRIDGE, NFPROTO_IPV4, NFPROTO_IPV6, type NftCommand } from "../../kernel/nfnetlink.ts";
import * as nft from "../../kernel/nft-constants.ts";
import {
  type Rule,
  accept,
  compare,
  goTo,
  limit,
  loadMeta,
  loadPayload,
  lookUp,
  nativeU32,
  notrack,
  setMeta,
} from "../../kernel/nft-expressions.ts";
import { NftTable } from "../../kernel/nft-table.ts";
import { DropCounters, dropChains } from "../../container/rules/drop-counters.ts";
import { ADDRESSES } from "../../container/rules/nft-commands.ts";
import { OwnedTables } from "../../container/rules/owned-tables.ts";
import { IP_FAMILIES, type IpFamily, type ListenAddress, type Protocol } from "../../container/rules/plan.ts";
import {
  CHECKSUM_AT,
  DNS_PORT,
  PROTOCOLS,
  matchAddress,
  matchNoChecksum,
  matchPort,
  portOf,
  writePort,
} from "../../container/rules/rewritten-port.ts";
import { LISTENER_LIMITS } from "./limits.ts";

/** A container as the listener knows it: a link on the host that its packets come in by, and an address that it has there. */
export interface Asker {
  readonly containerId: string;
  /** The index of the link. */
  readonly link: number;
  readonly address: string;
}

export interface Askers {
  /** By link and address; no other packets reach the listener. */
  readonly byKey: ReadonlyMap<string, Asker>;
  /** All links of known containers, also without an address: nothing else by these is let through. */
  readonly links: ReadonlySet<number>;
  /** The containers by their addresses. */
  readonly byAddress: ReadonlyMap<string, string>;
  /** Addresses that several containers have. They get nothing: a reply could not be for one of them. */
  readonly ambiguous: readonly string[];
}

export const NO_ASKERS: Askers = { byKey: new Map(), links: new Set(), byAddress: new Map(), ambiguous: [] };

export function askersOf(all: Iterable<Asker>, links: Iterable<number>): Askers {
  const byKey = new Map<string, Asker>();
  const byAddress = new Map<string, string>();
  const ambiguous = new Set<string>();
  for (const asker of all) {
    const { containerId, address } = asker;
    if ((byAddress.get(address) ?? containerId) !== containerId) ambiguous.add(address);
    byAddress.set(address, containerId);
    byKey.set(`${asker.link} ${address}`, asker);
  }
  for (const address of ambiguous) byAddress.delete(address);
  for (const [key, { address }] of byKey) if (ambiguous.has(address)) byKey.delete(key);
  return { byKey, links: new Set(links), byAddress, ambiguous: [...ambiguous] };
}

/** The containers that keep their address when `now` follows `before`. */
export function unchangedAddresses(before: Askers, now: Askers): Map<string, string> {
  return new Map([...before.byAddress].filter(([address, id]) => now.byAddress.get(address) === id));
}

const LISTENER_TABLE = "dns11-listener";
/** The reasons that its rules have to drop a packet. */
const DROPS = ["asker", "unknown", "host"] as const satisfies readonly ListenerRefusal[];
type ListenerDrop = (typeof DROPS)[number];

const { known: ASKER_MARK, new: NEW_MARK } = LISTENER_MARKS;
const TABLES = {
  bridge: new NftTable(NFPROTO_BRIDGE, LISTENER_TABLE),
  ip: new NftTable(NFPROTO_IPV4, LISTENER_TABLE),
  ip6: new NftTable(NFPROTO_IPV6, LISTENER_TABLE),
} as const;
type Family = keyof typeof TABLES;
/** Before everything else in the bridge, and before connection tracking. */
const PRIORITY_FIRST = -300;
const SETS = { ip: "askers4", ip6: "askers6" } as const;
/** The links of known containers. */
const LINKS = "links";
const LINK_TYPE = 20;
const ETHERTYPE = { ip: Buffer.of(0x08, 0x00), ip6: Buffer.of(0x86, 0xdd) } as const;
const LISTENER = { ip: LISTENER_ADDRESSES.ipv4, ip6: LISTENER_ADDRESSES.ipv6 } as const;
/** The types of nft(8), for its lists: iface_index, ipv4_addr, ipv6_addr; a concatenation shifts by six bits. */
const KEY_TYPE = { ip: (20 << 6) | 7, ip6: (20 << 6) | 8 } as const;
const LINK_BYTES = 4;
const BRIDGE_DROPS = ["asker", "unknown"] as const satisfies readonly ListenerDrop[];
const GUARD_DROP: ListenerDrop = "host";

type Hook = "prerouting" | "input" | "output";

export class ListenerTable {
  readonly #netns: NetNamespace;
  readonly #tables: OwnedTables;
  readonly #drops = new DropCounters<ListenerDrop>(LISTENER_TABLE, DROPS);

  /** Opens a socket in the host's namespace, or takes over one together with its tables. */
  constructor(netns: NetNamespace, inherited?: number) {
    this.#netns = netns;
    this.#tables = new OwnedTables(netns, TABLES, inherited);
  }

  /** What another process needs to remove the tables. */
  get removal(): OwnedTables["removal"] {
    return this.#tables.removal;
  }

  /** Dropped packets since it was made. */
  get drops(): Readonly<Record<ListenerDrop, number>> {
    return this.#drops.read(this.#netns);
  }

  /** In place of what is installed. */
  async install(
    listening: readonly ListenAddress[],
    waiting: readonly Pick<ListenAddress, "address" | "udpPort">[],
    { byKey, links }: Askers,
  ): Promise<void> {
    await this.#tables.install([
      ...dropChains(TABLES.bridge, BRIDGE_DROPS),
      ...IP_FAMILIES.flatMap((family) => dropChains(TABLES[family], [GUARD_DROP])),
      TABLES.bridge.set({ name: LINKS, shownAs: LINK_TYPE, keyLength: LINK_BYTES }),
      ...IP_FAMILIES.flatMap((family) => {
        const at = listening.find(({ address }) => address === LISTENER[family]);
        const waitsAt = waiting.find(({ address }) => address === LISTENER[family])?.udpPort;
        return [newSet(family), ...bridgeRules(family), ...ipRules(family, at, waitsAt)];
      }),
      ...elements(byKey.values(), "add"),
      ...elementCommands(LINKS, [...links].map(nativeU32), "add"),
    ]);
  }

  async change(before: Askers, now: Askers): Promise<void> {
    const without = (one: Askers, other: Askers): Asker[] =>
      [...one.byKey].filter(([key]) => !other.byKey.has(key)).map(([, asker]) => asker);
    const linksWithout = (one: Askers, other: Askers): Uint8Array[] =>
      [...one.links].filter((link) => !other.links.has(link)).map(nativeU32);
    const commands = [
      ...elements(without(before, now), "remove"),
      ...elements(without(now, before), "add"),
      ...elementCommands(LINKS, linksWithout(before, now), "remove"),
      ...elementCommands(LINKS, linksWithout(now, before), "add"),
    ];
    if (commands.length > 0) await this.#tables.change(commands);
  }

  async remove(): Promise<void> {
    await this.#tables.remove();
  }

  close(): void {
    this.#tables.close();
  }
}

/** Each element gets a limit of its own. */
function newSet(family: IpFamily): NftCommand {
  return TABLES.bridge.set({
    name: SETS[family],
    shownAs: KEY_TYPE[family],
    keyLength: LINK_BYTES + ADDRESSES[family].length,
    each: limit(LISTENER_LIMITS.packetsPerSecond, LISTENER_LIMITS.packetsBurst),
  });
}

function elements(askers: Iterable<Asker>, what: "add" | "remove"): NftCommand[] {
  const all = [...askers];
  return IP_FAMILIES.flatMap((family): NftCommand[] => {
    const keys = all.flatMap(({ link, address }) => {
      const bytes = addressBytes(address);
      return bytes?.length === ADDRESSES[family].length ? [Buffer.concat([nativeU32(link), bytes])] : [];
    });
    return elementCommands(SETS[family], keys, what);
  });
}

function elementCommands(set: string, keys: readonly Uint8Array[], what: "add" | "remove"): NftCommand[] {
  return TABLES.bridge.elements(
    what,
    set,
    keys.map((key) => ({ key })),
  );
}

/**
 * Marks a packet of an asker to the listener. Every other one to it is dropped, unless nobody is known to have its link: a container may
 * just have started.
 */
function bridgeRules(family: IpFamily): NftCommand[] {
  const chain = `prerouting-${family}`;
  const { source, length } = ADDRESSES[family];
  const toListener = [loadMeta(nft.NFT_META_PROTOCOL), compare(ETHERTYPE[family]), matchDestination(family)];
  const asker = [
    loadMeta(nft.NFT_META_IIF, nft.NFT_REG32_00),
    loadPayload({ base: nft.NETWORK_HEADER, offset: source, length }, nft.NFT_REG32_00 + 1),
    lookUp(SETS[family]),
  ];
  const isNew = limit(LISTENER_LIMITS.newPerSecond, LISTENER_LIMITS.newBurst);
  return [
    newChain("bridge", chain, "prerouting"),
    ...TABLES.bridge.rules(chain, [
      [toListener, asker, mark(ASKER_MARK), accept],
      [toListener, loadMeta(nft.NFT_META_IIF), lookUp(LINKS), goTo(BRIDGE_DROPS[0])],
      [toListener, isNew, mark(NEW_MARK), accept],
      [toListener, goTo(BRIDGE_DROPS[1])],
    ]),
  ];
}

/** The guard is behind all translation. Without sockets at the address, it lets nothing through. */
function ipRules(family: IpFamily, listening: ListenAddress | undefined, waitsAt: number | undefined): NftCommand[] {
  const ports = listening === undefined ? [] : PROTOCOLS.map((protocol) => portOf(listening, protocol));
  const accepted = (protocol: Protocol, port: number, marked: number): Rule => [
    matchQuery(family, protocol, port, marked),
    accept,
  ];
  const table = TABLES[family];
  return [
    newChain(family, "query", "prerouting"),
    ...table.rules("query", [
      ...ports.flatMap(({ protocol, port }) => [
        ...(protocol === "udp" ? [queryWithoutChecksum(family, port)] : []),
        queryRule(family, protocol, port, ASKER_MARK),
      ]),
      ...(waitsAt === undefined ? [] : [queryRule(family, "udp", waitsAt, NEW_MARK)]),
    ]),
    newChain(family, "reply", "output"),
    ...table.rules(
      "reply",
      ports.map(({ protocol, port }) => replyRule(family, protocol, port)),
    ),
    newChain(family, "guard", "input"),
    ...table.rules("guard", [
      ...ports.map(({ protocol, port }) => accepted(protocol, port, ASKER_MARK)),
      ...(waitsAt === undefined ? [] : [accepted("udp", waitsAt, NEW_MARK)]),
      [matchDestination(family), goTo(GUARD_DROP)],
    ]),
  ];
}

function queryRule(family: IpFamily, protocol: Protocol, port: number, marked: number): Rule {
  const query = matchQuery(family, protocol, DNS_PORT, marked);
  return [query, notrack, writePort("destination", port, CHECKSUM_AT[protocol])];
}

function queryWithoutChecksum(family: IpFamily, port: number): Rule {
  const query = matchQuery(family, "udp", DNS_PORT, ASKER_MARK);
  return [query, matchNoChecksum(), notrack, writePort("destination", port, undefined)];
}

function replyRule(family: IpFamily, protocol: Protocol, port: number): Rule {
  const reply = [matchAddress(family, "source", listenerBytes(family)), matchPort(protocol, "source", port)];
  return [reply, notrack, writePort("source", DNS_PORT, CHECKSUM_AT[protocol])];
}

function newChain(family: Family, name: string, hook: Hook): NftCommand {
  return TABLES[family].chain(name, { number: nft.NF_HOOKS.indexOf(hook), priority: PRIORITY_FIRST });
}

function mark(value: number): Rule {
  return setMeta(nft.NFT_META_MARK, nativeU32(value));
}

/** A packet with this mark to a port of the listener. */
function matchQuery(family: IpFamily, protocol: Protocol, port: number, marked: number): Rule {
  const isMarked = [loadMeta(nft.NFT_META_MARK), compare(nativeU32(marked))];
  return [matchDestination(family), isMarked, matchPort(protocol, "destination", port)];
}

function matchDestination(family: IpFamily): Rule {
  return matchAddress(family, "destination", listenerBytes(family));
}

function listenerBytes(family: IpFamily): Uint8Array {
  return addressBytes(LISTENER[family]) as Uint8Array;
}
