/**
 * Explain: resolves one question exactly as the container's own queries, and records every decision. Replies are cached as
 * usual, but it counts nowhere as a query of the container. Where dns11 does not answer, the question is resolved from inside
 * the container, as a program there would; the causes are the same.
 */
import { randomInt } from "node:crypto";
import type { Attachment } from "../../container/attach/attachment.ts";
import { type ContainerFact, DEFAULT_BRIDGE, isUserDefined } from "../../container/facts/fact.ts";
import { Fault, codeOf, reasonOf } from "../../base/lib/fault.ts";
import { type ParsedQuestion, questionQuery } from "../../base/model/name-query.ts";
import { type ReplyText, replyText } from "../../base/model/reply-text.ts";
import type { HeldName } from "../../base/model/visible-names.ts";
import { DROPPED, SLOT_BYTES } from "../../query/ports.ts";
import type { Client } from "../../query/client/client.ts";
import { Trace } from "../../query/trace.ts";
import type { Decision } from "../../container/attach/decision.ts";
import type { ActiveResolver, ControlPorts, EngineNetwork, Listening } from "../situation/ports.ts";
import { addressesIn, ownersOf } from "../situation/address-owners.ts";
import { containerRef, findContainer, isShared, namespaceOwner, stoppedCalled } from "../situation/find-container.ts";
import { lookup, readQuestion } from "./lookup.ts";
import { causesOf } from "../causes/causes.ts";
import { clientCause, crashCause, notServedCause, resolverCauses } from "../causes/client-causes.ts";
import { causeText } from "../causes/fixes.ts";
import { runningContainer, type KnownContainer } from "../causes/known-container.ts";
import { type ApartPlace, NOT_QUERIED, type Situation, cause } from "../causes/situation.ts";
import { failureText } from "../../container/attach/attachment-state.ts";
import { beforeReply, searchAnswer, searchCause } from "./program-answer.ts";
import { type SituationPorts, Situations, resolversOf } from "../situation/situations.ts";
import type { Cause } from "../../api/causes.ts";
import {
  type ExplainedStep,
  type Explanation,
  type Lookup,
  type NameRequest,
  type AddressOwner,
  recordsFor,
} from "../../api/names.ts";
import { containerCauses } from "../causes/container-causes.ts";
import { hostAndPort } from "../causes/not-names.ts";

/** Containers with the addresses of an answer of which more is said. */
const OWNERS_SHOWN = 8;
const ADDRESSES_TRIED = 4;
/** Neither local to a link or a site. */
const GLOBAL_SIX = /^[23][0-9a-f]{3}:/i;

/** What came of the question, before it is known why. */
type Resolved = Pick<Explanation, "steps" | "answeredBy" | "server" | "ms" | "reply" | "notServed" | "notQueried"> & {
  /** Over UDP; the reply is the one over TCP. */
  readonly isTruncated?: boolean;
  /** Why Docker's resolver kept it from being forwarded. */
  readonly held?: HeldName | undefined;
  readonly fromSearch?: Explanation["fromSearch"] | undefined;
  /** The reply for the other type of address. */
  readonly other?: Explanation["otherFamily"] | undefined;
};

const OTHER_TYPE: Readonly<Record<string, string>> = { A: "AAAA", AAAA: "A" };

export async function explain(
  ports: ControlPorts,
  nameRequest: NameRequest,
  signal: AbortSignal,
): Promise<Explanation> {
  const { containers } = ports;
  const question = readQuestion(nameRequest.name, nameRequest.type);
  const broken = await explainBroken(ports, nameRequest, question);
  if (broken !== undefined) return broken;
  const fact = findContainer(containers.facts.values(), nameRequest.container);
  const owner = namespaceOwner(containers.facts, fact);
  const client = clientOf(ports, owner);
  if (typeof client === "string") return await explainFromInside(ports, nameRequest, client, signal);
  const other = otherServers(ports, fact, owner);
  if (other !== undefined) return await explainFromInside(ports, nameRequest, other, signal);
  const query = async (each: ParsedQuestion): Promise<ReplyText | null> =>
    (await queryDns11(ports, client, each)).reply;
  const resolved = await queryDns11(ports, client, question);
  const fromSearch = await searchAnswer(ports, { fact, owner, question, reply: resolved.reply, query });
  // After it, so that it is answered as it would be alone; where no server answers A, none is waited for again.
  const isAnswered = question.typeName !== "A" || (resolved.reply?.rcode ?? "SERVFAIL") !== "SERVFAIL";
  // What its programs are not given of the other one they may need.
  const leftOut: ExplainedStep[] = [];
  const queryOther = async (each: ParsedQuestion): Promise<ReplyText | null> => {
    const { reply, steps } = await queryDns11(ports, client, each);
    leftOut.push(...steps.filter(({ layer }) => layer === "filter"));
    return reply;
  };
  const family = isAnswered ? await otherFamily(nameRequest.name, question, queryOther) : undefined;
  const steps = [...resolved.steps, ...leftOut];
  return await explanation(ports, fact, question, { ...resolved, steps, fromSearch, other: family });
}

