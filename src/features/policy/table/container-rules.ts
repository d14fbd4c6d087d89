/**
 * ContainerRules: the chains and sets by which the kernel judges what one container sends. Denied blocks come first, because
 * a denial holds whatever a name was answered with.
 */
import { createHash } from "node:crypto";

import { type AddressBlock, readAddressBlock } from "../../../base/model/address.ts";
import type { NftCommand } from "../../../kernel/nfnetlink.ts";
import * as nft from "../../../kernel/nft-constants.ts";
import {
  type Rule,
  accept,
  compare,
  counter,
  drop,
  expression,
  goTo,
  isTranslated,
  isUntranslated,
  loadHasHeader,
  loadPayload,
  lookUp,
  ofProtocol,
} from "../../../kernel/nft-expressions.ts";
import type { SetPlan } from "../../../kernel/nft-table.ts";
import {
  type AddressLength,
  addressSet,
  addressesPlan,
  judgingChain,
  portSet,
  portsPlan,
  refusingChain,
  seenSet,
  TABLES,
  ADDRESS_LENGTHS,
  NEIGHBOUR_SET,
  linkChain,
} from "./layout.ts";
import {
  LABELS,
  PROTOCOLS,
  RUN_BYTES,
  arrivesHere,
  hasLabel,
  inState,
  isDestinedTo,
  isOfRun,
  lacksLabel,
  passesThrough,
  recordIn,
  sentTo,
  sentToAddressIn,
  sentToPortIn,
  setLabel,
  ETHER_TYPES,
  fromMac,
  lengthOf,
  loadSource,
  ofEtherType,
  toMac,
} from "./matches.ts";
import { POLICY_LIMITS } from "../model/limits.ts";

/** What a policy says about a block of addresses. */
export interface FixedRule {
  readonly isAllowed: boolean;
  readonly block: AddressBlock;
  readonly protocol?: "tcp" | "udp";
  readonly port?: number;
}

/** A container, and what the kernel should do with what it sends. */
export interface PolicedContainer {
  readonly id: string;
  /** Another one for each start: what was let through for one is not for the next. */
  readonly startedAt: string;
  /** Its own, on all links, without link-local ones. */
  readonly addresses: readonly Uint8Array[];
  /** Otherwise it has more, which are not known yet. */
  readonly isComplete: boolean;
  readonly rules: readonly FixedRule[];
  /** The networks that it is on. */
  readonly subnets: readonly AddressBlock[];
  /** Whether it reaches other containers on these. */
  readonly reachesPeers: boolean;
  /** Whether it reaches the machine itself. */
  readonly reachesHost: boolean;
  /** Otherwise what would be refused is recorded, and passes. */
  readonly isEnforced: boolean;
}

/** No router passes on what is sent to these. */
const ON_LINK = ["224.0.0.0/24", "255.255.255.255", "ff02::/16", "fe80::/10"].map(
  (text) => readAddressBlock(text) as AddressBlock,
);

/**
 * What was sent to an address of the machine: what arrives there untranslated, and what a published port has translated. An allowed
 * name may be answered with such an address, and the container's own gateway is one, in the middle of its network.
 */
const TO_MACHINE: readonly Rule[] = [
  [arrivesHere, isUntranslated],
  [isTranslated, lacksLabel(LABELS.elsewhere)],
];

/** The IP versions that it has addresses of. Those it has none of do not pass its links. */
export function lengthsOf({ addresses }: Pick<PolicedContainer, "addresses">): AddressLength[] {
  return ([4, 16] as const).filter((length) => addresses.some((address) => address.length === length));
}

function setPlans(id: string, length: AddressLength): SetPlan[] {
  return [
    addressesPlan(addressSet(id, length), length, nft.NFT_SET_TIMEOUT),
    portsPlan(portSet(id, length), length, nft.NFT_SET_TIMEOUT),
    portsPlan(seenSet(id, length), length, nft.NFT_SET_TIMEOUT | nft.NFT_SET_EVAL, POLICY_LIMITS.refusedAddresses),
  ];
}

/** Creates the container's chains and sets, or replaces the rules and keeps what the sets hold. */
export function containerCommands(container: PolicedContainer): NftCommand[] {
  const { id } = container;
  const [judging, refusing] = [judgingChain(id), refusingChain(id)];
  const lengths = lengthsOf(container);
  return [
    TABLES.inet.chain(judging),
    TABLES.inet.chain(refusing),
    ...lengths.flatMap((length) => setPlans(id, length)).map((plan) => TABLES.inet.set(plan)),
    ...TABLES.inet.replaceRules(judging, judgingRules(container, lengths)),
    ...TABLES.inet.replaceRules(refusing, refusingRules(container, lengths)),
  ];
}

/** Removes them. Nothing may refer to the chains any more. */
export function removalCommands(id: string, lengths: readonly AddressLength[]): NftCommand[] {
  const [judging, refusing] = [judgingChain(id), refusingChain(id)];
  return [
    ...TABLES.inet.replaceRules(judging, []),
    ...TABLES.inet.replaceRules(refusing, []),
    TABLES.inet.deleteChain(judging),
    TABLES.inet.deleteChain(refusing),
    ...lengths.flatMap((length) => setPlans(id, length)).map(({ name }) => TABLES.inet.deleteSet(name)),
  ];
}

