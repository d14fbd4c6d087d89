/**
 * The rules as values: what should stand in a namespace, decided without touching it. Two chains translate (DNAT and
 * SNAT, UDP and TCP), one chain before connection tracking puts our conversations into a zone of their own.
 *
 * NAT lives in connection tracking, and a process that dies deletes no entries there. In a zone that nobody else looks
 * at, the entries we leave behind concern nobody: the first packet after our death is tracked afresh, by Docker's rules.
 */
import type { Capture } from "../capture/capture.ts";

export type Protocol = "udp" | "tcp";

export type Action =
  | { readonly kind: "accept" }
  | { readonly kind: "zone"; readonly zone: number }
  | { readonly kind: "dnat"; readonly address: string; readonly port: number }
  | { readonly kind: "snat-port"; readonly port: number };

export interface Match {
  readonly mark?: number;
  readonly protocol?: Protocol;
  readonly source?: string;
  readonly destination?: string;
  readonly sourcePort?: number;
  readonly destinationPort?: number;
}

export interface RulePlan {
  readonly match: Match;
  readonly action: Action;
}

export interface ChainPlan {
  readonly name: string;
  readonly type: "filter" | "nat";
  readonly hook: "output" | "postrouting";
  readonly priority: number;
  readonly rules: readonly RulePlan[];
}

export interface TablePlan {
  readonly name: string;
  readonly chains: readonly ChainPlan[];
}

/** Where our two sockets of a namespace listen. */
export interface Listening {
  readonly address: string;
  readonly udpPort: number;
  readonly tcpPort: number;
}

export interface PlanInput {
  readonly capture: Capture;
  readonly listening: Listening;
  /** The connection tracking zone of this run of dns11. */
  readonly zone: number;
  /** Client ports of TCP conversations that began before us and are not ours. */
  readonly spared: readonly number[];
  /** Packets with this mark are ours and pass by everything: the door to the resolver behind us. */
  readonly doorMark: number;
  /** Packets with this mark are a probe's: on trial, only they are led to us. */
  readonly trialMark: number;
}

export const TABLE_NAME = "dns11";
/** Before connection tracking (-200), where a zone can still be chosen. */
const PRIORITY_ZONE = -300;
/** One before Docker's chains, of either of its backends and in any order of registration. */
const PRIORITY_NAT = -101;
const DNS_PORT = 53;
const PROTOCOLS: readonly Protocol[] = ["udp", "tcp"];

/** Everything: queries come to us, replies leave with the port that was asked. */
export function servingPlan(input: PlanInput): TablePlan {
  return table(input, zoneOfQueries(input), queryRules(input));
}

/** The same for a probe's queries only: whether it works is found out before anybody depends on it. */
export function trialPlan(input: PlanInput): TablePlan {
  const onTrial = (rule: RulePlan): RulePlan => ({ ...rule, match: { mark: input.trialMark, ...rule.match } });
  return table(input, zoneOfQueries(input).map(onTrial), queryRules(input).map(onTrial));
}

/**
 * New queries go to Docker's resolver again, while answers to those already here still find their way, and so do the
 * TCP conversations that go on: by their client ports.
 */
export function drainingPlan(input: PlanInput, conversations: readonly number[]): TablePlan {
  const only = (rules: readonly RulePlan[]): RulePlan[] =>
    rules
      .filter(({ match }) => match.protocol === "tcp")
      .flatMap((rule) => conversations.map((sourcePort) => ({ ...rule, match: { ...rule.match, sourcePort } })));
  return table(input, only(zoneOfQueries(input)), only(queryRules(input)));
}

function table(input: PlanInput, zone: readonly RulePlan[], queries: readonly RulePlan[]): TablePlan {
  const passing: RulePlan[] = [
    { match: { mark: input.doorMark }, action: { kind: "accept" } },
    ...input.spared.map((sourcePort) => ({
      match: { protocol: "tcp" as const, sourcePort, destinationPort: DNS_PORT },
      action: { kind: "accept" as const },
    })),
  ];
  return {
    name: TABLE_NAME,
    chains: [
      {
        name: "zone",
        type: "filter",
        hook: "output",
        priority: PRIORITY_ZONE,
        rules: [...passing, ...zone, ...zoneOfOurPorts(input)],
      },
      { name: "query", type: "nat", hook: "output", priority: PRIORITY_NAT, rules: [...passing, ...queries] },
      { name: "reply", type: "nat", hook: "postrouting", priority: PRIORITY_NAT, rules: replyRules(input) },
    ],
  };
}

function zoneOfQueries({ capture, zone }: PlanInput): RulePlan[] {
  return capture.fromInside.flatMap((destination) =>
    PROTOCOLS.map((protocol) => ({
      match: { protocol, destination, destinationPort: DNS_PORT },
      action: { kind: "zone", zone },
    })),
  );
}

/** Replies, and queries that were sent to our ports as they are: both sides of a conversation belong to one zone. */
function zoneOfOurPorts({ listening, zone }: PlanInput): RulePlan[] {
  return PROTOCOLS.flatMap((protocol): RulePlan[] => {
    const port = portOf(listening, protocol);
    const action = { kind: "zone", zone } as const;
    return [
      { match: { protocol, source: listening.address, sourcePort: port }, action },
      { match: { protocol, destination: listening.address, destinationPort: port }, action },
    ];
  });
}

function queryRules({ capture, listening }: PlanInput): RulePlan[] {
  return capture.fromInside.flatMap((destination) =>
    PROTOCOLS.map((protocol) => ({
      match: { protocol, destination, destinationPort: DNS_PORT },
      action: { kind: "dnat", address: listening.address, port: portOf(listening, protocol) },
    })),
  );
}

/**
 * Connection tracking turns replies round by itself; these two serve the reply whose entry was flushed meanwhile, and
 * have no destination match because nothing else ever leaves from these ports.
 */
function replyRules({ listening }: PlanInput): RulePlan[] {
  return PROTOCOLS.map((protocol) => ({
    match: { protocol, source: listening.address, sourcePort: portOf(listening, protocol) },
    action: { kind: "snat-port", port: DNS_PORT },
  }));
}

function portOf(listening: Listening, protocol: Protocol): number {
  return protocol === "udp" ? listening.udpPort : listening.tcpPort;
}
