/**
 * LanTable: who may ask at addresses of the host, as rules of the host: queries that come by the link which has the address (or from the
 * host itself), from an address that is allowed, and no more of them than one source may send. All others are dropped before they
 * reach a socket.
 *
 * The sockets have ports that the kernel chose. Rules write the port behind the host's own filters and before its connection
 * tracking, so that both see port 53, as they would of any server.
 */
import { addressBytes, type AddressBlock } from "../../base/model/address.ts";
import type { NetNamespace } from "../../kernel/net-namespace.ts";
import { NFPROTO_IPV4, NFPROTO_IPV6, type NftCommand } from "../../kernel/nfnetlink.ts";
import * as nft from "../../kernel/nft-constants.ts";
import {
  type Rule,
  accept,
  compare,
  goTo,
  limit,
  loadMeta,
  loadPayload,
  maskPrefix,
  nativeU32,
  updateSet,
} from "../../kernel/nft-expressions.ts";
import { NftTable } from "../../kernel/nft-table.ts";
import { LOOPBACK_INDEX } from "../../kernel/rtnetlink-constants.ts";
import { DropCounters, dropChains } from "../../container/rules/drop-counters.ts";
import { ADDRESSES } from "../../container/rules/nft-commands.ts";
import { OwnedTables } from "../../container/rules/owned-tables.ts";
import { IP_FAMILIES, type IpFamily, type ListenAddress } from "../../container/rules/plan.ts";
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
import { LAN_LIMITS } from "./limits.ts";

const LAN_TABLE = "dns11-listen";

/** An address of the host at which dns11 listens. */
export interface LanAddress {
  readonly listening: ListenAddress;
  /** The indexes of the links that have the address. */
  readonly links: readonly number[];
  readonly allow: readonly AddressBlock[];
}

/**
 * Why packets were dropped: they came by another link than the address is on; from an address that is not allowed; too many from one
 * source; or to the sockets' own port, past the rules.
 */
const LAN_DROPS = ["link", "source", "rate", "port"] as const;
export type LanDrop = (typeof LAN_DROPS)[number];

const TABLES = {
  ip: new NftTable(NFPROTO_IPV4, LAN_TABLE),
  ip6: new NftTable(NFPROTO_IPV6, LAN_TABLE),
} as const;
/** Behind the host's filters and before connection tracking confirms the packet. */
const AFTER_FILTERS = 250;
/** Before connection tracking, which knows the conversation by port 53. */
const BEFORE_TRACKING = -300;
const SOURCES = "sources";
/** Of an IPv6 address the first half: a machine has all addresses with it. */
const SOURCE_BYTES = { ip: 4, ip6: 8 } as const;
/** The types of nft(8): ipv4_addr, integer. */
const SOURCE_TYPE = { ip: 7, ip6: 4 } as const;

export class LanTable {
  readonly #netns: NetNamespace;
  readonly #tables: OwnedTables;
  readonly #drops = new DropCounters<LanDrop>(LAN_TABLE, LAN_DROPS);

  /** Opens a socket in the host's namespace, or takes over one together with its tables. */
  constructor(netns: NetNamespace, inherited?: number) {
    this.#netns = netns;
    this.#tables = new OwnedTables(netns, TABLES, inherited);
  }

  /** What another process needs to remove the tables. */
  get removal(): OwnedTables["removal"] {
    return this.#tables.removal;
  }

  /** Dropped packets since the start. */
  get drops(): Readonly<Record<LanDrop, number>> {
    return this.#drops.read(this.#netns);
  }

  /** In place of what is installed. */
  async install(addresses: readonly LanAddress[]): Promise<void> {
    this.#drops.keep(this.#netns);
    await this.#tables.install(
      IP_FAMILIES.flatMap((family) => [
        TABLES[family].set({
          name: SOURCES,
          keyLength: SOURCE_BYTES[family],
          shownAs: SOURCE_TYPE[family],
          flags: nft.NFT_SET_TIMEOUT | nft.NFT_SET_EVAL,
          size: LAN_LIMITS.sources,
        }),
        ...dropChains(TABLES[family], LAN_DROPS),
        ...familyCommands(
          family,
          addresses.filter(({ listening }) => isOf(family, listening.address)),
        ),
      ]),
    );
  }

  close(): void {
    this.#tables.close();
  }
}