function judgingRules(container: PolicedContainer, lengths: readonly AddressLength[]): Rule[] {
  const { id, rules, reachesPeers, reachesHost, subnets, isEnforced } = container;
  const run = runOf(container);
  const refuse = goTo(refusingChain(id));
  const allow: Rule = [setLabel(LABELS.allowed, run), accept];
  const fixed = (isAllowed: boolean): Rule[] =>
    rules
      .filter((rule) => rule.isAllowed === isAllowed)
      .map(({ block, protocol, port }) => [
        sentTo(block, protocol && PROTOCOLS[protocol], port),
        isAllowed ? allow : refuse,
      ]);
  return [
    // It was judged when it began. One that is older than the policy is judged now.
    [
      inState(nft.CT_STATE_ESTABLISHED),
      hasLabel(isEnforced ? LABELS.allowed : LABELS.allowed | LABELS.recorded),
      isOfRun(run),
      accept,
    ],
    // A late packet of an open connection: a reset would end it.
    [inState(nft.CT_STATE_INVALID), drop],
    ...fixed(false),
    ...fixed(true),
    ...(reachesHost ? [] : TO_MACHINE.map((isForIt): Rule => [isForIt, refuse])),
    ...lengths.flatMap((length): Rule[] => [
      [sentToPortIn(portSet(id, length), length), allow],
      [sentToAddressIn(addressSet(id, length), length), allow],
    ]),
    // Where the machine filters bridges, frames between containers come here, too. Its own address there is no peer.
    ...(reachesPeers ? subnets : []).map((block): Rule => [passesThrough, sentTo(block), allow]),
    ...(reachesPeers ? ON_LINK : []).map((block): Rule => [passesThrough, isDestinedTo(block), allow]),
    [refuse],
  ];
}

function runOf({ id, startedAt }: PolicedContainer): Uint8Array {
  return createHash("sha256").update(`${id} ${startedAt}`).digest().subarray(0, RUN_BYTES);
}

function refusingRules(container: PolicedContainer, lengths: readonly AddressLength[]): Rule[] {
  const { id, isEnforced } = container;
  return [
    // A full set ends this rule, not the refusal.
    ...lengths.map((length) => recordIn(seenSet(id, length), length, POLICY_LIMITS.refusedMs)),
    ...(isEnforced ? REJECTIONS : [[setLabel(LABELS.recorded, runOf(container)), accept]]),
  ];
}

/** Says so at once, so that a program fails instead of waiting. */
export const REJECTIONS: readonly Rule[] = [
  [
    ofProtocol(PROTOCOLS.tcp),
    counter,
    expression("reject", (w) => w.u32(nft.NFTA_REJECT_TYPE, nft.NFT_REJECT_TCP_RST)),
  ],
  [
    counter,
    expression("reject", (w) => {
      w.u32(nft.NFTA_REJECT_TYPE, nft.NFT_REJECT_ICMPX_UNREACH);
      w.attribute(nft.NFTA_REJECT_ICMP_CODE, Buffer.of(nft.NFT_REJECT_ICMPX_ADMIN_PROHIBITED));
    }),
  ],
];

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

/**
 * What a container may send through one of its links, judged where the frame arrives on the machine, before any
 * bridge: only under its own addresses. Root in the container decides every byte of a frame, and no rule in its own
 * namespace sees a raw one.
 */
function linkRules({ mac, addresses, reachesPeers, bridgeMac }: PolicedLink): Rule[] {
  const own = addresses.filter((address) => !isLinkLocal(address));
  return [
    [fromMac(mac, nft.NFT_CMP_NEQ), DROP],
    ...ROUTED_BY_SENDER.map(({ type, version, header }): Rule => [
      ofEtherType(type),
      loadHasHeader(version, header),
      compare(Buffer.of(1)),
      DROP,
    ]),
    ...[NO_ADDRESS[4], ...own.filter(({ length }) => length === 4)].map((address): Rule => [
      ofEtherType(ETHER_TYPES.arp),
      loadPayload({ base: nft.NETWORK_HEADER, offset: ARP_MAC_AT, length: mac.length }),
      compare(mac),
      loadPayload({ base: nft.NETWORK_HEADER, offset: ARP_ADDRESS_AT, length: 4 }),
      compare(address),
      accept,
    ]),
    ...[NO_ADDRESS[16], ...addresses.filter(({ length }) => length === 16)].map((address): Rule => [
      from(address),
      ofProtocol(PROTOCOLS.icmpv6),
      loadPayload({ base: nft.TRANSPORT_HEADER, offset: 0, length: 1 }),
      lookUp(NEIGHBOUR_SET),
      accept,
    ]),
    // Everything else that is not for the machine is for a peer, also if it only is to pass it on.
    ...(reachesPeers ? [] : [[bridgeMac === undefined ? [] : toMac(bridgeMac, nft.NFT_CMP_NEQ), DROP]]),
    ...own.map((address): Rule => [from(address), accept]),
    DROP,
  ];
}

const DROP: Rule = [counter, drop];

function from(address: Uint8Array): Rule {
  const length = lengthOf(address);
  return [ofEtherType(ETHER_TYPES[length]), loadSource(length), compare(address)];
}

/** Of these a container may send only what a link needs: no name leads to one, and they identify nobody elsewhere. */
export function isLinkLocal(address: Uint8Array): boolean {
  return address.length === ADDRESS_LENGTHS[1] && address[0] === 0xfe && ((address[1] ?? 0) & 0xc0) === 0x80;
}
