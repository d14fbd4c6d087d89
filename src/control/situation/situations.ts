/**
 * Situations: collects what causes are derived from, for one report: all containers, the upstream servers of a name and
 * their state, and the resolv.conf of a container. It sends no query.
 */
import { LISTENER_ADDRESSES } from "../../base/model/listener-addresses.ts";
import { TYPE, parseType } from "../../base/dns/record-type.ts";
import { bareName, presentation, presentedLabels } from "../../base/dns/name.ts";
import type { DefaultBridgeSetting } from "../../base/model/name-choices.ts";
import { LOCAL_SOURCES } from "../../base/model/local-source.ts";
import { DNS_PORT, missingText, serverText } from "../../base/model/server-text.ts";
import { type ContainerFact, hasOwnStack } from "../../container/facts/fact.ts";
import type { ResolvConf } from "../../container/watch/resolv-conf.ts";
import { type Route, tlsAdvice } from "../../base/model/view.ts";
import { zoneOf } from "../../query/upstream/loop-guard.ts";
import { RCODE } from "../../base/dns/rcode.ts";
import type { QueryHistory } from "../../query/history/query-history.ts";
import { RESOLVER } from "../causes/client-causes.ts";
import {
  type KnownContainer,
  type StoppedContainer,
  runningContainer,
  stoppedContainer,
  KnownContainers,
} from "../causes/known-container.ts";
import { movesOf } from "../causes/container-causes.ts";
import { NOT_QUERIED, type Move, type RouteState, type Situation, isSingleLabel } from "../causes/situation.ts";
import { sharedOwner } from "./find-container.ts";
import type { ActiveResolver, ControlPorts } from "./ports.ts";

/** The query histories, as far as answers need them. */
interface AnswerHistories {
  readonly histories: (containerId: string) => Iterable<Pick<QueryHistory, "since">>;
}

interface LastAnswer {
  /** A time of the clock of `performance.now`. */
  readonly atMs: number;
  /** It came from an upstream server, or from the cache. */
  readonly isFromUpstream: boolean;
  /** The record type that was asked for. */
  readonly type: number;
}

export interface SituationPorts extends Pick<ControlPorts, "containers" | "inside"> {
  readonly resolver: () => Pick<ActiveResolver, "upstreamState" | "behaviour" | "rules">;
  readonly settingsFile?: ControlPorts["settingsFile"];
  readonly histories: AnswerHistories;
}

/** The parts of a situation that depend on the question. */
type NameSituation = Pick<
  Situation,
  | "name"
  | "typeName"
  | "failure"
  | "isFromUpstream"
  | "server"
  | "isDenied"
  | "isTruncated"
  | "held"
  | "otherFamily"
  | "unroutable"
  | "apart"
> & {
  /** Where it is not known which step gave the answer, the rules in force decide. */
  readonly isSpecial?: boolean;
};

/** Leaves out the stopped containers, which the engine has to be asked for. */
export async function knownRunning({ facts, defaultBridge }: ControlPorts["containers"]): Promise<KnownContainers> {
  return await KnownContainers.gather(runningContainers([...facts.values()], defaultBridge()));
}

function* runningContainers(facts: readonly ContainerFact[], setting: DefaultBridgeSetting): Generator<KnownContainer> {
  for (const fact of facts) yield runningContainer(fact, setting);
}

/** With what its Compose files say. */
function withFile(container: KnownContainer, ports: Pick<SituationPorts, "inside">): KnownContainer {
  const { compose } = container;
  return compose === undefined
    ? container
    : { ...container, project: () => ports.inside.composeFiles?.projectOf(compose) };
}

/** One that has started meanwhile is running. */
function* allContainers(
  facts: ReadonlyMap<string, ContainerFact>,
  stopped: readonly StoppedContainer[],
  setting: DefaultBridgeSetting,
  ports: Pick<SituationPorts, "inside">,
): Generator<KnownContainer> {
  const running = [...facts.values()];
  const ended = stopped.filter(({ id }) => !facts.has(id));
  for (const each of runningContainers(running, setting)) yield withFile(each, ports);
  for (const each of ended) yield withFile(stoppedContainer(each, setting), ports);
}

/** The addresses at which dns11 answers a container. */
export function resolversOf({ nameservers, ...fact }: ContainerFact): readonly string[] {
  if (hasOwnStack(fact)) return Object.values(LISTENER_ADDRESSES);
  return nameservers.kind === "captured" ? nameservers.servers : [RESOLVER];
}

/** The engine reports the path of its own file, which has the container's ID in it, or of the one that is mounted over it. */
export function mountedResolvConf(
  { id, networkMode, resolvConfPath = "" }: ContainerFact,
  owner: Pick<ContainerFact, "id">,
): string | undefined {
  if (resolvConfPath === "" || networkMode === "host") return undefined;
  const folders = resolvConfPath.split("/");
  return folders.includes(id) || folders.includes(owner.id) ? undefined : resolvConfPath;
}

