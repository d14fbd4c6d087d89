/**
 * LinkRules: what a container may send through one of its links, judged where the frame arrives on the machine, before any
 * bridge: only under its own addresses. Root in the container decides every byte of a frame, and no rule in its own
 * namespace sees a raw one.
 */
import type { NftCommand } from "../../kernel/nfnetlink.ts";
import {
  loadHasHeader,
  loadPayload,
  compare,
  expression,
  lookUp,
  verdict,
  ofProtocol,
} from "../../kernel/nft-expressions.ts";
import * as nft from "../../kernel/nft-constants.ts";
import type { Rule } from "../../kernel/nft-table.ts";
import { ADDRESS_LENGTHS, NEIGHBOUR_SET, linkChain, TABLES } from "./layout.ts";
import { ETHER_TYPES, PROTOCOLS, fromMac, lengthOf, loadSource, ofEtherType, toMac } from "./matches.ts";

/** Before everything that others put at the same place. */
const PRIORITY = -500;
/** Of an ARP packet: the addresses of its sender. */
const ARP_MAC_AT = 8;
const ARP_ADDRESS_AT = 14;
const NO_ADDRESS = { 4: new Uint8Array(4), 16: new Uint8Array(16) } as const;
/** Router and neighbour solicitation, advertisement of itself; reports of multicast groups. */
export const NEIGHBOUR_MESSAGES = [131, 132, 133, 135, 136, 143] as const;

/**
 * Loose and strict source routes, and the IPv6 routing header: a router that obeys them takes the packet from the address that it
 * is judged by to another one.
 */
const ROUTED_BY_SENDER = [
  { type: ETHER_TYPES[4], version: 4, header: 131 },
  { type: ETHER_TYPES[4], version: 4, header: 137 },
  { type: ETHER_TYPES[16], version: 6, header: 43 },
] as const;

/** A container's link: the end on the machine. */
export interface PolicedLink {
  readonly index: number;
  readonly name: string;
  readonly mac: Uint8Array;
  /** Its own, and the link-local ones. */
  readonly addresses: readonly Uint8Array[];
  readonly reachesPeers: boolean;
  /** The MAC of the bridge, by which the machine is told from peers. */
  readonly bridgeMac?: Uint8Array;
}

export function linkCommands(link: PolicedLink): NftCommand[] {
  const chain = linkChain(link.index);
  const hook = { number: nft.NF_NETDEV_INGRESS, priority: PRIORITY, device: link.name };
  return [TABLES.netdev.chain(chain, hook), ...TABLES.netdev.replaceRules(chain, linkRules(link))];
}

function linkRules({ mac, addresses, reachesPeers, bridgeMac }: PolicedLink): Rule[] {
  const own = addresses.filter((address) => !isLinkLocal(address));
  return [
    (w) => {
      fromMac(w, mac, nft.NFT_CMP_NEQ);
      drop(w);
    },
    ...ROUTED_BY_SENDER.map(({ type, version, header }): Rule => (w) => {
      ofEtherType(w, type);
      loadHasHeader(w, version, header);
      compare(w, Buffer.of(1));
      drop(w);
    }),
    ...[NO_ADDRESS[4], ...own.filter(({ length }) => length === 4)].map((address): Rule => (w) => {
      ofEtherType(w, ETHER_TYPES.arp);
      loadPayload(w, { base: nft.NETWORK_HEADER, offset: ARP_MAC_AT, length: mac.length });
      compare(w, mac);
      loadPayload(w, { base: nft.NETWORK_HEADER, offset: ARP_ADDRESS_AT, length: 4 });
      compare(w, address);
      verdict(w, nft.NF_ACCEPT);
    }),
    ...[NO_ADDRESS[16], ...addresses.filter(({ length }) => length === 16)].map((address): Rule => (w) => {
      from(w, address);
      ofProtocol(w, PROTOCOLS.icmpv6);
      loadPayload(w, { base: nft.TRANSPORT_HEADER, offset: 0, length: 1 });
      lookUp(w, NEIGHBOUR_SET);
      verdict(w, nft.NF_ACCEPT);
    }),
    // Everything else that is not for the machine is for a peer, also if it only is to pass it on.
    ...(reachesPeers ? [] : [toPeers(bridgeMac)]),
    ...own.map((address): Rule => (w) => {
      from(w, address);
      verdict(w, nft.NF_ACCEPT);
    }),
    drop,
  ];
}

function toPeers(bridgeMac: Uint8Array | undefined): Rule {
  return (w) => {
    if (bridgeMac !== undefined) toMac(w, bridgeMac, nft.NFT_CMP_NEQ);
    drop(w);
  };
}

function from(w: Parameters<Rule>[0], address: Uint8Array): void {
  const length = lengthOf(address);
  ofEtherType(w, ETHER_TYPES[length]);
  loadSource(w, length);
  compare(w, address);
}

function drop(w: Parameters<Rule>[0]): void {
  expression(w, "counter", () => undefined);
  verdict(w, nft.NF_DROP);
}

/** Of these a container may send only what a link needs: no name leads to one, and they identify nobody elsewhere. */
export function isLinkLocal(address: Uint8Array): boolean {
  return address.length === ADDRESS_LENGTHS[1] && address[0] === 0xfe && ((address[1] ?? 0) & 0xc0) === 0x80;
}