function isOf(family: IpFamily, address: string): boolean {
  return addressBytes(address)?.length === ADDRESSES[family].length;
}

function familyCommands(family: IpFamily, addresses: readonly LanAddress[]): NftCommand[] {
  const table = TABLES[family];
  const all = addresses.flatMap(({ listening }, index) =>
    PROTOCOLS.map((protocol) => ({
      ...portOf(listening, protocol),
      bytes: addressBytes(listening.address) as Uint8Array,
      index,
    })),
  );
  const queries = all.flatMap(({ bytes, index, protocol, port }): Rule[] => {
    const isToIt = matchAddress(family, "destination", bytes);
    return [
      [isToIt, matchPort(protocol, "destination", DNS_PORT), goTo(`address-${index}`)],
      [isToIt, matchPort(protocol, "destination", port), goTo("port")],
    ];
  });
  const replies = all.map(({ bytes, protocol, port }): Rule => [
    matchAddress(family, "source", bytes),
    matchPort(protocol, "source", port),
    writePort("source", DNS_PORT, CHECKSUM_AT[protocol]),
  ]);
  return [
    ...addresses.flatMap((each, index) => addressChains(family, each, index)),
    table.chain("query", { number: nft.NF_HOOKS.indexOf("input"), priority: AFTER_FILTERS }),
    ...table.rules("query", queries),
    table.chain("reply", { number: nft.NF_HOOKS.indexOf("output"), priority: BEFORE_TRACKING }),
    ...table.rules("reply", replies),
  ];
}

/** A query passes three chains: by its link and source, by how many there are of its source, and to the sockets. */
function addressChains(family: IpFamily, { listening, links, allow }: LanAddress, index: number): NftCommand[] {
  const table = TABLES[family];
  const [checked, limited, taken] = [`address-${index}`, `limit-${index}`, `take-${index}`];
  const { source, length } = ADDRESSES[family];
  const refuse = (kind: LanDrop): Rule => [goTo(kind)];
  const isOtherLink = [...new Set([...links, LOOPBACK_INDEX])].map((link) => compare(nativeU32(link), nft.NFT_CMP_NEQ));
  const blocks = allow.filter(({ bytes }) => bytes.length === length);
  return [
    table.chain(taken),
    ...table.rules(taken, [
      [
        matchPort("udp", "destination", DNS_PORT),
        matchNoChecksum(),
        writePort("destination", listening.udpPort, undefined),
        accept,
      ],
      ...PROTOCOLS.map((each) => portOf(listening, each)).map(({ protocol, port }): Rule => [
        matchPort(protocol, "destination", DNS_PORT),
        writePort("destination", port, CHECKSUM_AT[protocol]),
        accept,
      ]),
    ]),
    table.chain(limited),
    ...table.rules(limited, [
      [
        loadPayload({ base: nft.NETWORK_HEADER, offset: source, length: SOURCE_BYTES[family] }),
        updateSet(SOURCES, LAN_LIMITS.sourceMs, limit(LAN_LIMITS.packetsPerSecond, LAN_LIMITS.packetsBurst)),
        goTo(taken),
      ],
      refuse("rate"),
    ]),
    table.chain(checked),
    ...table.rules(checked, [
      [loadMeta(nft.NFT_META_IIF), isOtherLink, refuse("link")],
      ...blocks.map(({ bytes, prefix }): Rule => [
        loadPayload({ base: nft.NETWORK_HEADER, offset: source, length }),
        maskPrefix(length, prefix),
        compare(bytes),
        goTo(limited),
      ]),
      refuse("source"),
    ]),
  ];
}
