/**
 * ClientCauses: what programs in the container query instead of, or besides, the name in question: other servers, or other
 * names.
 */
import type { Cause } from "../../api/causes.ts";
import { parseQuestion, type ParsedQuestion } from "../../base/model/name-query.ts";
import { isSameAddress } from "../../base/model/address.ts";
import { commandOf } from "../../base/lib/text.ts";
import { serviceChange } from "./fixes.ts";
import type { KnownContainer } from "./known-container.ts";
import { type Situation, cause } from "./situation.ts";
import { LIMITS } from "../../base/limits.ts";
import type { ResolvConf } from "../../container/watch/resolv-conf.ts";

/** dns11 answers a container with Docker's resolver there. */
export const RESOLVER = "127.0.0.11";

export function resolverCauses({
  client,
  mountedResolvConf: path,
  resolvConf,
  resolvers,
}: Pick<Situation, "client" | "mountedResolvConf" | "resolvConf" | "resolvers">): Cause[] {
  if (path !== undefined) return [mountCause(client, path, resolvers)];
  if (resolvConf === undefined) return [];
  if (resolvConf.nameservers.some((server) => resolvers.some((ours) => isSameAddress(server, ours)))) return [];
  const named = resolvConf.nameservers.join(", ") || "no nameserver";
  const sentence = `resolv.conf of ${client.name} lists ${named} instead of ${resolvers.join(", ")}, so its programs do not use dns11`;
  return [
    cause("resolv-conf", sentence, {
      fix: commandOf("docker", "restart", client.name),
      isBreaking: true,
    }),
  ];
}

/** What the file says is not known, and a restart does not remove a mount. */
function mountCause(client: KnownContainer, path: string, resolvers: readonly string[]): Cause {
  const sentence =
    `${path} is mounted over /etc/resolv.conf of ${client.name}: its programs use dns11 only if it lists ` +
    resolvers.join(", ");
  const lastingFix = serviceChange(client, "volumes", "remove the mount over /etc/resolv.conf");
  if (lastingFix !== null) return cause("resolv-conf", sentence, { lastingFix });
  return cause("resolv-conf", sentence, { advice: `create ${client.name} again without that mount` });
}

/** An upstream server answers the first name of a search list, so programs never get to the container's. */
export function searchShadowCause(client: KnownContainer, name: string, completed: string): Cause {
  const sentence =
    `programs in ${client.name} query "${completed}" before "${name}", because of its search list and ndots, and an upstream ` +
    `server has an answer: usually a wildcard`;
  return cause("search-list", sentence, {
    advice: `a trailing dot prevents that: "${name}."`,
    lastingFix: serviceChange(client, "dns_opt", 'add "ndots:0", or remove the domain from dns_search'),
    isBreaking: true,
  });
}

/** With a search list, programs query other names than this one. */
export function searchCauses({ client, name, typeName, resolvConf, failure }: Situation): Cause[] {
  if (resolvConf === undefined || resolvConf.search.length === 0) return [];
  const question = questionOf(name, typeName);
  if (question === undefined) return [];
  const names = searchNames(question, resolvConf).map((each) => each.name);
  const position = names.indexOf(question.name);
  const listed = (list: readonly string[]): string => list.map((each) => `"${each}"`).join(", ");
  if (position > 0) {
    const ndots = ndotsOf(resolvConf.options);
    const sentence =
      `programs in ${client.name} query ${listed(names.slice(0, position))} before "${question.name}", because its resolv.conf ` +
      `has a search list and ndots:${ndots}; a trailing dot prevents that`;
    return [cause("search-list", sentence)];
  }
  if (failure === undefined || names.length < 2) return [];
  const sentence = `programs in ${client.name} then query ${listed(names.slice(1))}, because of the search list in its resolv.conf (not with musl)`;
  return [cause("search-list", sentence)];
}

function questionOf(name: string, typeName: string): ParsedQuestion | undefined {
  try {
    return parseQuestion(name, typeName);
  } catch {
    // A name that was queried need not be one that can be typed.
    return undefined;
  }
}

/**
 * The names that the C library in a container tries for a name, by the search list and ndots of its resolv.conf.
 * dns11 applies neither when it answers; causes mention them, and a lookup applies them on request.
 * The names that a program queries, in the order of the C library.
 */
export function searchNames(
  question: ParsedQuestion,
  { search, options }: Pick<ResolvConf, "search" | "options">,
): ParsedQuestion[] {
  if (question.isAbsolute || question.labels.length === 0) return [question];
  const completed = search.slice(0, LIMITS.lookupNames - 1).flatMap((domain) => {
    try {
      return [parseQuestion(`${question.name}.${domain.replace(/\.$/, "")}`, question.typeName)];
    } catch {
      // A domain that results in an invalid name is skipped.
      return [];
    }
  });
  const dots = question.name.split(".").length - 1;
  return dots >= ndotsOf(options) ? [question, ...completed] : [...completed, question];
}

/** The default is 1, as in resolv.conf(5). */
export function ndotsOf(options: readonly string[]): number {
  const value = options.map((option) => /^ndots:(\d+)$/.exec(option)?.[1]).findLast((number) => number !== undefined);
  return value === undefined ? 1 : Math.min(15, Number(value));
}
