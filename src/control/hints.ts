/**
 * Hints: likely reasons for an unexpected answer. They are guesses in addition to the explanation: each states a fact, and
 * the reader decides whether it is the cause.
 */
import { type ContainerFact, isUserDefined } from "../container/registry/fact.ts";
import type { ResolvConf } from "../container/watch/resolv-conf.ts";
import { nearest } from "../base/lib/nearest.ts";
import type { ParsedQuestion } from "../base/model/question-text.ts";
import type { ReplyText } from "../base/model/reply-text.ts";
import { ndotsOf, searchNames } from "./search-list.ts";

export interface StoppedContainer {
  readonly name: string;
  readonly state: string;
  readonly networks: readonly string[];
}

export interface HintContext {
  readonly fact: ContainerFact;
  /** The container whose network namespace it uses. */
  readonly owner: ContainerFact;
  readonly question: ParsedQuestion;
  readonly reply: ReplyText | undefined;
  /** The running containers. */
  readonly containers: readonly ContainerFact[];
  readonly stopped: readonly StoppedContainer[];
  readonly resolvConf: Pick<ResolvConf, "nameservers" | "search" | "options"> | undefined;
}

const RESOLVER = "127.0.0.11";
const HINTS_PER_KIND_MAX = 5;

export function hintsFor(context: HintContext): string[] {
  const { reply } = context;
  const isAnswered = reply !== undefined && reply.answers.length > 0;
  return [
    ...(isAnswered
      ? pausedHints(context)
      : [...otherNetworkHints(context), ...stoppedHints(context), ...similarHints(context)]),
    ...(reply?.isTruncated === true ? ["the answer is truncated for UDP; clients retry over TCP"] : []),
    ...resolverHints(context),
    ...searchHints(context, isAnswered),
  ];
}

/** The name exists on a network that the container is not on. */
function otherNetworkHints({ owner, question, containers }: HintContext): string[] {
  const queried = question.name.toLowerCase();
  const own = new Set(owner.endpoints.map(({ networkId }) => networkId));
  const hints = containers.flatMap(({ name, endpoints }) => {
    const hits = endpoints.filter(
      ({ networkId, networkName, names }) =>
        !own.has(networkId) && isUserDefined(networkName) && includesName(queried, names, networkName),
    );
    const hasNoName =
      name.toLowerCase() === queried && !endpoints.some(({ networkName }) => isUserDefined(networkName));
    return [
      ...hits.map(
        ({ networkName }) =>
          `"${question.name}" is container "${name}" on network "${networkName}", but "${owner.name}" is not on that ` +
          `network; connect it with: docker network connect ${networkName} ${owner.name}`,
      ),
      ...(hasNoName
        ? [`container "${name}" is running, but it has no DNS name, because it is on no user-defined network`]
        : []),
    ];
  });
  return hints.slice(0, HINTS_PER_KIND_MAX);
}

function stoppedHints({ question, stopped }: HintContext): string[] {
  const queried = question.name.toLowerCase();
  return stopped
    .filter(({ name, networks }) => includesName(queried, [name, ...networks.map((network) => `${name}.${network}`)]))
    .map(({ name, state }) => `container "${name}" is not running (${state}); its names resolve only while it runs`)
    .slice(0, HINTS_PER_KIND_MAX);
}

function similarHints({ owner, question, containers }: HintContext): string[] {
  if (question.typeName === "PTR") return [];
  const neighbours = neighbourNames(owner, containers);
  const [first = ""] = question.name.toLowerCase().split(".");
  if (neighbours.includes(question.name.toLowerCase()) || neighbours.includes(first)) return [];
  const suggestion = nearest(question.name.toLowerCase(), neighbours);
  return suggestion === undefined ? [] : [`there is a similar name on its networks: "${suggestion}"`];
}

function pausedHints({ owner, question, containers }: HintContext): string[] {
  const queried = question.name.toLowerCase();
  const own = new Set(owner.endpoints.map(({ networkId }) => networkId));
  return containers
    .filter(
      ({ isPaused, endpoints }) =>
        isPaused &&
        endpoints.some((each) => own.has(each.networkId) && includesName(queried, each.names, each.networkName)),
    )
    .map(({ name }) => `container "${name}" is paused: its name resolves, but it does not respond`);
}

function resolverHints({ fact, resolvConf }: HintContext): string[] {
  if (resolvConf === undefined || resolvConf.nameservers.includes(RESOLVER)) return [];
  const named = resolvConf.nameservers.join(", ") || "no nameserver";
  return [`resolv.conf of "${fact.name}" lists ${named} instead of ${RESOLVER}, so its programs do not use dns11`];
}

/** With a search list, programs query other names than the one explained here. */
function searchHints({ fact, question, resolvConf }: HintContext, isAnswered: boolean): string[] {
  if (resolvConf === undefined || resolvConf.search.length === 0) return [];
  const names = searchNames(question, resolvConf).map(({ name }) => name);
  const position = names.indexOf(question.name);
  const ndots = ndotsOf(resolvConf.options);
  const listed = (list: readonly string[]): string => list.map((name) => `"${name}"`).join(", ");
  if (position > 0) {
    return [
      `programs in "${fact.name}" query ${listed(names.slice(0, position))} before "${question.name}", because its resolv.conf ` +
        `has a search list and ndots:${ndots}; a trailing dot prevents that`,
    ];
  }
  if (isAnswered || names.length < 2) return [];
  return [
    `programs in "${fact.name}" then query ${listed(names.slice(1))}, because of the search list in its resolv.conf (not with musl)`,
  ];
}

function neighbourNames(owner: ContainerFact, containers: readonly ContainerFact[]): string[] {
  const own = new Set(owner.endpoints.map(({ networkId }) => networkId));
  const names = containers.flatMap(({ endpoints }) =>
    endpoints.filter(({ networkId }) => own.has(networkId)).flatMap((each) => each.names),
  );
  return [...new Set(names.map((name) => name.toLowerCase()))];
}

/** With or without the name of the network as a suffix. */
function includesName(queried: string, names: readonly string[], network?: string): boolean {
  return names.some((name) => {
    const lower = name.toLowerCase();
    return lower === queried || (network !== undefined && `${lower}.${network.toLowerCase()}` === queried);
  });
}
