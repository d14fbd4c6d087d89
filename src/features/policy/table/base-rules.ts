/**
 * BaseRules: what all containers share: the chains at the hooks, which find a packet's own chain by its source address, and
 * the networks whose containers are refused everything until they are known.
 */
import { LISTENER_MARKS } from "../../../base/model/listener-addresses.ts";
import type { ClosedNetwork } from "../model/policy.ts";
import type { NftCommand } from "../../../kernel/nfnetlink.ts";
import * as nft from "../../../kernel/nft-constants.ts";
import {
  type Rule,
  accept,
  compare,
  drop,
  goTo,
  jump,
  loadMeta,
  loadPayload,
  lookUp,
  nativeU32,
  ofProtocol,
} from "../../../kernel/nft-expressions.ts";
import { LOOPBACK_INDEX } from "../../../kernel/rtnetlink-constants.ts";
import { REJECTIONS, NEIGHBOUR_MESSAGES } from "./container-rules.ts";
import {
  ADDRESS_LENGTHS,
  NEIGHBOUR_PLAN,
  NETWORKS_CHAIN,
  SENT_CHAIN,
  UNKNOWN_CHAIN,
  addressesPlan,
  heldSet,
  whoMap,
  whoPlan,
  TABLES,
} from "./layout.ts";
import {
  LABELS,
  PROTOCOLS,
  enteredBy,
  fromBlock,
  goesElsewhere,
  hasLabel,
  inState,
  isDestinedTo,
  isReply,
  lacksLabel,
  loadSource,
  ofFamily,
  setLabel,
} from "./matches.ts";

/** Before the filters of Docker and of firewalls: what passes here is still theirs to refuse. */
const PRIORITY = -10;
/** After connection tracking (-200), and before anything that translates (-100): a published port, a service. */
const PRIORITY_SENT = -150;
const HOOKS = ["forward", "input"] as const;

/** `resolvers`: addresses of this machine at which dns11 answers, to which everybody may send queries. */
export function baseCommands(flags: number, resolvers: readonly Uint8Array[]): NftCommand[] {
  return [
    TABLES.inet.create(flags),
    TABLES.netdev.create(flags),
    TABLES.netdev.set(NEIGHBOUR_PLAN),
    ...TABLES.netdev.elements(
      "add",
      NEIGHBOUR_PLAN.name,
      NEIGHBOUR_MESSAGES.map((type) => ({ key: Buffer.of(type) })),
    ),
    TABLES.inet.chain(NETWORKS_CHAIN),
    TABLES.inet.chain(UNKNOWN_CHAIN),
    ...TABLES.inet.replaceRules(UNKNOWN_CHAIN, [OF_FORMER, ...REJECTIONS]),
    ...ADDRESS_LENGTHS.map((length) => TABLES.inet.set(addressesPlan(heldSet(length), length, 0))),
    TABLES.inet.chain(SENT_CHAIN, { number: nft.NF_HOOKS.indexOf("prerouting"), priority: PRIORITY_SENT }),
    ...TABLES.inet.replaceRules(SENT_CHAIN, [NOTE_ELSEWHERE]),
    ...HOOKS.flatMap((hook) => ADDRESS_LENGTHS.map((length) => TABLES.inet.set(whoPlan(whoMap(hook, length), length)))),
    ...HOOKS.map((hook) => TABLES.inet.chain(hook, { number: nft.NF_HOOKS.indexOf(hook), priority: PRIORITY })),
    ...TABLES.inet.replaceRules("forward", [...PASSING, ...judged("forward")]),
    ...TABLES.inet.replaceRules("input", [...arriving(resolvers), ...judged("input")]),
  ];
}

/** Containers of which nothing is known but these addresses: they may be ordinary ones, so their packets are lost, not refused. */
export function heldCommands(change: "add" | "remove", addresses: readonly Uint8Array[]): NftCommand[] {
  return ADDRESS_LENGTHS.flatMap((length) =>
    TABLES.inet.elements(
      change,
      heldSet(length),
      addresses.filter((address) => address.length === length).map((key) => ({ key })),
    ),
  );
}

/** Networks whose containers are refused everything until they are known. */
export function networkCommands(networks: readonly ClosedNetwork[]): NftCommand[] {
  const rules = networks.flatMap(({ bridge, blocks }): Rule[] => [
    // Whatever source they claim: nothing else is known of their links yet.
    ...(bridge === undefined ? [] : [[enteredBy(bridge), goTo(UNKNOWN_CHAIN)]]),
    ...blocks.map((block): Rule => [fromBlock(block), goTo(UNKNOWN_CHAIN)]),
  ]);
  return TABLES.inet.replaceRules(NETWORKS_CHAIN, rules);
}

/** The machine's own addresses change at any time, and the kernel knows them best. */
const NOTE_ELSEWHERE: Rule = [inState(nft.CT_STATE_NEW), goesElsewhere, setLabel(LABELS.elsewhere)];

const JUDGED = LABELS.allowed | LABELS.recorded;

/** It may be its own as well, after others have removed the tables: then it goes on when the container is known again. */
const OF_FORMER: Rule = [inState(nft.CT_STATE_ESTABLISHED), hasLabel(JUDGED), drop];

/** What answers somebody who was let through to it. Helpers of connection tracking open nothing. */
const PASSING: readonly Rule[] = [
  [inState(nft.CT_STATE_ESTABLISHED), isReply, accept],
  ...[PROTOCOLS.icmp, PROTOCOLS.icmpv6].map((protocol): Rule => [
    inState(nft.CT_STATE_RELATED),
    ofProtocol(protocol),
    accept,
  ]),
];

function arriving(resolvers: readonly Uint8Array[]): Rule[] {
  return [
    // The machine's own programs use its addresses on the containers' networks, too.
    [loadMeta(nft.NFT_META_IIF), compare(nativeU32(LOOPBACK_INDEX)), accept],
    ...PASSING,
    // Without these the machine is no router to a container. They do not pass through it.
    ...[135, 136, 133].map((type): Rule => [
      ofProtocol(PROTOCOLS.icmpv6),
      loadPayload({ base: nft.TRANSPORT_HEADER, offset: 0, length: 1 }),
      compare(Buffer.of(type)),
      accept,
    ]),
    // By then the listener's rules have given a query its port. They drop everything else to its address, while there is a listener.
    ...resolvers.flatMap((address) =>
      Object.values(LISTENER_MARKS).map((mark): Rule => [
        isDestinedTo({ bytes: address, prefix: address.length * 8 }),
        loadMeta(nft.NFT_META_MARK),
        compare(nativeU32(mark)),
        accept,
      ]),
    ),
  ];
}

function judged(hook: "forward" | "input"): Rule[] {
  return [
    ...ADDRESS_LENGTHS.map((length): Rule => [ofFamily(length), loadSource(length), lookUp(heldSet(length)), drop]),
    ...ADDRESS_LENGTHS.map((length): Rule => [
      ofFamily(length),
      loadSource(length),
      lookUp(whoMap(hook, length), true),
    ]),
    // Of a container that is not known yet: it is judged when it is. What a policy has let through may be a former one's.
    [inState(nft.CT_STATE_ESTABLISHED), lacksLabel(JUDGED), accept],
    [jump(NETWORKS_CHAIN)],
  ];
}
