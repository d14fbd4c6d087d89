/**
 * ContainerRules: the chains and sets by which the kernel judges what one container sends. Denied blocks come first, because
 * a denial holds whatever a name was answered with.
 */
import { type AddressBlock, readAddressBlock } from "../../base/model/address-block.ts";
import { LIMITS } from "../../base/limits.ts";
import type { NftCommand } from "../../kernel/nfnetlink.ts";
import * as nft from "../../kernel/nft-constants.ts";
import { expression, verdict, ofProtocol } from "../../kernel/nft-expressions.ts";
import type { Rule, SetPlan } from "../../kernel/nft-table.ts";
import {
  ALLOWED_CHAIN,
  type AddressLength,
  RECORDED_CHAIN,
  addressSet,
  addressesPlan,
  judgingChain,
  portSet,
  portsPlan,
  refusingChain,
  seenSet,
  TABLES,
} from "./layout.ts";
import {
  LABELS,
  PROTOCOLS,
  arrivesHere,
  hasLabel,
  inState,
  isDestinedTo,
  isTranslated,
  isUntranslated,
  lacksLabel,
  passesThrough,
  recordIn,
  sentTo,
  sentToAddressIn,
  sentToPortIn,
} from "./matches.ts";

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
  (w) => {
    arrivesHere(w);
    isUntranslated(w);
  },
  (w) => {
    isTranslated(w);
    lacksLabel(w, LABELS.elsewhere);
  },
];

/** The IP versions that it has addresses of. Those it has none of do not pass its links. */
export function lengthsOf({ addresses }: Pick<PolicedContainer, "addresses">): AddressLength[] {
  return ([4, 16] as const).filter((length) => addresses.some((address) => address.length === length));
}

function setPlans(id: string, length: AddressLength): SetPlan[] {
  return [
    addressesPlan(addressSet(id, length), length, nft.NFT_SET_TIMEOUT),
    portsPlan(portSet(id, length), length, nft.NFT_SET_TIMEOUT),
    portsPlan(seenSet(id, length), length, nft.NFT_SET_TIMEOUT | nft.NFT_SET_EVAL, LIMITS.policyRefusedAddresses),
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
  const refuse = (w: Parameters<Rule>[0]): void => verdict(w, nft.NFT_GOTO, refusingChain(id));
  const accept = (w: Parameters<Rule>[0]): void => verdict(w, nft.NFT_GOTO, ALLOWED_CHAIN);
  const fixed = (isAllowed: boolean): Rule[] =>
    rules
      .filter((rule) => rule.isAllowed === isAllowed)
      .map(({ block, protocol, port }) => (w) => {
        sentTo(w, block, protocol && PROTOCOLS[protocol], port);
        (isAllowed ? accept : refuse)(w);
      });
  return [
    // It was judged when it began. One that is older than the policy is judged now.
    (w) => {
      inState(w, nft.CT_STATE_ESTABLISHED);
      hasLabel(w, isEnforced ? LABELS.allowed : LABELS.allowed | LABELS.recorded);
      verdict(w, nft.NF_ACCEPT);
    },
    // A late packet of an open connection: a reset would end it.
    (w) => {
      inState(w, nft.CT_STATE_INVALID);
      verdict(w, nft.NF_DROP);
    },
    ...fixed(false),
    ...fixed(true),
    ...(reachesHost
      ? []
      : TO_MACHINE.map((isForIt): Rule => (w) => {
          isForIt(w);
          refuse(w);
        })),
    ...lengths.flatMap((length): Rule[] => [
      (w) => {
        sentToPortIn(w, portSet(id, length), length);
        accept(w);
      },
      (w) => {
        sentToAddressIn(w, addressSet(id, length), length);
        accept(w);
      },
    ]),
    // Where the machine filters bridges, frames between containers come here, too. Its own address there is no peer.
    ...(reachesPeers ? subnets : []).map((block): Rule => (w) => {
      passesThrough(w);
      sentTo(w, block);
      accept(w);
    }),
    ...(reachesPeers ? ON_LINK : []).map((block): Rule => (w) => {
      passesThrough(w);
      isDestinedTo(w, block);
      accept(w);
    }),
    refuse,
  ];
}

function refusingRules({ id, isEnforced }: PolicedContainer, lengths: readonly AddressLength[]): Rule[] {
  const records = lengths.map((length): Rule => (w) => {
    // A full set ends this rule, not the refusal.
    recordIn(w, seenSet(id, length), length, LIMITS.policyRefusedMs);
  });
  return [
    ...records,
    ...(isEnforced ? rejections() : [(w: Parameters<Rule>[0]) => verdict(w, nft.NFT_GOTO, RECORDED_CHAIN)]),
  ];
}

/** Says so at once, so that a program fails instead of waiting. */
export function rejections(): Rule[] {
  return [
    (w) => {
      ofProtocol(w, PROTOCOLS.tcp);
      expression(w, "counter", () => undefined);
      expression(w, "reject", () => w.u32(nft.NFTA_REJECT_TYPE, nft.NFT_REJECT_TCP_RST));
    },
    (w) => {
      expression(w, "counter", () => undefined);
      expression(w, "reject", () => {
        w.u32(nft.NFTA_REJECT_TYPE, nft.NFT_REJECT_ICMPX_UNREACH);
        w.attribute(nft.NFTA_REJECT_ICMP_CODE, Buffer.of(nft.NFT_REJECT_ICMPX_ADMIN_PROHIBITED));
      });
    },
  ];
}
