/**
 * Upstream check: each nameserver of a container, asked from where it is asked for that container, by UDP and by TCP; and
 * whether what it is told to ask leads back to whoever asks.
 */
import { isSameAddress } from "../../base/model/address.ts";
import { type Finding, finding } from "../../base/model/finding.ts";
import { nameAnswer, nameQuery, replyCode, rootQuery } from "../../base/model/name-query.ts";
import { serverText } from "../../base/model/server-text.ts";
import type { Server } from "../../base/model/view.ts";
import { DOCKER_RESOLVER } from "../../container/capture/capture.ts";
import { PASSTHROUGH_MARK } from "../../container/namespace/dial.ts";
import type { ContainerFact } from "../../container/registry/fact.ts";
import { type ExchangeResult, type Within, exchange } from "../../container/rules/exchange.ts";
import { REPLY_TIMEOUT_MS } from "./own-name.ts";

/** A container with the servers that are asked for it. */
export interface ContainerServers {
  readonly fact: ContainerFact;
  readonly servers: readonly Server[];
}

const USE_ANOTHER_SERVER =
  "Name a server that answers: --dns for the container, the host's resolv.conf, or a setting of dns11.";

/** Asks one server, from inside its namespace. */
export async function queryServer(within: Within, { from, address, port }: Server): Promise<readonly ExchangeResult[]> {
  const mark = from === "docker" ? PASSTHROUGH_MARK : undefined;
  return await exchange(within, { destination: address, port, message: rootQuery, mark, waitMs: REPLY_TIMEOUT_MS });
}

export function upstreamFinding(server: Server, legs: readonly ExchangeResult[]): Finding {
  const told = legs.map((leg) => ({ leg, code: leg.reply === undefined ? undefined : replyCode(leg.reply, leg.id) }));
  const detail = `${serverText(server)}: ${told.map(({ leg, code }) => legText(leg, code)).join(", ")}`;
  const [udp, tcp] = told;
  if (udp?.code === undefined && tcp?.code === undefined)
    return finding("upstream", "problem", detail, USE_ANOTHER_SERVER);
  if (udp?.code === undefined) return finding("upstream", "problem", detail, USE_ANOTHER_SERVER);
  if (tcp?.code === undefined) {
    const remedy = "Let port 53 by TCP through to it: replies that do not fit into a packet need it.";
    return finding("upstream", "warning", detail, remedy);
  }
  if (udp.code === "SERVFAIL" || udp.code === "REFUSED")
    return finding("upstream", "warning", detail, USE_ANOTHER_SERVER);
  return finding("upstream", "ok", detail);
}

/** `isInside` says that the container has no way out, so that nobody is to be asked for it. */
export function noUpstreamFinding(isInside: boolean): Finding {
  const detail = "none: what is no container's name is answered by nobody";
  if (isInside) return finding("upstream", "ok", `${detail}; all its networks are internal`);
  return finding("upstream", "warning", detail, USE_ANOTHER_SERVER);
}

function legText({ protocol, reply, failure, tookMs }: ExchangeResult, code: string | undefined): string {
  if (failure !== undefined) return `${protocol} ${failure}`;
  if (reply === undefined) return `${protocol} no answer within ${REPLY_TIMEOUT_MS / 1000} s`;
  return `${protocol} ${code ?? "no DNS reply"} in ${tookMs.toFixed(1)} ms`;
}

/** A server that is a container which asks that server itself, or the very address that queries come from. */
export function loopFinding(asker: ContainerServers, all: readonly ContainerServers[]): Finding {
  const loops = asker.servers
    .filter(({ from }) => from !== "docker")
    .flatMap((server) => {
      if (server.address === DOCKER_RESOLVER) return [`${serverText(server)} is the resolver that asks it`];
      const holder = all.find(({ fact }) => addressesOf(fact).some((own) => isSameAddress(own, server.address)));
      const asksItself = holder?.servers.some(({ address }) => isSameAddress(address, server.address)) === true;
      return asksItself
        ? [`${serverText(server)} is container ${holder.fact.name}, which asks that address itself`]
        : [];
    });
  if (loops.length === 0) return finding("loop", "ok", "no server leads back to whoever asks it");
  const remedy = "Give that container servers of its own: --dns with an address outside.";
  return finding("loop", "problem", loops.join("; "), remedy);
}

export function addressesOf({ endpoints }: ContainerFact): string[] {
  return endpoints.flatMap(({ ipv4, ipv6 }) => [ipv4, ipv6].filter((address) => address !== undefined));
}

/** Below a domain that answers for every name, a search list gives names that do not exist an address. */
export async function wildcardFinding(
  within: Within,
  domains: readonly string[],
  nonce: string,
): Promise<Finding | undefined> {
  const asked = await Promise.all(
    domains.map(async (domain) => {
      const message = (id: number): Buffer => nameQuery(`${nonce}.${domain}`, "A", id);
      const legs = await exchange(within, { destination: DOCKER_RESOLVER, message, waitMs: REPLY_TIMEOUT_MS });
      const answers = legs.map(({ reply, id }) => (reply === undefined ? undefined : nameAnswer(reply, id)));
      return answers.some((answer) => typeof answer === "object" && answer.length > 0) ? domain : undefined;
    }),
  );
  const swallowing = asked.filter((domain) => domain !== undefined);
  if (swallowing.length === 0) return undefined;
  const detail = `every name below ${swallowing.join(", ")} has an address: a name that is found nowhere else leads there`;
  return finding("search", "problem", detail, "Take that domain off the list: --dns-search, or `search` on the host.");
}
