/**
 * RulePlan: the rules of a namespace as values, for any rule backend. Two chains translate addresses (DNAT and SNAT,
 * UDP and TCP). One chain before connection tracking puts our connections into their own conntrack zone. If pods
 * send queries through the namespace, incoming packets get the same treatment, and a guard chain protects our ports
 * from other packets.
 *
 * Where a policy is enforced, the guard chain also closes the ports of Docker's resolver, which are at the same address as ours and
 * forward every name: only what Docker's rules redirect gets there, and nothing to any other port of that address but ours.
 *
 * NAT state is in conntrack, and a process that dies leaves its entries there. In a zone of our own these stale entries
 * do no harm: without our rules the next packet is tracked in the default zone, by Docker's rules. Nor do they affect
 * our next start, which uses another zone.
 */
import { type Capture, type ControlGroup, DOCKER_RESOLVER, type Redirect, protocolsOf } from "../capture/capture.ts";

export type Protocol = "udp" | "tcp";

export const IP_FAMILIES = ["ip", "ip6"] as const;

export type IpFamily = (typeof IP_FAMILIES)[number];

export type Action =
  | { readonly kind: "accept" }
  | { readonly kind: "zone"; readonly zone: number }
  /** Connection tracking ignores the packet, and so does translation. */
  | { readonly kind: "notrack" }
  | { readonly kind: "dnat"; readonly address: string; readonly port: number }
  /** Without an address only the port is changed. */
  | { readonly kind: "snat"; readonly address?: string; readonly port: number }
  /** Counts the packets, for the doctor and metrics. */
  | { readonly kind: "drop" };

export interface Match {
  readonly mark?: number;
  /** The index of the incoming interface. */
  readonly interface?: number;
  /** The incoming interface is not lo. */
  readonly isFromOutside?: true;
  readonly protocol?: Protocol;
  readonly source?: string;
  readonly destination?: string;
  /** It applies to packets to 127.0.0.0/8. */
  readonly isToLoopback?: true;
  readonly sourcePort?: number;
  readonly destinationPort?: number;
  /** The sending process is in this control group. */
  readonly controlGroup?: ControlGroup;
  /** The packet has these bytes, in any letter case. */
  readonly bytes?: Uint8Array;
  /** The packet does not have these bytes. */
  readonly lacksBytes?: Uint8Array;
  /** No DNAT rule has changed the destination. */
  readonly isNotDnat?: true;
  /** A DNAT rule has changed the destination. Of what is not tracked nobody knows that. */
  readonly isDnat?: true;
}

interface RulePlan {
  readonly match: Match;
  readonly action: Action;
}

export type ChainName = "zone" | "query" | "reply" | "pod-zone" | "pod-query" | typeof GUARD_CHAIN;

