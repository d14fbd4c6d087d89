/**
 * The rules as values: what should stand in a namespace, decided without touching it. Two chains translate (DNAT and
 * SNAT, UDP and TCP), one chain before connection tracking puts our conversations into a zone of their own. Where pods
 * ask through the namespace the same is done to what comes in, and a guard keeps everybody else from our ports.
 *
 * NAT lives in connection tracking, and a process that dies deletes no entries there. In a zone that nobody else looks
 * at, the entries we leave behind concern nobody: the first packet after our death is tracked afresh, by Docker's rules.
 * They do not concern us either when we come again with other sockets, because each time has a zone of its own.
 */
import type { Capture, Redirect } from "../capture/capture.ts";

export type Protocol = "udp" | "tcp";

export const IP_FAMILIES = ["ip", "ip6"] as const;

export type IpFamily = (typeof IP_FAMILIES)[number];

export type Action =
  | { readonly kind: "accept" }
  | { readonly kind: "zone"; readonly zone: number }
  | { readonly kind: "dnat"; readonly address: string; readonly port: number }
  /** Without an address only the port is changed. */
  | { readonly kind: "snat"; readonly address?: string; readonly port: number }
  /** Counted, so that somebody can be told. */
  | { readonly kind: "drop" };

export interface Match {
  readonly mark?: number;
  /** Came in by the interface with this index. */
  readonly interface?: number;
  /** Came in by another interface than lo. */
  readonly isFromOutside?: true;
  readonly protocol?: Protocol;
  readonly source?: string;
  readonly destination?: string;
  /** To 127.0.0.0/8. */
  readonly isToLoopback?: true;
  readonly sourcePort?: number;
  readonly destinationPort?: number;
  /** Nobody has changed its destination. */
  readonly isNotDnat?: true;
}

interface RulePlan {
  readonly match: Match;
  readonly action: Action;
}

export type ChainName = "zone" | "query" | "reply" | "pod-zone" | "pod-query" | typeof GUARD_CHAIN;

export interface ChainPlan {
  readonly name: ChainName;
  readonly type: "filter" | "nat";
  readonly hook: "prerouting" | "input" | "output" | "postrouting";
  readonly priority: number;
  readonly rules: readonly RulePlan[];
}

export interface TablePlan {
  readonly family: IpFamily;
  readonly name: string;
  readonly chains: readonly ChainPlan[];
}

/** Where one pair of our sockets listens. */
export interface ListenAddress {
  readonly address: string;
  readonly udpPort: number;
  readonly tcpPort: number;
}

export interface PlanInput {
  readonly capture: Capture;
  /** One for each lead of the capture, in the same order. */
  readonly listening: readonly ListenAddress[];
  /** The connection tracking zone of these sockets. */
  readonly zone: number;
  /** Client ports of TCP conversations that began before us and are not ours. */
  readonly sparedPorts: readonly number[];
  /** Packets with this mark are ours and pass by everything: the door to the resolver behind us. */
  readonly passthroughMark: number;
  /** Packets with this mark are a probe's: on trial, only they are led to us. */
  readonly trialMark: number;
}

export const TABLE_NAME = "dns11";
/** Before connection tracking (-200), where a zone can still be chosen. */
const PRIORITY_ZONE = -300;
/** One before Docker's chains, of either of its backends and in any order of registration. */
const PRIORITY_NAT = -101;
/** Before the filters that others usually have, so that their accepting does not come first. */
const PRIORITY_GUARD = -5;
const DNS_PORT = 53;
const PROTOCOLS: readonly Protocol[] = ["udp", "tcp"];

/** A lead with where its sockets listen. */
interface ListeningRedirect {
  readonly lead: Redirect;
  readonly listening: ListenAddress;
}

/** What decides where queries go, of each family. */
interface QueryRules {
  readonly zone: readonly RulePlan[];
  readonly translate: readonly RulePlan[];
}

/** Everything: queries come to us, replies leave with the address and port that were asked. */
export function servingPlan(input: PlanInput): TablePlan[] {
  return tablePlans(input, (led, who) => queriesOf(input, led, who));
}

/**
 * The same for a probe's queries only: whether it works is found out before anybody depends on it. Nobody behind the
 * namespace is led to us on trial, because a mark does not come with a packet from another namespace.
 */
export function trialPlan(input: PlanInput): TablePlan[] {
  const onTrial = (rule: RulePlan): RulePlan => ({ ...rule, match: { mark: input.trialMark, ...rule.match } });
  return tablePlans(input, (led, who) => {
    if (who === "fromPods") return { zone: [], translate: [] };
    const { zone, translate } = queriesOf(input, led, who);
    return { zone: zone.map(onTrial), translate: translate.map(onTrial) };
  });
}

/**
 * New queries go to Docker's resolver again, while answers to those already here still find their way, and so do the
 * TCP conversations that go on: by their client ports.
 */
export function drainingPlan(input: PlanInput, conversations: readonly number[]): TablePlan[] {
  const only = (rules: readonly RulePlan[]): RulePlan[] =>
    rules
      .filter(({ match }) => match.protocol === "tcp")
      .flatMap((rule) => conversations.map((sourcePort) => ({ ...rule, match: { ...rule.match, sourcePort } })));
  return tablePlans(input, (led, who) => {
    const { zone, translate } = queriesOf(input, led, who);
    return { zone: only(zone), translate: only(translate) };
  });
}

type QueryOrigin = "fromInside" | "fromPods";

