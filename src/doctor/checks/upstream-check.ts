/**
 * Upstream check: queries each upstream of a container over UDP and TCP, from the namespace in which dns11 or Docker queries it;
 * and looks for forwarding loops.
 */
import { randomBytes, randomInt } from "node:crypto";

import { queryOf } from "../../base/dns/query.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import { isSameAddress } from "../../base/model/address.ts";
import { type Finding, type FindingState, finding } from "../../base/model/finding.ts";
import { labelsOf, nameAnswer, nameQuery, replyCode, rootQuery } from "../../base/model/name-query.ts";
import { LIMITS } from "../../base/limits.ts";
import { serverText } from "../../base/model/server-text.ts";
import { type Server, type TlsFailure, tlsAdvice } from "../../base/model/view.ts";
import { DOCKER_RESOLVER } from "../../container/capture/capture.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import { type ExchangeResult, exchange } from "../../container/rules/exchange.ts";
import { installedMark } from "../../container/rules/installed-rules.ts";
import type { NetNamespace, Within } from "../../kernel/net-namespace.ts";
import { StreamBudget } from "../../query/client/stream-budget.ts";
import { type AttemptResult, queryTcp } from "../../query/forward/attempt.ts";
import { TlsMemory } from "../../query/upstream/tls-connection.ts";
import type { TlsTrust } from "../../query/upstream/tls-trust.ts";
import { type Announce, REPLY_TIMEOUT_MS } from "../../container/rules/own-name.ts";
import { ADD_A_SERVER } from "./upstream-remedy.ts";

/** A container with its upstream servers. */
export interface ContainerServers {
  readonly fact: ContainerFact;
  readonly servers: readonly Server[];
}

/** A verb phrase about one server, and about several. */
type OneOrMany = readonly [one: string, many: string];

/** Queries one server, from inside its namespace. */
export async function queryServer(
  { within, memory }: Pick<NetNamespace, "within" | "memory">,
  { from, address, port }: Server,
): Promise<readonly ExchangeResult[]> {
  const mark = from === "docker" ? within(() => installedMark(memory)) : undefined;
  return await exchange(within, { destination: address, port, message: rootQuery, mark, waitMs: REPLY_TIMEOUT_MS });
}

/** Whether the first of these servers that replies knows a domain. */
export async function knowsDomain(within: Within, servers: readonly Server[], domain: string): Promise<boolean> {
  const labels = labelsOf(domain);
  if (labels.length === 0) return false;
  const message = (id: number): Buffer => queryOf({ labels, type: TYPE.SOA, id });
  for (const { address, port } of servers) {
    const request = { destination: address, port, message, protocols: ["udp"], waitMs: REPLY_TIMEOUT_MS } as const;
    const [leg] = await exchange(within, request).catch(() => []);
    const code = leg?.reply === undefined ? undefined : replyCode(leg.reply, leg.id);
    if (code !== undefined) return code === "NOERROR";
  }
  return false;
}

/** `remedy`: where the server is set. */
export function upstreamFinding(server: Server, legs: readonly ExchangeResult[], remedy: string): Finding {
  const replies = legs.map((leg) => ({
    leg,
    code: leg.reply === undefined ? undefined : replyCode(leg.reply, leg.id),
  }));
  const detail = `${serverText(server)}: ${replies.map(({ leg, code }) => legText(leg, code)).join(", ")}`;
  const [udp, tcp] = replies;
  const report = (state: FindingState, [one, many]: OneOrMany, what = remedy): Finding => {
    const titles = { title: `upstream {} ${one}`, titleOfMany: `upstreams {} ${many}` };
    return {
      ...finding("upstream", state, detail, what),
      shared: { key: one, ...titles, about: serverText(server) },
    };
  };
  if (udp?.code === undefined) return report("problem", failureText(udp?.leg));
  if (tcp?.code === undefined) {
    const allow = "Allow TCP port 53 to this server; replies that do not fit into a UDP packet need it.";
    const [one, many] = failureText(tcp?.leg);
    return report("warning", [`${one} over TCP`, `${many} over TCP`], allow);
  }
  if (udp.code === "SERVFAIL" || udp.code === "REFUSED") {
    return report("warning", [`answers ${udp.code}`, `answer ${udp.code}`]);
  }
  return finding("upstream", "ok", detail);
}