/** The explanation for a container that dns11 does not serve; `notServed` says why. */
export async function explainFromInside(
  ports: SituationPorts,
  nameRequest: NameRequest,
  notServed: string,
  signal: AbortSignal,
): Promise<Explanation> {
  const question = readQuestion(nameRequest.name, nameRequest.type);
  const broken = await explainBroken(ports, nameRequest, question);
  if (broken !== undefined) return broken;
  const fact = findContainer(ports.containers.facts.values(), nameRequest.container);
  const resolved = await queryInside(ports, nameRequest, notServed, signal);
  const other =
    resolved.reply === null
      ? undefined
      : await otherFamily(nameRequest.name, question, async ({ typeName: type }) => {
          return (await queryInside(ports, { ...nameRequest, type }, notServed, signal)).reply;
        });
  return await explanation(ports, fact, question, { ...resolved, other });
}

/** Programs ask for both types of addresses. */
async function otherFamily(
  name: string,
  { typeName }: ParsedQuestion,
  query: (question: ParsedQuestion) => Promise<ReplyText | null>,
): Promise<Explanation["otherFamily"]> {
  const type = OTHER_TYPE[typeName];
  if (type === undefined) return undefined;
  const reply = await query(readQuestion(name, type));
  return { type, rcode: reply?.rcode ?? null, addresses: addressesIn(reply?.answers ?? []) };
}

/** Addresses of IPv6 that programs prefer, as RFC 6724 has it, although they cannot be reached. */
function unroutable(
  { inside }: SituationPorts,
  owner: ContainerFact,
  { reply, other }: Resolved,
): Situation["unroutable"] {
  const all = [...addressesIn(reply?.answers ?? []), ...(other?.addresses ?? [])];
  const addresses = all.filter((address) => GLOBAL_SIX.test(address)).slice(0, ADDRESSES_TRIED);
  const first = addresses[0];
  if (first === undefined || inside.hasRoute === undefined) return undefined;
  const hasOther = all.some((address) => !address.includes(":"));
  if (!inside.hasRoute(owner, first)) return hasOther ? undefined : { addresses, from: owner.name };
  // To others than its own kind it prefers IPv4.
  const isGlobal = owner.endpoints.some(({ ipv6 }) => ipv6 !== undefined && GLOBAL_SIX.test(ipv6));
  return isGlobal && !inside.hasRoute(undefined, first) ? { addresses, from: "the Docker host" } : undefined;
}

/** The explanation for a container in which no query can be sent: one that does not run, or has lost its network. Undefined for others. */
async function explainBroken(
  ports: SituationPorts,
  { container: word }: NameRequest,
  question: ParsedQuestion,
): Promise<Explanation | undefined> {
  const { facts } = ports.containers;
  const fact = runningOrUndefined(facts.values(), word);
  // Of most containers nothing else has to be known.
  if (fact !== undefined && !isShared(fact)) return undefined;
  const situations = await Situations.open(ports);
  const client = fact === undefined ? stoppedCalled(situations.known.all, word) : situations.known.byId(fact.id);
  const first = client === undefined ? undefined : clientCause(client, situations.known, Date.now());
  if (client === undefined || first === undefined) return undefined;
  const { name, typeName } = question;
  const why = await situations.withFiles(() =>
    client.ended === undefined ? [] : causesOf(situations.ofStopped(client, { name, typeName })),
  );
  const causes = [first, ...why.filter(({ code }) => code !== "resolves-now")];
  const reason = client.ended === undefined ? "it has no network" : "it does not run";
  return {
    container: { id: client.id, name: client.name },
    question: { name, type: typeName },
    networks: client.endpoints.map(({ networkName }) => networkName),
    steps: [],
    answeredBy: null,
    server: null,
    ms: 0,
    reply: null,
    owners: [],
    notServed: `dns11 does not serve "${client.name}"`,
    notQueried: reason,
    causes,
    hints: causes.map((each) => causeText(each)),
  };
}

function runningOrUndefined(facts: Iterable<ContainerFact>, word: string): ContainerFact | undefined {
  try {
    return findContainer(facts, word);
  } catch (error) {
    if (codeOf(error) !== "NO_SUCH_CONTAINER") throw error;
    return undefined;
  }
}

