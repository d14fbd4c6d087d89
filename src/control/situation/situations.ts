/**
 * Situations: collects what causes are derived from, for one report: all containers, the upstream servers of a name and
 * their state, and the resolv.conf of a container. It sends no query.
 */
import { LISTENER_ADDRESSES } from "../../base/model/listener-addresses.ts";
import { hasOwnStack } from "../../container/facts/runtime.ts";
import { parseType } from "../../base/dns/record-type.ts";
import { bareName, presentation } from "../../base/dns/name.ts";
import type { DefaultBridgeSetting } from "../../base/model/name-choices.ts";
import { LOCAL_SOURCES } from "../../base/model/local-source.ts";
import { DNS_PORT, missingText, serverText } from "../../base/model/server-text.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import type { ResolvConf } from "../../container/watch/resolv-conf.ts";
import type { Route } from "../../base/model/view.ts";
import { RESOLVER } from "../causes/client-causes.ts";
import {
  type KnownContainer,
  type StoppedContainer,
  runningContainer,
  stoppedContainer,
} from "../causes/known-container.ts";
import { KnownContainers } from "../causes/known-containers.ts";
import { movesOf } from "../causes/moves.ts";
import type { Move, RouteState, Situation } from "../causes/situation.ts";
import { type AnswerHistories, LastAnswers } from "./last-answers.ts";
import { refusalNow } from "./policy-refusal.ts";
import type { ActiveResolver, ControlPorts } from "./ports.ts";

export interface SituationPorts extends Pick<ControlPorts, "containers" | "inside"> {
  readonly policies?: ControlPorts["policies"];
  readonly resolver: () => Pick<ActiveResolver, "upstreamState" | "behaviour" | "rules">;
  readonly settingsFile?: ControlPorts["settingsFile"];
  readonly histories: AnswerHistories;
}

/** The parts of a situation that depend on the question. */
export type NameSituation = Pick<
  Situation,
  "name" | "typeName" | "failure" | "isFromUpstream" | "isDenied" | "isTruncated" | "held"
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

/** One that has started meanwhile is running. */
function* allContainers(
  facts: ReadonlyMap<string, ContainerFact>,
  stopped: readonly StoppedContainer[],
  setting: DefaultBridgeSetting,
): Generator<KnownContainer> {
  const running = [...facts.values()];
  const ended = stopped.filter(({ id }) => !facts.has(id));
  yield* runningContainers(running, setting);
  for (const each of ended) yield stoppedContainer(each, setting);
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
    const all = allContainers(facts, await list(), defaultBridge());
    return new Situations(ports, await KnownContainers.gather(all));
  }

  of(fact: ContainerFact, owner: ContainerFact, question: NameSituation): Situation {
    const { upstreams } = this.#ports.containers.viewOf(owner);
    const type = parseType(question.typeName);
    const { route, rule } = this.#ports.resolver().rules.forwardingOf(question.name, type, upstreams) ?? {};
    return {
      isSpecial: rule !== undefined && rule !== "local" && rule !== "refused",
      ...question,
      client: this.known.byId(fact.id) ?? runningContainer(fact),
      owner: this.known.byId(owner.id) ?? runningContainer(owner),
      route: route && this.#stateOf(route, owner),
      ownZone: this.#ownZoneOf(owner, question.name),
      policy: refusalNow(this.#ports.policies, owner.id, question.name, type),
      moves: this.#movesSince(owner, bareName(question.name)),
      known: this.known,
      former: this.former,
      swarmService: this.#ports.containers.swarm?.serviceCalled(owner, question.name),
      swarmAlone: this.#ports.containers.swarm?.aloneOn(owner),
      prefersOwnProject: this.prefersOwnProject,
      resolvers: [...resolversOf(owner), ...(this.#ports.containers.nodeReportOf(owner)?.captured ?? [])],
      mountedResolvConf: mountedResolvConf(fact, owner),
      resolvConf: this.resolvConfOf(fact, owner),
      nowMs: Date.now(),
    };
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

  #ownZoneOf(owner: ContainerFact, name: string): Situation["ownZone"] {
    const bare = bareName(name);
    for (const { kind, zones = [] } of this.#ports.containers.viewOf(owner).names) {
      const zone = zones.find((each) => bare === each || bare.endsWith(`.${each}`));
      if (zone !== undefined) return { zone, source: LOCAL_SOURCES[kind].title };
    }
    return undefined;
  }

  #stateOf(route: Route, owner: ContainerFact): RouteState {
    const { containers, resolver } = this.#ports;
    const { upstreamState } = resolver();
    const now = upstreamState?.now() ?? 0;
    const client = containers.clients.of(owner.id);
    return {
      domain: presentation(route.suffix, 0, route.suffix.length),
      by: route.by,
      isLocal: route.isLocal,
      ...(route.isRefused === true && { isRefused: true }),
      missing: (route.missing ?? []).map((each) => missingText(each)),
      withheld: (route.withheld ?? []).map((server) => serverText(server)),
      servers: route.servers.map((server) => {
        const health = upstreamState?.pool.find(client, server)?.health;
        const isDown = health?.checkIsDown(now, client?.number) === true;
        const isTcpBlocked = !isDown && upstreamState?.pool.find(client, server)?.isTcpBlocked(now) === true;
        return { server: serverText(server), isDown, reason: isDown ? health?.reason : undefined, isTcpBlocked };
      }),
      places: this.#hostPlaces(),
      settingsFile: this.#ports.settingsFile?.() ?? undefined,
    };
  }
}

function isNamed({ names, networkName }: Move, name: string): boolean {
  return names.includes(name) || names.some((each) => `${each}.${networkName.toLowerCase()}` === name);
}