interface ChainPlan {
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

/** The address and ports of one pair of our sockets. */
export interface ListenAddress {
  readonly address: string;
  readonly udpPort: number;
  readonly tcpPort: number;
}

export interface PlanInput {
  readonly capture: Capture;
  /** One for each redirect of the capture, in the same order. */
  readonly listening: readonly ListenAddress[];
  /** The conntrack zone of these sockets. */
  readonly zone: number;
  /** Whose UDP goes past connection tracking, where a program at lo answers it, or writes our port into it. */
  readonly untracked?: "none" | "probes" | "all";
  /** Whether the ports of Docker's resolver are closed to packets that no rule has redirected. */
  readonly closesResolver?: boolean;
  /** Client ports of TCP connections to Docker's resolver that were open before we attached; not redirected. */
  readonly sparedPorts: readonly number[];
  /** Packets with this mark are ours and skip all our rules: the passthrough to Docker's resolver. */
  readonly passthroughMark: number;
  /** Where the resolver is closed, they reach it only from this control group, and without one not at all. */
  readonly passthroughGroup?: ControlGroup | undefined;
  /** Packets with this mark belong to a probe: on trial, only these are redirected. */
  readonly trialMark: number;
}

export const TABLE_NAME = "dns11";
/** A zone can only be set before connection tracking (-200). */
const PRIORITY_ZONE = -300;
/** One before Docker's chains, whichever backend Docker uses and whichever registers first. */
const PRIORITY_NAT = -101;
/** This is before the usual filter chains, so that they cannot accept a packet first. */
const PRIORITY_GUARD = -5;
const DNS_PORT = 53;
const PROTOCOLS: readonly Protocol[] = ["udp", "tcp"];

/** A redirect with the address of its sockets. */
interface ListeningRedirect {
  readonly redirect: Redirect;
  readonly listening: ListenAddress;
}

/** The rules that decide where queries go. */
interface QueryRules {
  readonly zone: readonly RulePlan[];
  readonly translate: readonly RulePlan[];
}

/** The full plan: queries are redirected to us, replies leave with the address and port that the client queried. */
export function servingPlan(input: PlanInput): TablePlan[] {
  return tablePlans(input, (listeners, origin) => queriesOf(input, listeners, origin));
}

/**
 * The same for probes only, to test the rules before clients depend on them. Queries of pods are not redirected on
 * trial, because a packet loses its mark when it leaves its namespace.
 */
export function trialPlan(served: PlanInput): TablePlan[] {
  const input: PlanInput = { ...served, untracked: "none" };
  const onTrial = (rule: RulePlan): RulePlan => ({ ...rule, match: { mark: input.trialMark, ...rule.match } });
  return tablePlans(input, (listeners, origin) => {
    if (origin === "fromPods") return { zone: [], translate: [] };
    const { zone, translate } = queriesOf(input, listeners, origin);
    return { zone: zone.map(onTrial), translate: translate.map(onTrial) };
  });
}

/**
 * Sends new queries to Docker's resolver, while replies to earlier queries are still translated, and open TCP
 * connections are still redirected, by their client ports.
 */
export function drainingPlan(input: PlanInput, clientPorts: readonly number[]): TablePlan[] {
  const only = (rules: readonly RulePlan[]): RulePlan[] =>
    rules
      .filter(({ match }) => match.protocol === "tcp")
      .flatMap((rule) => clientPorts.map((sourcePort) => ({ ...rule, match: { ...rule.match, sourcePort } })));
  return tablePlans(input, (listeners, origin) => {
    const { zone, translate } = queriesOf(input, listeners, origin);
    return { zone: only(zone), translate: only(translate) };
  });
}

type QueryOrigin = "fromInside" | "fromPods";

function tablePlans(
  input: PlanInput,
  queriesFor: (listeners: readonly ListeningRedirect[], origin: QueryOrigin) => QueryRules,
): TablePlan[] {
  const all = input.capture.redirects.map((redirect, index): ListeningRedirect => ({
    redirect,
    listening: listenAddressOf(input, index),
  }));
  return IP_FAMILIES.flatMap((family) => {
    const listeners = all.filter(({ redirect }) => familyOf(redirect.bind) === family);
    if (listeners.length === 0) return [];
    const inside = insideChains(input, listeners, queriesFor(listeners, "fromInside"));
    const servesPods = listeners.some(({ redirect }) => redirect.fromPods.length > 0);
    const pods = servesPods ? podChains(input, queriesFor(listeners, "fromPods")) : [];
    const guards = guardRules(input, family, listeners);
    const guard = guards.length > 0 ? [guardChain(guards)] : [];
    return [{ family, name: TABLE_NAME, chains: [...inside, ...pods, ...guard] }];
  });
}

function insideChains(input: PlanInput, listeners: readonly ListeningRedirect[], queries: QueryRules): ChainPlan[] {
  const bypass: RulePlan[] = [
    ...passthrough(input, listeners).map((match) => ({ match, action: { kind: "accept" as const } })),
    ...sparedGroups(input),
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
      // Queries last, because a rule for them may end the chain.
      rules: [...bypass, ...trackingOfOurPorts(listeners, input), ...queries.zone],
    },
    {
      name: "query",
      type: "nat",
      hook: "output",
      priority: PRIORITY_NAT,
      rules: [...bypass, ...queries.translate],
    },
    { name: "reply", type: "nat", hook: "postrouting", priority: PRIORITY_NAT, rules: replyRules(listeners) },
  ];
}

