/**
 * Hints: what somebody who wonders about an answer is likely to have overlooked. They are guesses beside the explanation
 * and no part of it: each says what is the case, and leaves it to the reader whether that is the cause.
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
  /** Whose namespace it is in. */
  readonly owner: ContainerFact;
  readonly question: ParsedQuestion;
  readonly reply: ReplyText | undefined;
  /** Those that run. */
  readonly containers: readonly ContainerFact[];
  readonly stopped: readonly StoppedContainer[];
  readonly resolvConf: Pick<ResolvConf, "nameservers" | "search" | "options"> | undefined;
}

const RESOLVER = "127.0.0.11";
/** More of one kind than that helps nobody. */
const HINTS_PER_KIND_MAX = 5;

export function hintsFor(parts: HintContext): string[] {
  const { reply } = parts;
  const isAnswered = reply !== undefined && reply.answers.length > 0;
  return [
    ...(isAnswered
      ? pausedHints(parts)
      : [...otherNetworkHints(parts), ...stoppedHints(parts), ...similarHints(parts)]),
    ...(reply?.isTruncated === true ? ["the answer is truncated for UDP; clients ask again by TCP"] : []),
    ...resolverHints(parts),
    ...searchHints(parts, isAnswered),
  ];
}

/** Known, but not from here. */
function otherNetworkHints({ owner, question, containers }: HintContext): string[] {
  const wanted = question.name.toLowerCase();
  const own = new Set(owner.endpoints.map(({ networkId }) => networkId));
  const hints = containers.flatMap(({ name, endpoints }) => {
    const hits = endpoints.filter(
      ({ networkId, networkName, names }) =>
        !own.has(networkId) && isUserDefined(networkName) && includesName(wanted, names, networkName),
    );
    const isNowhere = name.toLowerCase() === wanted && !endpoints.some(({ networkName }) => isUserDefined(networkName));
    return [
      ...hits.map(
        ({ networkName }) =>
          `"${question.name}" is a name on network "${networkName}" (container "${name}"), which "${owner.name}" is not ` +
          `on; docker network connect ${networkName} ${owner.name} would change that`,
      ),
      ...(isNowhere ? [`container "${name}" runs, but on no user-defined network, so it has no name anywhere`] : []),
    ];
  });
  return hints.slice(0, HINTS_PER_KIND_MAX);
}

function stoppedHints({ question, stopped }: HintContext): string[] {
  const wanted = question.name.toLowerCase();
  return stopped
    .filter(({ name, networks }) => includesName(wanted, [name, ...networks.map((network) => `${name}.${network}`)]))
    .map(({ name, state }) => `container "${name}" does not run (${state}); it has names only while it does`)
    .slice(0, HINTS_PER_KIND_MAX);
}

function similarHints({ owner, question, containers }: HintContext): string[] {
  if (question.typeName === "PTR") return [];
  const known = neighbourNames(owner, containers);
  const [first = ""] = question.name.toLowerCase().split(".");
  if (known.includes(question.name.toLowerCase()) || known.includes(first)) return [];
  const meant = nearest(question.name.toLowerCase(), known);
  return meant === undefined ? [] : [`a similar name is known on its networks: "${meant}"`];
}

function pausedHints({ owner, question, containers }: HintContext): string[] {
  const wanted = question.name.toLowerCase();
  const own = new Set(owner.endpoints.map(({ networkId }) => networkId));
  return containers
    .filter(
      ({ isPaused, endpoints }) =>
        isPaused &&
        endpoints.some((each) => own.has(each.networkId) && includesName(wanted, each.names, each.networkName)),
    )
    .map(({ name }) => `container "${name}" is paused: its name is known, and nobody answers at its address`);
}

function resolverHints({ fact, resolvConf }: HintContext): string[] {
  if (resolvConf === undefined || resolvConf.nameservers.includes(RESOLVER)) return [];
  const named = resolvConf.nameservers.join(", ") || "nobody";
  return [`the resolv.conf of "${fact.name}" names ${named}, not ${RESOLVER}: programs in there do not ask dns11`];
}

/** What programs ask for is not what was asked here, where a search list completes it. */
function searchHints({ fact, question, resolvConf }: HintContext, isAnswered: boolean): string[] {
  if (resolvConf === undefined || resolvConf.search.length === 0) return [];
  const names = searchNames(question, resolvConf).map(({ name }) => name);
  const place = names.indexOf(question.name);
  const ndots = ndotsOf(resolvConf.options);
  const told = (list: readonly string[]): string => list.map((name) => `"${name}"`).join(", ");
  if (place > 0) {
    return [
      `programs in "${fact.name}" ask for ${told(names.slice(0, place))} before "${question.name}": its resolv.conf has a ` +
        `search list and ndots:${ndots}; a dot at the end of a name avoids that`,
    ];
  }
  if (isAnswered || names.length < 2) return [];
  return [
    `programs in "${fact.name}" then ask for ${told(names.slice(1))}, by the search list of its resolv.conf (musl's do not)`,
  ];
}

function neighbourNames(owner: ContainerFact, containers: readonly ContainerFact[]): string[] {
  const own = new Set(owner.endpoints.map(({ networkId }) => networkId));
  const names = containers.flatMap(({ endpoints }) =>
    endpoints.filter(({ networkId }) => own.has(networkId)).flatMap((each) => each.names),
  );
  return [...new Set(names.map((name) => name.toLowerCase()))];
}

/** Alone, or with the name of the network. */
function includesName(wanted: string, names: readonly string[], network?: string): boolean {
  return names.some((name) => {
    const lower = name.toLowerCase();
    return lower === wanted || (network !== undefined && `${lower}.${network.toLowerCase()}` === wanted);
  });
}
