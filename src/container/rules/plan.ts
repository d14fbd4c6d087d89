/**
 * The rules as values: what should stand in a namespace, decided without touching it. Two chains translate (DNAT and
 * SNAT, UDP and TCP), one chain before connection tracking puts our conversations into a zone of their own. Where pods
 * ask through the namespace the same is done to what comes in, and a guard keeps everybody else from our ports.
 *
 * NAT lives in connection tracking, and a process that dies deletes no entries there. In a zone that nobody else looks
 * at, the entries we leave behind concern nobody: the first packet after our death is tracked afresh, by Docker's rules.
 * They do not concern us either when we come again with other sockets, because each time has a zone of its own.
 */
import type { Capture, Lead } from "../capture/capture.ts";

export type Protocol = "udp" | "tcp";

export const FAMILIES = ["ip", "ip6"] as const;

export type Family = (typeof FAMILIES)[number];

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
  readonly device?: number;
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
  readonly isUntranslated?: true;
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
  readonly family: Family;
  readonly name: string;
  readonly chains: readonly ChainPlan[];
}

/** Where one pair of our sockets listens. */
export interface Listening {
  readonly address: string;
  readonly udpPort: number;
  readonly tcpPort: number;
}

export interface PlanInput {
  readonly capture: Capture;
  /** One for each lead of the capture, in the same order. */
  readonly listening: readonly Listening[];
  /** The connection tracking zone of these sockets. */
  readonly zone: number;
  /** Client ports of TCP conversations that began before us and are not ours. */
  readonly spared: readonly number[];
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
interface Led {
  readonly lead: Lead;
  readonly listening: Listening;
}

/** What decides where queries go, of each family. */
interface Queries {
  readonly zone: readonly RulePlan[];
  readonly translate: readonly RulePlan[];
}

/** Everything: queries come to us, replies leave with the address and port that were asked. */
export function servingPlan(input: PlanInput): TablePlan[] {
  return tables(input, (led, who) => queriesOf(input, led, who));
}

/**
 * The same for a probe's queries only: whether it works is found out before anybody depends on it. Nobody behind the
 * namespace is led to us on trial, because a mark does not come with a packet from another namespace.
 */
export function trialPlan(input: PlanInput): TablePlan[] {
  const onTrial = (rule: RulePlan): RulePlan => ({ ...rule, match: { mark: input.trialMark, ...rule.match } });
  return tables(input, (led, who) => {
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
  return tables(input, (led, who) => {
    const { zone, translate } = queriesOf(input, led, who);
    return { zone: only(zone), translate: only(translate) };
  });
}

type Who = "fromInside" | "fromPods";

function tables(input: PlanInput, queriesFor: (led: readonly Led[], who: Who) => Queries): TablePlan[] {
  const all = input.capture.leads.map((lead, index): Led => ({ lead, listening: listeningOf(input, index) }));
  return FAMILIES.flatMap((family) => {
    const led = all.filter(({ lead }) => familyOf(lead.bind) === family);
    if (led.length === 0) return [];
    const inside = insideChains(input, led, queriesFor(led, "fromInside"));
    const isAskedByPods = led.some(({ lead }) => lead.fromPods.length > 0);
    const pods = isAskedByPods ? podChains(input, family, led, queriesFor(led, "fromPods")) : [];
    return [{ family, name: TABLE_NAME, chains: [...inside, ...pods] }];
  });
}

function insideChains(input: PlanInput, led: readonly Led[], queries: Queries): ChainPlan[] {
  const passing: RulePlan[] = [
    { match: { mark: input.passthroughMark }, action: { kind: "accept" } },
    ...input.spared.map((sourcePort) => ({
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
function podChains({ capture }: PlanInput, family: Family, led: readonly Led[], queries: Queries): ChainPlan[] {
  const passing = capture.passedDevices.map((device): RulePlan => ({ match: { device }, action: { kind: "accept" } }));
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
  match: { isFromOutside: true, isToLoopback: true, isUntranslated: true },
  action: { kind: "drop" },
};

/**
 * Whoever asks must have asked an address that is captured: our ports themselves are for nobody. Those at 127.0.0.11 too:
 * KIND itself lets packets for it in.
 */
function portGuards({ listening }: Led): RulePlan[] {
  return PROTOCOLS.map((protocol) => ({
    match: {
      isFromOutside: true,
      protocol,
      destination: listening.address,
      destinationPort: portOf(listening, protocol),
      isUntranslated: true,
    },
    action: { kind: "drop" },
  }));
}

function queriesOf({ zone }: PlanInput, led: readonly Led[], who: Who): Queries {
  const ofEach = (action: (listening: Listening, protocol: Protocol) => Action): RulePlan[] =>
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
function zoneOfOurPorts(led: readonly Led[], zone: number): RulePlan[] {
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
function replyRules(led: readonly Led[]): RulePlan[] {
  return led.flatMap(({ lead, listening }) =>
    PROTOCOLS.map((protocol) => ({
      match: { protocol, source: listening.address, sourcePort: portOf(listening, protocol) },
      action: {
        kind: "snat" as const,
        ...(lead.repliesAs !== undefined && { address: lead.repliesAs }),
        port: DNS_PORT,
      },
    })),
  );
}

function listeningOf({ listening }: PlanInput, index: number): Listening {
  const found = listening[index];
  if (found === undefined) throw new RangeError(`Lead ${index} has no sockets`);
  return found;
}

function familyOf(address: string): Family {
  return address.includes(":") ? "ip6" : "ip";
}

function portOf(listening: Listening, protocol: Protocol): number {
  return protocol === "udp" ? listening.udpPort : listening.tcpPort;
}