/** A container may set a mark, too, so where the resolver is closed a mark alone passes only to servers that are redirected beside it. */
function passthrough(input: PlanInput, listeners: readonly ListeningRedirect[]): Match[] {
  const { passthroughMark: mark, passthroughGroup: controlGroup, closesResolver } = input;
  if (closesResolver !== true) return [{ mark }];
  const others = listeners.flatMap(({ redirect }) => redirect.fromInside).filter((each) => each !== DOCKER_RESOLVER);
  return [
    ...(controlGroup === undefined ? [] : [{ mark, controlGroup }]),
    ...[...new Set(others)].map((destination) => ({ mark, destination })),
  ];
}

/** The chains for packets from pods; packets from Docker's networks are accepted unchanged. */
function podChains({ capture }: PlanInput, queries: QueryRules): ChainPlan[] {
  const bypass = capture.bypassInterfaces.map((index): RulePlan => ({
    match: { interface: index },
    action: { kind: "accept" },
  }));
  return [
    {
      name: "pod-zone",
      type: "filter",
      hook: "prerouting",
      priority: PRIORITY_ZONE,
      rules: [...bypass, ...queries.zone],
    },
    {
      name: "pod-query",
      type: "nat",
      hook: "prerouting",
      priority: PRIORITY_NAT,
      rules: [...bypass, ...queries.translate],
    },
  ];
}

/** The chain whose rules drop and count packets. */
export const GUARD_CHAIN = "guard";

function guardChain(rules: readonly RulePlan[]): ChainPlan {
  return { name: GUARD_CHAIN, type: "filter", hook: "input", priority: PRIORITY_GUARD, rules };
}

function guardRules(input: PlanInput, family: IpFamily, listeners: readonly ListeningRedirect[]): RulePlan[] {
  const { capture, closesResolver } = input;
  const servesPods = listeners.some(({ redirect }) => redirect.fromPods.length > 0);
  const closing = closesResolver === true ? resolverGuards(listeners) : [];
  if (servesPods && family === "ip" && capture.guardsLoopback) return [LOOPBACK_GUARD, ...closing];
  return [...(servesPods || capture.guardsPorts === true ? listeners.flatMap(portGuards) : []), ...closing];
}

function resolverGuards(listeners: readonly ListeningRedirect[]): RulePlan[] {
  const own = listeners.filter(({ redirect }) => redirect.bind === DOCKER_RESOLVER);
  if (own.length === 0) return [];
  const accepted: Match[] = [
    // First, because most of what a container receives is that.
    { isFromOutside: true },
    // Where the kernel answers, connection tracking does not know our own conversations.
    ...own.flatMap(({ listening }) =>
      PROTOCOLS.map((protocol) => ({
        protocol,
        destination: listening.address,
        destinationPort: portOf(listening, protocol),
      })),
    ),
    { isDnat: true },
  ];
  return [
    ...accepted.map((match): RulePlan => ({ match, action: { kind: "accept" } })),
    ...PROTOCOLS.map((protocol): RulePlan => ({
      match: { protocol, destination: DOCKER_RESOLVER },
      action: { kind: "drop" },
    })),
  ];
}

/** On the host the engine and other resolvers forward queries of those who must not see what the host sees. */
function sparedGroups({ capture: { host } }: PlanInput): RulePlan[] {
  if (host === undefined) return [];
  return host.spared.map((controlGroup) => ({
    match: { destinationPort: DNS_PORT, protocol: "udp", controlGroup },
    action: { kind: "accept" },
  }));
}

const LOOPBACK_GUARD: RulePlan = {
  match: { isFromOutside: true, isToLoopback: true, isNotDnat: true },
  action: { kind: "drop" },
};