function tablePlans(
  input: PlanInput,
  queriesFor: (led: readonly ListeningRedirect[], who: QueryOrigin) => QueryRules,
): TablePlan[] {
  const all = input.capture.redirects.map((lead, index): ListeningRedirect => ({
    lead,
    listening: listeningOf(input, index),
  }));
  return IP_FAMILIES.flatMap((family) => {
    const led = all.filter(({ lead }) => familyOf(lead.bind) === family);
    if (led.length === 0) return [];
    const inside = insideChains(input, led, queriesFor(led, "fromInside"));
    const isAskedByPods = led.some(({ lead }) => lead.fromPods.length > 0);
    const pods = isAskedByPods ? podChains(input, family, led, queriesFor(led, "fromPods")) : [];
    return [{ family, name: TABLE_NAME, chains: [...inside, ...pods] }];
  });
}

function insideChains(input: PlanInput, led: readonly ListeningRedirect[], queries: QueryRules): ChainPlan[] {
  const passing: RulePlan[] = [
    { match: { mark: input.passthroughMark }, action: { kind: "accept" } },
    ...input.sparedPorts.map((sourcePort) => ({
      match: { protocol: "tcp" as const, sourcePort, destinationPort: DNS_PORT },
      action: { kind: "accept" as const },
    })),
  ];
  return [
    {
      name: "zone",
      type: "filter",
      hook: "output",
      priority: PRIORITY_ZONE,
      rules: [...passing, ...queries.zone, ...zoneOfOurPorts(led, input.zone)],
    },
    {
      name: "query",
      type: "nat",
      hook: "output",
      priority: PRIORITY_NAT,
      rules: [...passing, ...queries.translate],
    },
    { name: "reply", type: "nat", hook: "postrouting", priority: PRIORITY_NAT, rules: replyRules(led) },
  ];
}

/** What comes in from behind the namespace; what comes in from Docker's networks is none of ours. */
function podChains(
  { capture }: PlanInput,
  family: IpFamily,
  led: readonly ListeningRedirect[],
  queries: QueryRules,
): ChainPlan[] {
  const passing = capture.bypassInterfaces.map((device): RulePlan => ({
    match: { interface: device },
    action: { kind: "accept" },
  }));
  return [
    {
      name: "pod-zone",
      type: "filter",
      hook: "prerouting",
      priority: PRIORITY_ZONE,
      rules: [...passing, ...queries.zone],
    },
    {
      name: "pod-query",
      type: "nat",
      hook: "prerouting",
      priority: PRIORITY_NAT,
      rules: [...passing, ...queries.translate],
    },
    {
      name: GUARD_CHAIN,
      type: "filter",
      hook: "input",
      priority: PRIORITY_GUARD,
      rules: family === "ip" && capture.guardsLoopback ? [LOOPBACK_GUARD] : led.flatMap(portGuards),
    },
  ];
}

/** The chain whose rules drop, each counting what it dropped. */
export const GUARD_CHAIN = "guard";

const LOOPBACK_GUARD: RulePlan = {
  match: { isFromOutside: true, isToLoopback: true, isNotDnat: true },
  action: { kind: "drop" },
};

/**
 * Whoever asks must have asked an address that is captured: our ports themselves are for nobody. Those at 127.0.0.11 too:
 * KIND itself lets packets for it in.
 */
function portGuards({ listening }: ListeningRedirect): RulePlan[] {
  return PROTOCOLS.map((protocol) => ({
    match: {
      isFromOutside: true,
      protocol,
      destination: listening.address,
      destinationPort: portOf(listening, protocol),
      isNotDnat: true,
    },
    action: { kind: "drop" },
  }));
}

function queriesOf({ zone }: PlanInput, led: readonly ListeningRedirect[], who: QueryOrigin): QueryRules {
  const ofEach = (action: (listening: ListenAddress, protocol: Protocol) => Action): RulePlan[] =>
    led.flatMap(({ lead, listening }) =>
      lead[who].flatMap((destination) =>
        PROTOCOLS.map((protocol) => ({
          match: { protocol, destination, destinationPort: DNS_PORT },
          action: action(listening, protocol),
        })),
      ),
    );
  return {
    zone: ofEach(() => ({ kind: "zone", zone })),
    translate: ofEach((listening, protocol) => ({
      kind: "dnat",
      address: listening.address,
      port: portOf(listening, protocol),
    })),
  };
}

/** Replies, and queries that were sent to our ports as they are: both sides of a conversation belong to one zone. */
function zoneOfOurPorts(led: readonly ListeningRedirect[], zone: number): RulePlan[] {
  return led.flatMap(({ listening }) =>
    PROTOCOLS.flatMap((protocol): RulePlan[] => {
      const port = portOf(listening, protocol);
      const action = { kind: "zone", zone } as const;
      return [
        { match: { protocol, source: listening.address, sourcePort: port }, action },
        { match: { protocol, destination: listening.address, destinationPort: port }, action },
      ];
    }),
  );
}

/**
 * Connection tracking turns replies round by itself; these serve the reply whose entry was flushed meanwhile, and have no
 * destination match because nothing else ever leaves from these ports.
 */
function replyRules(led: readonly ListeningRedirect[]): RulePlan[] {
  return led.flatMap(({ lead, listening }) =>
    PROTOCOLS.map((protocol) => ({
      match: { protocol, source: listening.address, sourcePort: portOf(listening, protocol) },
      action: {
        kind: "snat" as const,
        ...(lead.replySource !== undefined && { address: lead.replySource }),
        port: DNS_PORT,
      },
    })),
  );
}

function listeningOf({ listening }: PlanInput, index: number): ListenAddress {
  const found = listening[index];
  if (found === undefined) throw new RangeError(`Lead ${index} has no sockets`);
  return found;
}

function familyOf(address: string): IpFamily {
  return address.includes(":") ? "ip6" : "ip";
}

function portOf(listening: ListenAddress, protocol: Protocol): number {
  return protocol === "udp" ? listening.udpPort : listening.tcpPort;
}