async function explanation(
  ports: SituationPorts,
  fact: ContainerFact,
  question: ParsedQuestion,
  resolved: Resolved,
): Promise<Explanation> {
  const { containers } = ports;
  const owner = namespaceOwner(containers.facts, fact);
  const { reply, answeredBy, notServed, notQueried } = resolved;
  const situations = await Situations.open(ports);
  const { owners, here } = ownersOf(
    addressesIn(reply?.answers ?? []),
    situations.known,
    situations.known.byId(owner.id),
    (address) => containers.elsewhere?.ownerOf(owner, address),
  );
  const apart = owners.length === 0 ? [] : apartPlaces(await containers.networks(), fact, owner, here, situations);
  const ofFeatures = containers.ofFeatures.explanation(factsOf(here, containers.facts));
  const isAnswered = reply !== null && recordsFor(reply, question.typeName).length > 0;
  const why = await situations.withFiles(() => {
    const situation = situations.of(fact, owner, {
      name: question.name,
      typeName: question.typeName,
      failure: isAnswered ? undefined : notQueried === null ? failureOf(reply?.rcode) : NOT_QUERIED,
      // Of another resolver only its answer is known: it is a container's if the address is.
      isFromUpstream:
        notServed === null ? answeredBy === "servers" || answeredBy === "cache" : isAnswered && owners.length === 0,
      server: notServed === null ? (resolved.server ?? undefined) : undefined,
      isDenied: notServed === null && (answeredBy === "names" || answeredBy === "reverse"),
      isTruncated: resolved.isTruncated === true || reply?.isTruncated === true,
      isSpecial: answeredBy === "special",
      held: resolved.held,
      ...(resolved.other !== undefined && {
        otherFamily: {
          type: resolved.other.type,
          failure: resolved.other.addresses.length > 0 ? undefined : failureOf(resolved.other.rcode ?? undefined),
        },
      }),
      apart,
      unroutable: owners.length === 0 ? unroutable(ports, owner, resolved) : undefined,
    });
    return [...causesOf(situation), ...(isAnswered ? [] : portCauses(ports, situation))];
  });
  const client = situations.known.byId(fact.id) ?? runningContainer(fact);
  const {
    fromFile,
    fromSearch,
    causes: first,
  } = await situations.withFiles(() => beforeReply(ports, fact, client, question, resolved));
  const search = fromSearch === undefined ? [] : searchCause(situations, fact, question, fromSearch);
  const unserved = unservedCauses(ports, owner, isAnswered);
  const rest = programsFirst(why, unserved.length > 0).filter(
    ({ code }) => search.length === 0 || code !== "search-list",
  );
  // It asks while it runs, so it is not why the name fails.
  const looping = crashCause(undefined, client, Date.now());
  const causes = [...first, ...search, ...unserved, ...rest, ...(looping === undefined ? [] : [looping])];
  const { isTruncated: _, held: __, fromSearch: ___, other, ...shown } = resolved;
  return {
    container: containerRef(fact, owner),
    question: { name: question.name, type: question.typeName },
    networks: containers.viewOf(owner).names.flatMap(({ places }) => places),
    ...shown,
    owners,
    ...(other !== undefined && { otherFamily: other }),
    ...(fromFile !== undefined && { fromFile }),
    ...(fromSearch !== undefined && { fromSearch }),
    ...ofFeatures,
    causes,
    hints: causes.map((each) => causeText(each)),
  };
}

/** Where an answer leads to containers on a network that keeps them from the client. With a link, Docker opens ports on its bridge. */
function apartPlaces(
  networks: readonly EngineNetwork[],
  { name: client }: ContainerFact,
  { name: self, endpoints, onDefaultBridge }: ContainerFact,
  owners: readonly AddressOwner[],
  { known }: Situations,
): ApartPlace[] {
  const apart = new Map(networks.flatMap(({ name, apartBy }) => (apartBy === undefined ? [] : [[name, apartBy]])));
  if ((onDefaultBridge?.links.length ?? 0) > 0) apart.delete(DEFAULT_BRIDGE);
  const own = [...endpoints.map(({ networkName }) => networkName), ...(onDefaultBridge ? [DEFAULT_BRIDGE] : [])];
  const open = own.filter((each) => !apart.has(each) && isUserDefined(each));
  const names = new Set(owners.map(({ container }) => container));
  return [...names].slice(0, OWNERS_SHOWN).flatMap((container): ApartPlace[] => {
    if (container === self || container === client) return [];
    const there = known.all.find((each) => each.name === container)?.endpoints.map(({ networkName }) => networkName);
    const network = own.find((each) => apart.has(each) && there?.includes(each) === true);
    if (network === undefined) return [];
    const isAnswered = owners.some((each) => each.container === container && each.network === network);
    const other = open.find((each) => there?.includes(each) === true);
    const joinable = open.find((each) => there?.includes(each) !== true);
    return [{ container, network, by: apart.get(network) ?? "", isAnswered, other, joinable }];
  });
}