export class Situations {
  readonly known: KnownContainers;
  readonly answers: LastAnswers;
  readonly #ports: SituationPorts;
  #sharers: ReadonlyMap<string, readonly string[]> | undefined;
  #moves: readonly Move[] | undefined;
  #places: NonNullable<RouteState["places"]> | undefined;
  readonly #resolvConfs = new Map<string, ResolvConf | undefined>();

  private constructor(ports: SituationPorts, known: KnownContainers) {
    this.#ports = ports;
    this.known = known;
    this.answers = new LastAnswers(ports.histories);
  }

  static async open(ports: SituationPorts): Promise<Situations> {
    const { facts, stopped: list, defaultBridge } = ports.containers;
    const all = allContainers(facts, await list(), defaultBridge(), ports);
    return new Situations(ports, await KnownContainers.gather(all));
  }

  /** `derive` again if it needed a Compose file that had to be read first. */
  async withFiles<T>(derive: () => T | Promise<T>): Promise<T> {
    const found = await derive();
    return (await this.#ports.inside.composeFiles?.learn()) === true ? await derive() : found;
  }

  of(fact: ContainerFact, owner: ContainerFact, question: NameSituation): Situation {
    const { upstreams } = this.#ports.containers.viewOf(owner);
    const type = parseType(question.typeName);
    const { route, rule } = this.#ports.resolver().rules.forwardingOf(question.name, type, upstreams) ?? {};
    const state = route && this.#stateOf(route, owner, question.name);
    const situation = {
      isSpecial: rule !== undefined && rule !== "local" && rule !== "refused",
      otherFamily: question.failure === undefined ? undefined : this.#answeredFamily(owner, question.name, type),
      ...question,
      client: this.known.byId(fact.id) ?? runningContainer(fact),
      owner: this.known.byId(owner.id) ?? runningContainer(owner),
      route: state,
      ownZone: this.#ownZoneOf(owner, question.name),
      refusal: this.#ports.containers.ofFeatures.refusal({ client: fact, owner, name: question.name, type }),
      moves: this.#movesSince(owner, bareName(question.name)),
      known: this.known,
      former: this.former,
      formerNames: this.#ports.containers.formerNames(),
      prefersOwnProject: this.prefersOwnProject,
      resolvers: [...resolversOf(owner), ...(this.#ports.containers.ofFeatures.status(owner.id).node?.captured ?? [])],
      mountedResolvConf: mountedResolvConf(fact, owner),
      resolvConf: this.resolvConfOf(fact, owner),
      nowMs: Date.now(),
    };
    return { ...situation, ofFeature: this.#causeOfFeature(situation, owner) };
  }

  /** That of a container that does not run: what servers it would ask is not known. */
  ofStopped(client: KnownContainer, question: Pick<Situation, "name" | "typeName">): Situation {
    return {
      ...question,
      client,
      owner: client,
      failure: NOT_QUERIED,
      isFromUpstream: false,
      isTruncated: false,
      isSpecial: false,
      route: undefined,
      moves: [],
      known: this.known,
      former: this.former,
      formerNames: this.#ports.containers.formerNames(),
      prefersOwnProject: this.prefersOwnProject,
      resolvers: [RESOLVER],
      resolvConf: undefined,
      nowMs: Date.now(),
    };
  }

  /** The names of running containers in the network namespace of another one. */
  sharersOf(ownerId: string): readonly string[] {
    this.#sharers ??= sharersIn(this.#ports.containers.facts);
    return this.#sharers.get(ownerId) ?? [];
  }

  get prefersOwnProject(): boolean {
    return this.#ports.resolver().behaviour.prefersOwnProject;
  }

  get former(): NonNullable<Situation["former"]> {
    return this.#ports.containers.formerAddresses();
  }

  get moves(): readonly Move[] {
    this.#moves ??= movesOf(this.#ports.containers.formerAddresses(), this.known);
    return this.#moves;
  }

  /** The other type of address, if the container got an answer for it. */
  #answeredFamily(owner: ContainerFact, name: string, type: number): Situation["otherFamily"] {
    const last = type === TYPE.A || type === TYPE.AAAA ? this.answers.of(owner.id).get(bareName(name)) : undefined;
    const isOther = last?.isFromUpstream === true && last.type === (type === TYPE.A ? TYPE.AAAA : TYPE.A);
    return isOther ? { type: type === TYPE.A ? "AAAA" : "A", failure: undefined } : undefined;
  }

  /** Containers with the name that have moved since the client last queried it. */
  #movesSince(owner: ContainerFact, name: string): Situation["moves"] {
    if (this.moves.length === 0) return [];
    const networks = new Set(owner.endpoints.map(({ networkName }) => networkName));
    const nowMs = performance.now();
    return this.moves
      .filter((move) => networks.has(move.networkName) && isNamed(move, name))
      .filter(({ atMs }) => (this.answers.of(owner.id).get(name)?.atMs ?? nowMs) < atMs)
      .map((move) => ({ ...move, agoMs: nowMs - move.atMs }));
  }

  resolvConfOf(fact: ContainerFact, owner: ContainerFact): ResolvConf | undefined {
    // Whatever servers the host's programs ask: dns11 captures what they ask these.
    if (fact.networkMode === "host") return undefined;
    const { inside } = this.#ports;
    if (!this.#resolvConfs.has(fact.id)) {
      this.#resolvConfs.set(fact.id, inside.resolvConfOf(fact) ?? inside.resolvConfOf(owner));
    }
    return this.#resolvConfs.get(fact.id);
  }

  /** Read at most once for a report. */
  #hostPlaces(): NonNullable<RouteState["places"]> {
    this.#places ??= (this.#ports.inside.hostServers?.() ?? []).map(({ address, file, line }) => ({
      server: serverText({ from: "host", address, port: DNS_PORT }),
      file,
      line,
    }));
    return this.#places;
  }

  #causeOfFeature(situation: Situation, client: ContainerFact): Situation["ofFeature"] {
    const { name, failure, route, held, isSpecial, ownZone, isFromUpstream } = situation;
    if (failure === undefined) return undefined;
    const isRefused = route?.isRefused === true;
    const isKept =
      held !== undefined ||
      isRefused ||
      (ownZone !== undefined && !isFromUpstream) ||
      (isSpecial && !isSingleLabel(name));
    const isAsked = failure !== NOT_QUERIED && !isKept && route?.isLocal === false && route.servers.length > 0;
    return this.#ports.containers.ofFeatures.cause({
      ...{ name, failure, client, isKept, isRefused },
      route: isAsked ? { domain: route.domain, by: route.by } : undefined,
    });
  }

  #ownZoneOf(owner: ContainerFact, name: string): Situation["ownZone"] {
    const bare = bareName(name);
    for (const { kind, zones = [] } of this.#ports.containers.viewOf(owner).names) {
      const zone = zones.find((each) => bare === each || bare.endsWith(`.${each}`));
      if (zone !== undefined) return { zone, source: LOCAL_SOURCES[kind].title };
    }
    return undefined;
  }

  #stateOf(route: Route, owner: ContainerFact, name: string): RouteState {
    const { containers, resolver } = this.#ports;
    const { upstreamState } = resolver();
    const now = upstreamState?.now() ?? 0;
    const client = containers.clients.of(owner.id);
    const zone = zoneOf(presentedLabels(name.toLowerCase()) ?? new Uint8Array(), 0);
    return {
      domain: presentation(route.suffix, 0, route.suffix.length),
      by: route.by,
      isLocal: route.isLocal,
      ...(route.isRefused === true && { isRefused: true }),
      missing: (route.missing ?? []).map((each) => missingText(each)),
      withheld: (route.withheld ?? []).map((server) => serverText(server)),
      servers: route.servers.map((server) => {
        const found = upstreamState?.pool.find(client, server);
        const health = found?.health;
        const isDown = health?.checkIsDown(now, client?.number) === true;
        return {
          server: serverText(server),
          ...(server.from === "docker" && { isDocker: true }),
          ...(server.isBackup === true && { isBackup: true }),
          isDown,
          reason: isDown ? health?.reason : undefined,
          isTcpBlocked: !isDown && found?.isTcpBlocked(now) === true,
          tls: found?.tls?.failure && { ...found.tls.failure, advice: tlsAdvice(found.tls.failure.kind, server) },
          failed: found?.failureOf(zone),
          leastMs: health?.leastMs,
        };
      }),
      places: this.#hostPlaces(),
      settingsFile: this.#ports.settingsFile?.() ?? undefined,
    };
  }
}

