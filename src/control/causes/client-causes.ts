/**
 * ClientCauses: what is wrong with the one who asks, whatever it looks up: it queries other servers, or other names, it does not run for
 * long, or it is in the network namespace of a container that is no longer there.
 */
import type { Cause } from "../../api/causes.ts";
import { parseQuestion, type ParsedQuestion } from "../../base/model/name-query.ts";
import { isSameAddress } from "../../base/model/address.ts";
import { commandOf } from "../../base/lib/text.ts";
import { ageText } from "../../base/lib/quantity.ts";
import { type ContainerFact, sharedWith } from "../../container/facts/fact.ts";
import { recreateCommand, serviceChange } from "./fixes.ts";
import type { EndedState, KnownContainer, KnownContainers } from "./known-container.ts";
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

export function notServedCause({ name }: ContainerFact, reason: string): Cause {
  return cause("not-served", `dns11 does not serve "${name}": ${reason}`, { fix: commandOf("dns11", "doctor", name) });
}

const SHORT_ID_LENGTH = 12;

/** Why programs in a container get no answer at all; undefined if nothing is known to be in their way. */
export function clientCause(
  container: KnownContainer,
  known: Pick<KnownContainers, "byId" | "all">,
  nowMs: number,
): Cause | undefined {
  const crashing = crashCause(undefined, container, nowMs);
  if (crashing !== undefined) return crashing;
  const { ended, name } = container;
  if (ended !== undefined) return endedCause(container, ended, `container ${name} ${endedText(ended, nowMs)}`);
  return sharingCause(container, known);
}

/**
 * A container shares the namespace that another one had when this one was started. If that one is made again or started again, it gets
 * a new one, and this one stays in the old one, in which Docker has removed everything.
 */
function sharingCause(container: KnownContainer, known: Pick<KnownContainers, "byId" | "all">): Cause | undefined {
  const { name, networkMode = "", startedMs = 0 } = container;
  const word = sharedWith(networkMode);
  if (word === undefined) return undefined;
  const other = known.byId(word) ?? known.all.find((each) => each.name === word || each.id.startsWith(word));
  const what = `container ${name} uses the network namespace of `;
  const then = "so nothing resolves there, and it has no network";
  const parts = { about: name, isBreaking: true };
  if (other === undefined) {
    const fix = recreateCommand(container) ?? null;
    const id = word.slice(0, SHORT_ID_LENGTH);
    const sentence = `${what}container ${id}, which is gone: it was removed or made again, and ${name} was not; ${then}`;
    if (fix !== null) return cause("namespace-gone", sentence, { ...parts, fix });
    return cause("namespace-gone", sentence, {
      ...parts,
      advice: `create ${name} again, with the container that is there now`,
    });
  }
  const restart = commandOf("docker", "restart", name);
  if (other.ended !== undefined) {
    const fix = `${commandOf("docker", "start", other.name)} && ${restart}`;
    return cause("namespace-gone", `${what}${other.name}, which does not run; ${then}`, { ...parts, fix });
  }
  if (startedMs === 0 || other.startedMs === undefined || startedMs >= other.startedMs) return undefined;
  const sentence = `${what}${other.name} as it was before that was started again; ${then}`;
  return cause("namespace-gone", sentence, { ...parts, fix: restart });
}

/** One end may be an accident. */
const RESTARTS_MIN = 2;
/** Docker waits up to a minute between two starts; one that stays up for longer has recovered. */
const UP_MS = 60_000;

/**
 * A container that ends and is started again, over and over. Between two ends its name resolves, and nothing
 * listens there, so the cause is the same in both states.
 * Undefined for a container that is not in such a loop. `name` is what was looked up, if something was.
 */
export function crashCause(name: string | undefined, container: KnownContainer, nowMs: number): Cause | undefined {
  const how = container.ended === undefined ? upText(container, nowMs) : waitingText(container, nowMs);
  if (how === undefined) return undefined;
  const who = name === undefined ? `container ${container.name}` : `"${name}" is container ${container.name}, which`;
  const rest = name === undefined ? "" : "; the name resolves while it runs";
  return cause("crash-loop", `${who} ends and is started again, over and over: ${how}`, {
    fix: logCommand(container.name),
    advice: `its log says why it ends${rest}`,
    isBreaking: true,
  });
}

function upText({ restarts = 0, startedMs = 0 }: KnownContainer, nowMs: number): string | undefined {
  const upMs = nowMs - startedMs;
  // Less than nothing: the clock was set back since, and it is not known how long it has run.
  if (restarts < RESTARTS_MIN || startedMs === 0 || upMs < 0 || upMs > UP_MS) return undefined;
  return `${restarts} times so far, the last time ${ageText(upMs)} ago`;
}

function waitingText({ ended, restarts }: KnownContainer, nowMs: number): string | undefined {
  if (ended?.state !== "restarting") return undefined;
  const { exitCode, atMs } = ended;
  const times = restarts === undefined ? "" : `${restarts} times so far, `;
  const code = exitCode === undefined ? "" : ` with code ${exitCode}`;
  return `${times}it has ended${code}${atMs === undefined ? "" : `, ${ageText(nowMs - atMs)} ago`}, and Docker waits to start it`;
}

const LOG_LINES = 20;
/** Exit codes of SIGINT, SIGKILL and SIGTERM: it was stopped. */
const STOPPED_CODES = new Set([130, 137, 143]);

/** A container that does not run. One that has ended with an error ends again if it is started again, so its log comes first. */
export function endedCause({ name }: KnownContainer, { state, exitCode = 0 }: EndedState, sentence: string): Cause {
  const start = commandOf("docker", "start", name);
  const parts = { about: name, isBreaking: true };
  if (state !== "exited" || exitCode === 0 || STOPPED_CODES.has(exitCode))
    return cause("not-running", sentence, { ...parts, fix: start });
  const advice = `its log says why it ended with code ${exitCode}; when that is mended, start it: ${start}`;
  return cause("not-running", sentence, { ...parts, fix: logCommand(name), advice });
}

function logCommand(name: string): string {
  return commandOf("docker", "logs", "--tail", String(LOG_LINES), name);
}

export function endedText({ state, exitCode, atMs }: EndedState, nowMs: number): string {
  if (state === "created") return "was created but never started";
  const code = exitCode === undefined || state !== "exited" ? "" : ` with code ${exitCode}`;
  const ago = atMs === undefined ? "" : `, ${ageText(nowMs - atMs)} ago`;
  return state === "exited"
    ? `exited${code}${ago}`
    : `is not running (${state})${atMs === undefined ? "" : `; it ended${ago.slice(1)}`}`;
}