/** If programs do not ask dns11, nothing else is the cause, and that the name resolves here is of no use to them. */
function programsFirst(causes: readonly Cause[], isUnserved: boolean): readonly Cause[] {
  const elsewhere = causes.filter(({ code, isBreaking }) => code === "resolv-conf" && isBreaking);
  if (elsewhere.length === 0 && !isUnserved) return causes;
  const others = causes.filter((each) => !elsewhere.includes(each) && each.code !== "resolves-now");
  return [...elsewhere, ...others];
}

/** A container that should be served and is not, if that may be why the name fails. */
function unservedCauses({ containers }: SituationPorts, owner: ContainerFact, isAnswered: boolean): Cause[] {
  const reason = isAnswered ? undefined : unservedReason(containers, owner);
  return reason === undefined ? [] : [notServedCause(owner, reason)];
}

/** Why the answer of dns11 is not what programs get; undefined if it is. Of a node, dns11 writes the file itself. */
function otherServers(
  { containers, inside }: ControlPorts,
  fact: ContainerFact,
  owner: ContainerFact,
): string | undefined {
  if (fact.networkMode === "host" || containers.ofFeatures.status(owner.id).node !== undefined) return undefined;
  const resolvConf = inside.resolvConfOf(fact) ?? inside.resolvConfOf(owner);
  const [first] = resolverCauses({ client: runningContainer(fact), resolvConf, resolvers: resolversOf(owner) });
  return first === undefined ? undefined : `programs in "${fact.name}" do not ask dns11`;
}

function factsOf(owners: readonly AddressOwner[], facts: ReadonlyMap<string, ContainerFact>): readonly ContainerFact[] {
  const names = new Set(owners.map(({ container }) => container));
  return [...facts.values()].filter(({ name }) => names.has(name)).slice(0, OWNERS_SHOWN);
}

async function queryDns11(ports: ControlPorts, client: Client, question: ParsedQuestion): Promise<Resolved> {
  const traces = [new Trace()];
  const began = performance.now();
  const { answerer, forward } = ports.resolver();
  const ask = async (trace: Trace, transport: "udp" | "tcp"): Promise<Buffer | undefined> =>
    await resolveQuery(client, questionQuery(question, randomInt(0x10000)), { answerer, forward, trace, transport });
  let message = await ask(traces[0] as Trace, "udp");
  const isTruncated = message !== undefined && replyText(message)?.isTruncated === true;
  if (isTruncated) {
    // As the client does, which has no use for half an answer.
    traces.push(new Trace());
    message = (await ask(traces[1] as Trace, "tcp")) ?? message;
  }
  const ms = performance.now() - began;
  const trace = traces.at(-1) as Trace;
  const steps = traces
    .flatMap((each) => each.steps)
    .map((step): ExplainedStep => {
      const { events } = step;
      return events === undefined ? step : { ...step, events: events.map((e) => ({ ...e, atMs: e.atMs - began })) };
    });
  return {
    steps,
    answeredBy: steps.findLast(({ isAnswer }) => isAnswer)?.layer ?? null,
    server: trace.server ?? null,
    ms,
    reply: (message === undefined ? undefined : replyText(message)) ?? null,
    isTruncated,
    held: trace.held,
    notServed: null,
    notQueried: null,
  };
}

/** Where no query can be sent, what is known about the name is still worth telling. */
async function queryInside(
  ports: SituationPorts,
  nameRequest: NameRequest,
  notServed: string,
  signal: AbortSignal,
): Promise<Resolved> {
  const unexplained = { steps: [], answeredBy: null, notServed };
  try {
    const found = await lookup(ports, nameRequest, signal);
    const { server, ms } = found;
    return { ...unexplained, server, ms, reply: replyOf(found), notQueried: null };
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return { ...unexplained, server: null, ms: 0, reply: null, notQueried: reasonOf(error) };
  }
}

function replyOf({ rcode, isTruncated, isAuthoritative, isUnreadable, ...sections }: Lookup): ReplyText | null {
  const { answers, authority, additional, extendedErrors } = sections;
  if (rcode === null) return null;
  return { rcode, isTruncated, isAuthoritative, answers, authority, additional, extendedErrors, isUnreadable };
}