/** What a server by TLS answered, or why it did not. */
export interface TlsAnswer {
  readonly code: string | undefined;
  readonly tookMs: number;
  /** Without an answer. */
  readonly reason: string;
  /** Why there is no connection that could be used. */
  readonly failure: TlsFailure | undefined;
}

/** Takes ownership of the socket, which may still be connecting. */
export async function queryByTls(fd: number, server: Server, trust: TlsTrust): Promise<TlsAnswer> {
  const memory = new TlsMemory();
  const id = randomInt(0x10000);
  const startMs = performance.now();
  const tls = { target: { server, trust, handshakes: new StreamBudget(0), memory }, budget: new StreamBudget(0) };
  const outcome = await new Promise<AttemptResult>((resolve) => {
    queryTcp(fd, rootQuery(id), REPLY_TIMEOUT_MS + LIMITS.tls.handshakeMs, resolve, tls);
  });
  const tookMs = performance.now() - startMs;
  const code = outcome.kind === "reply" ? replyCode(outcome.reply.message, id) : undefined;
  const reason = outcome.kind === "failed" ? outcome.reason : "invalid reply";
  return { code, tookMs, reason, failure: memory.failure };
}

/** `remedy`: where the server is set. */
export function tlsFinding(server: Server, { code, tookMs, reason, failure }: TlsAnswer, remedy: string): Finding {
  const text = serverText(server);
  const report = (state: FindingState, detail: string, [one, many]: OneOrMany, what: string): Finding => {
    const titles = { title: `upstream {} ${one}`, titleOfMany: `upstreams {} ${many}` };
    return { ...finding("upstream", state, `${text}: ${detail}`, what), shared: { key: one, ...titles, about: text } };
  };
  if (failure !== undefined) {
    const how: OneOrMany = [`cannot be asked by TLS: ${failure.text}`, `cannot be asked by TLS: ${failure.text}`];
    const advice = tlsAdvice(failure.kind, server);
    return report("problem", `TLS: ${failure.text}`, how, `${advice.slice(0, 1).toUpperCase()}${advice.slice(1)}.`);
  }
  if (code === undefined)
    return report("problem", `tls: ${reason}`, ["does not answer by TLS", "do not answer by TLS"], remedy);
  const detail = `tls ${code} in ${tookMs.toFixed(1)} ms`;
  if (code === "SERVFAIL" || code === "REFUSED")
    return report("warning", detail, [`answers ${code}`, `answer ${code}`], remedy);
  return finding("upstream", "ok", `${text}: ${detail}`);
}

/** What the checks say if Docker's resolver fails where a server of the host answers: the one cause of it. */
export function withDockerBroken(servers: readonly Server[], findings: readonly Finding[]): Finding[] {
  const isWell = findings.some(({ state }, at) => servers[at]?.from === "host" && state === "ok");
  return findings.map((each, at) => {
    if (!isWell || servers[at]?.from !== "docker" || !isDockerFailure(each)) return each;
    const title = "Docker's resolver is broken";
    return {
      ...finding("upstream", "problem", each.detail, DOCKER_BROKEN),
      shared: { key: title, title: `${title} ({})`, titleOfMany: `${title} ({})`, about: each.detail },
    };
  });
}

/** It fails at once. Whether silence is its own, or that of the servers that it asks, is not known. */
function isDockerFailure({ state, detail }: Finding): boolean {
  return state !== "ok" && /udp (?:SERVFAIL|REFUSED|ECONNREFUSED)/.test(detail);
}

const DOCKER_BROKEN =
  "Start dockerd again: systemctl restart docker. Docker 29.1.0 answers SERVFAIL for every name outside: update it.";