/**
 * Our ports accept only redirected packets, never packets sent to them directly. That includes 127.0.0.11: KIND itself
 * lets such packets in.
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

function queriesOf(input: PlanInput, listeners: readonly ListeningRedirect[], origin: QueryOrigin): QueryRules {
  const { capture } = input;
  const ofEach = (action: (listening: ListenAddress, protocol: Protocol) => Action): RulePlan[] => {
    const rulesFor = (selection: Pick<Match, "bytes">): RulePlan[] =>
      listeners.flatMap(({ redirect, listening }) =>
        redirect[origin].flatMap((destination) =>
          protocolsOf(capture).map((protocol) => ({
            match: { protocol, destination, destinationPort: DNS_PORT, ...selection },
            action: action(listening, protocol),
          })),
        ),
      );
    const { names = [], reverseNames = [] } = capture.host ?? {};
    if (capture.host === undefined) return rulesFor({});
    const reverse = reverseNames.flatMap((bytes) => rulesFor({ bytes }));
    return [...names.flatMap((bytes) => rulesFor({ bytes })), ...(reverse.length > 0 ? [NOT_REVERSE] : []), ...reverse];
  };
  return {
    zone: [...untrackedProbes(input, origin), ...ofEach((_, protocol) => trackingOf(protocol, input))],
    translate: ofEach((listening, protocol) => ({
      kind: "dnat",
      address: listening.address,
      port: portOf(listening, protocol),
    })),
  };
}

/** How connection tracking treats our conversations. */
function trackingOf(protocol: Protocol, { zone, untracked }: PlanInput): Action {
  return protocol === "udp" && untracked === "all" ? { kind: "notrack" } : { kind: "zone", zone };
}

/** The program at lo is on trial: only probes depend on it. */
function untrackedProbes({ capture, untracked, trialMark: mark }: PlanInput, origin: QueryOrigin): RulePlan[] {
  if (untracked !== "probes" || origin !== "fromInside") return [];
  return capture.redirects.flatMap(({ fromInside }) =>
    fromInside.flatMap((destination) =>
      // The chain ends there: a zone would be that of a tracked packet.
      (["notrack", "accept"] as const).map((kind) => ({
        match: { mark, protocol: "udp" as const, destination, destinationPort: DNS_PORT },
        action: { kind },
      })),
    ),
  );
}

/** Most names of the host are no reverse names: one comparison instead of one for every reverse zone. */
const NOT_REVERSE: RulePlan = {
  match: { protocol: "udp", destinationPort: DNS_PORT, lacksBytes: Buffer.from("\x04arpa\0", "latin1") },
  action: { kind: "accept" },
};

/** Replies, and queries sent directly to our ports: both directions of a connection must be in one zone. */
function trackingOfOurPorts(listeners: readonly ListeningRedirect[], input: PlanInput): RulePlan[] {
  return listeners.flatMap(({ listening }) =>
    PROTOCOLS.flatMap((protocol): RulePlan[] => {
      const port = portOf(listening, protocol);
      const action = trackingOf(protocol, input);
      return [
        { match: { protocol, source: listening.address, sourcePort: port }, action },
        { match: { protocol, destination: listening.address, destinationPort: port }, action },
      ];
    }),
  );
}

/**
 * Conntrack translates replies by itself. These rules are for replies whose entry was flushed meanwhile; they need no
 * destination match, because nothing else is sent from these ports.
 */
function replyRules(listeners: readonly ListeningRedirect[]): RulePlan[] {
  return listeners.flatMap(({ redirect, listening }) =>
    PROTOCOLS.map((protocol) => ({
      match: { protocol, source: listening.address, sourcePort: portOf(listening, protocol) },
      action: {
        kind: "snat" as const,
        ...(redirect.replySource !== undefined && { address: redirect.replySource }),
        port: DNS_PORT,
      },
    })),
  );
}

function listenAddressOf({ listening }: PlanInput, index: number): ListenAddress {
  const found = listening[index];
  if (found === undefined) throw new RangeError(`Redirect ${index} has no sockets`);
  return found;
}

function familyOf(address: string): IpFamily {
  return address.includes(":") ? "ip6" : "ip";
}

function portOf(listening: ListenAddress, protocol: Protocol): number {
  return protocol === "udp" ? listening.udpPort : listening.tcpPort;
}
