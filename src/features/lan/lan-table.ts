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
import type { NetlinkWriter } from "../../kernel/netlink-message.ts";
import { NFPROTO_IPV4, NFPROTO_IPV6, type NftCommand } from "../../kernel/nfnetlink.ts";
import * as nft from "../../kernel/nft-constants.ts";
import {
  compare,
  loadMeta,
  loadPayload,
  maskBytes,
  nativeU32,
  updateSet,
  verdict,
} from "../../kernel/nft-expressions.ts";
import { NftTable, type Rule } from "../../kernel/nft-table.ts";
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
  writeLimit,
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
  const own = addresses.map((each, index) => addressChains(family, each, index));
  const of = ({ listening }: LanAddress, write: (w: NetlinkWriter) => void): Rule => {
    const bytes = addressBytes(listening.address) as Uint8Array;
    return (w) => {
      matchAddress(w, family, "destination", bytes);
      write(w);
    };
  };
  const rules = addresses.flatMap((address, index) =>
    PROTOCOLS.map((protocol) => portOf(address.listening, protocol)).flatMap(({ protocol, port }): Rule[] => [
      of(address, (w) => {
        matchPort(w, protocol, "destination", DNS_PORT);
        verdict(w, nft.NFT_GOTO, `address-${index}`);
      }),
      of(address, (w) => {
        matchPort(w, protocol, "destination", port);
        verdict(w, nft.NFT_GOTO, "port");
      }),
    ]),
  );
  return [
    ...own.flat(),
    table.chain("query", { number: nft.NF_HOOKS.indexOf("input"), priority: AFTER_FILTERS }),
    ...table.rules("query", rules),
    table.chain("reply", { number: nft.NF_HOOKS.indexOf("output"), priority: BEFORE_TRACKING }),
    ...table.rules(
      "reply",
      addresses.flatMap(({ listening }) =>
        PROTOCOLS.map((protocol) => portOf(listening, protocol)).map(({ protocol, port }): Rule => {
          const bytes = addressBytes(listening.address) as Uint8Array;
          return (w) => {
            matchAddress(w, family, "source", bytes);
            matchPort(w, protocol, "source", port);
            writePort(w, "source", DNS_PORT, CHECKSUM_AT[protocol]);
          };
        }),
      ),
    ),
  ];
}

/** A query passes three chains: by its link and source, by how many there are of its source, and to the sockets. */
function addressChains(family: IpFamily, { listening, links, allow }: LanAddress, index: number): NftCommand[] {
  const table = TABLES[family];
  const [checked, limited, taken] = [`address-${index}`, `limit-${index}`, `take-${index}`];
  const { source, length } = ADDRESSES[family];
  const drop = (kind: LanDrop): Rule => {
    return (w) => verdict(w, nft.NFT_GOTO, kind);
  };
  const blocks = allow.filter(({ bytes }) => bytes.length === length);
  return [
    table.chain(taken),
    ...table.rules(taken, [
      (w) => {
        matchPort(w, "udp", "destination", DNS_PORT);
        matchNoChecksum(w);
        writePort(w, "destination", listening.udpPort, undefined);
        verdict(w, nft.NF_ACCEPT);
      },
      ...PROTOCOLS.map((protocol) => portOf(listening, protocol)).map(({ protocol, port }): Rule => (w) => {
        matchPort(w, protocol, "destination", DNS_PORT);
        writePort(w, "destination", port, CHECKSUM_AT[protocol]);
        verdict(w, nft.NF_ACCEPT);
      }),
    ]),
    table.chain(limited),
    ...table.rules(limited, [
      (w) => {
        loadPayload(w, { base: nft.NETWORK_HEADER, offset: source, length: SOURCE_BYTES[family] });
        updateSet(w, SOURCES, LAN_LIMITS.sourceMs, () => {
          w.nested(nft.NFTA_DYNSET_EXPR, () => {
            w.text(nft.NFTA_EXPR_NAME, "limit");
            w.nested(nft.NFTA_EXPR_DATA, () => writeLimit(w, LAN_LIMITS.packetsPerSecond, LAN_LIMITS.packetsBurst));
          });
        });
        verdict(w, nft.NFT_GOTO, taken);
      },
      drop("rate"),
    ]),
    table.chain(checked),
    ...table.rules(checked, [
      (w) => {
        loadMeta(w, nft.NFT_META_IIF);
        for (const link of new Set([...links, LOOPBACK_INDEX])) compare(w, nativeU32(link), nft.NFT_CMP_NEQ);
        drop("link")(w);
      },
      ...blocks.map(({ bytes, prefix }): Rule => (w) => {
        loadPayload(w, { base: nft.NETWORK_HEADER, offset: source, length });
        maskBytes(w, maskOf(length, prefix));
        compare(w, bytes);
        verdict(w, nft.NFT_GOTO, limited);
      }),
      drop("source"),
    ]),
  ];
}

function maskOf(length: number, prefix: number): Uint8Array {
  return Uint8Array.from({ length }, (_, index) => {
    const left = Math.max(0, Math.min(8, prefix - index * 8));
    return (0xff00 >> left) & 0xff;
  });
}