/** Why a server gave no valid reply. An empty one is a closed connection. */
function failureText(leg: ExchangeResult | undefined): OneOrMany {
  if (leg?.failure === "ECONNREFUSED") return ["refuses (ECONNREFUSED)", "refuse (ECONNREFUSED)"];
  if (leg?.failure !== undefined) return [`cannot be queried (${leg.failure})`, `cannot be queried (${leg.failure})`];
  if (leg?.reply?.length === 0) return ["closes the connection", "close the connection"];
  if (leg?.reply !== undefined) return ["sends invalid replies", "send invalid replies"];
  const within = `within ${REPLY_TIMEOUT_MS / 1000} s`;
  return [`does not answer ${within}`, `do not answer ${within}`];
}

/** `explained`: why it has no upstreams, where that is meant so, or reported once for all containers. */
export function noUpstreamFinding(explained: string | undefined): Finding {
  const detail = "none: only container names resolve";
  if (explained !== undefined) return finding("upstream", "ok", `${detail}; ${explained}`);
  return finding("upstream", "warning", detail, ADD_A_SERVER);
}

function legText({ protocol, reply, failure, tookMs }: ExchangeResult, code: string | undefined): string {
  if (failure !== undefined) return `${protocol} ${failure}`;
  if (reply === undefined) return `${protocol} no reply within ${REPLY_TIMEOUT_MS / 1000} s`;
  return `${protocol} ${code ?? "invalid reply"} in ${tookMs.toFixed(1)} ms`;
}

/** A loop: the server is the container's own resolver, or a container that has this very server as its upstream. */
export function loopFinding(container: ContainerServers, all: readonly ContainerServers[]): Finding {
  const loops = container.servers
    .filter(({ from }) => from !== "docker")
    .flatMap((server) => {
      if (server.address === DOCKER_RESOLVER) return [`${serverText(server)} is the container's own resolver`];
      const holder = all.find(({ fact }) => addressesOf(fact).some((own) => isSameAddress(own, server.address)));
      const forwardsThere = holder?.servers.some(({ address }) => isSameAddress(address, server.address)) === true;
      return forwardsThere
        ? [`${serverText(server)} is container ${holder.fact.name}, which forwards to the same address`]
        : [];
    });
  if (loops.length === 0) return finding("loop", "ok", "none");
  const remedy = "Give that container another upstream: docker run --dns with a server outside Docker.";
  return finding("loop", "problem", loops.join("; "), remedy);
}

export function addressesOf({ endpoints }: ContainerFact): string[] {
  return endpoints.flatMap(({ ipv4, ipv6 }) => [ipv4, ipv6].filter((address) => address !== undefined));
}

/** A search domain with a wildcard record gives names that do not exist an address. */
export async function wildcardFinding(
  within: Within,
  domains: readonly string[],
  announce: Announce,
): Promise<Finding | undefined> {
  const nonce = `dns11-doctor-${randomBytes(8).toString("hex")}`;
  const results = await Promise.all(
    domains.map(async (domain) => {
      const message = (id: number): Buffer => nameQuery(`${nonce}.${domain}`, "A", id);
      const request = { destination: DOCKER_RESOLVER, message, announce, waitMs: REPLY_TIMEOUT_MS };
      const legs = await exchange(within, request);
      const answers = legs.map(({ reply, id }) => (reply === undefined ? undefined : nameAnswer(reply, id)));
      return answers.some((answer) => typeof answer === "object" && answer.length > 0) ? domain : undefined;
    }),
  );
  const wildcards = results.filter((domain) => domain !== undefined);
  if (wildcards.length === 0) return undefined;
  const detail = `every name below ${wildcards.join(", ")} has an address (a wildcard record), so names that do not exist resolve to it`;
  return finding(
    "search",
    "problem",
    detail,
    "Remove that domain from the search list: docker run --dns-search, or `search` in the host's resolv.conf.",
  );
}