/** An empty answer is a failure, too: a program gets no address. */
function failureOf(rcode: string | undefined): string {
  return rcode === undefined ? "no reply" : rcode === "NOERROR" ? "NODATA" : rcode;
}

/** The client of the container's namespace, or why there is none. */
function clientOf({ containers }: ControlPorts, owner: ContainerFact): Client | string {
  const attachment = containers.attachmentOf(owner.id);
  const client = containers.clients.of(owner.id);
  const state = attachment?.state;
  if (client !== undefined && (state?.kind !== "failed" || state.isHeld)) return client;
  return `dns11 does not serve "${owner.name}": ${reasonNotServed(containers.decisionOf(owner.id), attachment)}`;
}

/** Undefined for one that is not meant to be served, or is being attached. */
function unservedReason(
  { decisionOf, attachmentOf }: SituationPorts["containers"],
  { id }: ContainerFact,
): string | undefined {
  const [decision, state] = [decisionOf(id), attachmentOf(id)?.state];
  if (decision?.kind === "skip") return decision.code === "quarantined" ? decision.reason : undefined;
  return state?.kind === "failed" ? failureText(state) : undefined;
}

function reasonNotServed(decision: Decision | undefined, attachment: Attachment | undefined): string {
  if (decision?.kind === "skip") return decision.reason;
  return attachment?.state.kind === "failed" ? attachment.state.reason : "it is being attached; try again";
}

type ExplainContext = Pick<ActiveResolver, "answerer" | "forward"> & {
  readonly trace: Trace;
  readonly transport: "udp" | "tcp";
};

/** The reply that a client would get; undefined if it would get none. */
async function resolveQuery(
  client: Client,
  query: Buffer,
  { answerer, forward, trace, transport }: ExplainContext,
): Promise<Buffer | undefined> {
  const block = Buffer.alloc(SLOT_BYTES);
  query.copy(block);
  const result = answerer.explain(client, block, query.length, transport === "tcp", trace);
  if (typeof result === "number") return result === DROPPED ? undefined : block.subarray(0, result);
  return await new Promise((resolve) => forward(client, result, transport, (reply) => resolve(Buffer.from(reply))));
}

const CONTAINERS_MAX = 4;
const PORTS_MAX = 6;

/**
 * For `api:80`, what is behind it: the containers with the name, and whether something listens on the port there. "Connection
 * refused" is no failure of DNS, and who looks for one in DNS finds none.
 */
function portCauses({ containers, inside }: SituationPorts, situation: Situation): Cause[] {
  const { known, name, owner } = situation;
  const asked = hostAndPort(name);
  if (asked === undefined) return [];
  const own = new Set(owner.endpoints.map(({ networkName }) => networkName));
  const near = known.places(asked.host).flatMap(({ container, endpoints }) => {
    const endpoint = endpoints.find(({ networkName }) => own.has(networkName));
    const address = endpoint?.ipv4 ?? endpoint?.ipv6;
    return container.ended === undefined && address !== undefined ? [{ container, address }] : [];
  });
  if (near.length === 0) return containerCauses({ ...situation, name: asked.host });
  return near.slice(0, CONTAINERS_MAX).map(({ container, address }) => {
    const fact = containers.facts.get(container.id);
    const listening = fact === undefined ? undefined : inside.listeningIn?.(fact);
    return portCause(asked, container, address, listening);
  });
}

function portCause(
  { host, port }: { readonly host: string; readonly port: number },
  { name }: KnownContainer,
  address: string,
  listening: readonly Listening[] | undefined,
): Cause {
  const where = `"${host}" is container ${name} (${address})`;
  if (listening === undefined) return cause("resolves-now", `${where}, whose ports are not known`);
  const own = listening.filter((each) => each.port === port);
  if (own.some(({ isLoopback }) => !isLoopback))
    return cause("resolves-now", `${where}, in which something listens on TCP port ${port}`);
  if (own.length > 0) {
    const sentence = `${where}, in which TCP port ${port} is open on 127.0.0.1 alone: it is not DNS that others are refused`;
    return cause("not-listening", sentence, { advice: `have the program in ${name} listen on 0.0.0.0` });
  }
  const others = [...new Set(listening.filter(({ isLoopback }) => !isLoopback).map((each) => each.port))];
  const open = others.slice(0, PORTS_MAX).join(", ");
  const sentence = `${where}, in which nothing listens on TCP port ${port}: it is not DNS that connections are refused`;
  const advice = open === "" ? `start the server in ${name}` : `use a port on which something listens there: ${open}`;
  return cause("not-listening", sentence, { advice });
}