/** By the container that owns the namespace. */
function sharersIn(facts: ReadonlyMap<string, ContainerFact>): ReadonlyMap<string, readonly string[]> {
  const sharers = new Map<string, string[]>();
  for (const fact of facts.values()) {
    const owner = sharedOwner(facts, fact);
    if (owner === undefined) continue;
    const own = sharers.get(owner.id);
    if (own === undefined) sharers.set(owner.id, [fact.name]);
    else own.push(fact.name);
  }
  return sharers;
}

function isNamed({ names, networkName }: Move, name: string): boolean {
  return names.includes(name) || names.some((each) => `${each}.${networkName.toLowerCase()}` === name);
}

/**
 * When a container last got an address for a name, and from whom, out of the query histories. It is built for one
 * report, and reads the history of each container once.
 */
export class LastAnswers {
  readonly #histories: AnswerHistories;
  readonly #byContainer = new Map<string, ReadonlyMap<string, LastAnswer>>();

  constructor(histories: AnswerHistories) {
    this.#histories = histories;
  }

  /** The keys are names in lower case. */
  of(containerId: string): ReadonlyMap<string, LastAnswer> {
    let answers = this.#byContainer.get(containerId);
    if (answers === undefined) {
      answers = this.#read(containerId);
      this.#byContainer.set(containerId, answers);
    }
    return answers;
  }

  #read(containerId: string): ReadonlyMap<string, LastAnswer> {
    const answers = new Map<string, LastAnswer>();
    for (const history of this.#histories.histories(containerId)) {
      for (const { name, type, rcode, answers: count, atMs, result } of history.since(-1)) {
        if (name === null || rcode !== RCODE.NOERROR || count === 0) continue;
        answers.set(name.toLowerCase(), { atMs, isFromUpstream: result !== "local", type });
      }
    }
    return answers;
  }
}
