/**
 * Lookup: resolves a question from inside a container as a program in it would: with the nameservers of its own resolv.conf,
 * in their order, over sockets in its own namespace. So the reply comes from whichever server is in use there, dns11 or not.
 * It counts nowhere as a query of the container.
 */
import { randomInt } from "node:crypto";
import { OUR_UDP_BYTES } from "../../base/dns/opt.ts";
import { LIMITS } from "../../base/limits.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import type { ResolvConf } from "../../container/watch/resolv-conf.ts";
import { Fault, reasonOf } from "../../base/lib/fault.ts";
import { type ParsedQuestion, parseQuestion, questionQuery } from "../../base/model/name-query.ts";
import { type ReplyText, replyText } from "../../base/model/reply-text.ts";
import type { Server } from "../../base/model/view.ts";
import { type AttemptResult, queryTcp, queryUdp } from "../../query/forward/attempt.ts";
import type { ContainerAccess, ControlPorts } from "../situation/ports.ts";
import { addressesIn, ownersOf } from "../situation/address-owners.ts";
import { runningContainer } from "../causes/known-container.ts";
import { containerRef, findContainer, namespaceOwner } from "../situation/find-container.ts";
import { knownRunning } from "../situation/situations.ts";
import { searchNames } from "../causes/client-causes.ts";
import { type Lookup, type LookupAttempt, type LookupRequest, recordsFor } from "../../api/names.ts";
import { CoalescedCall } from "../../base/lib/async.ts";
import { type HealthProbe, healthProbeText } from "../../base/model/metrics-policy.ts";

type Protocol = "udp" | "tcp";

interface StubReply {
  readonly server: string;
  readonly protocol: Protocol;
  readonly reply: ReplyText;
}

const DNS_PORT = 53;
/** Response codes after which the C library tries the next server. */
const RETRY_RCODES = new Set(["SERVFAIL", "NOTIMP", "REFUSED"]);
const EMPTY_REPLY: Omit<ReplyText, "rcode"> = {
  isTruncated: false,
  isAuthoritative: false,
  answers: [],
  authority: [],
  additional: [],
  extendedErrors: [],
  isUnreadable: false,
};

/** Throws a Fault if no query can be sent. No reply from any server is a valid result. */
export async function lookup(
  { containers, inside }: Pick<ControlPorts, "containers" | "inside">,
  lookupRequest: LookupRequest,
  signal: AbortSignal,
): Promise<Lookup> {
  const question = readQuestion(lookupRequest.name, lookupRequest.type);
  const fact = findContainer(containers.facts.values(), lookupRequest.container);
  const owner = namespaceOwner(containers.facts, fact);
  const namespace = inside.open(owner);
  const client = containers.clients.of(owner.id);
  try {
    const resolvConf = requireResolvConf(inside, fact, owner);
    const names = lookupRequest.search === true ? searchNames(question, resolvConf) : [question];
    const began = performance.now();
    const resolver = new StubResolver(
      serversOf(resolvConf),
      lookupRequest.tcp === true ? "tcp" : "udp",
      (server, protocol) => {
        const fd = namespace.dial(server, protocol);
        client?.ownQueries.announce(protocol === "tcp", namespace.portOf(fd));
        return fd;
      },
    );
    const { reply: found, question: queried } = await resolver.resolve(names, signal);
    return {
      container: containerRef(fact, owner),
      question: { name: queried.name, type: queried.typeName },
      server: found?.server ?? null,
      protocol: found?.protocol ?? null,
      ms: performance.now() - began,
      attempts: resolver.attempts,
      ...(found?.reply ?? { rcode: null, ...EMPTY_REPLY }),
      owners: ownersOf(
        addressesIn(found?.reply.answers ?? []),
        await knownRunning(containers),
        runningContainer(owner),
        (address) => containers.elsewhere?.ownerOf(owner, address),
      ).owners,
    };
  } finally {
    namespace.close();
  }
}

function requireResolvConf(inside: ContainerAccess, fact: ContainerFact, owner: ContainerFact): ResolvConf {
  const resolvConf = inside.resolvConfOf(fact) ?? inside.resolvConfOf(owner);
  if (resolvConf !== undefined) return resolvConf;
  throw new Fault("NO_RESOLV_CONF", `Cannot read resolv.conf of "${fact.name}", so its nameservers are unknown`, {
    remedy:
      "dns11 does not read a resolv.conf that a user has mounted. If it is Docker's own file, another program may hold a lease on it.",
  });
}

export function readQuestion(name: string, type: string | undefined): ParsedQuestion {
  try {
    return parseQuestion(name, type);
  } catch (error) {
    throw new Fault("BAD_QUESTION", reasonOf(error));
  }
}

/** Without a nameserver line the C library queries 127.0.0.1, which is the container itself. */
function serversOf({ nameservers }: ResolvConf): readonly Server[] {
  const addresses = nameservers.length === 0 ? ["127.0.0.1"] : nameservers.slice(0, LIMITS.lookupServers);
  return addresses.map((address) => ({ from: "container", address, port: DNS_PORT }));
}

/** The reply to one of several names; undefined if no server replied. */
interface Resolved {
  readonly reply: StubReply | undefined;
  readonly question: ParsedQuestion;
}

class StubResolver {
  readonly attempts: LookupAttempt[] = [];
  readonly #servers: readonly Server[];
  readonly #protocol: Protocol;
  readonly #dial: (server: Server, protocol: Protocol) => number;

  constructor(servers: readonly Server[], protocol: Protocol, dial: (server: Server, protocol: Protocol) => number) {
    this.#servers = servers;
    this.#protocol = protocol;
    this.#dial = dial;
  }

  /**
   * Resolves one name after the other until one has records or the request is aborted. If none has, the result is the first
   * name that exists, otherwise the last one.
   */
  async resolve(names: readonly ParsedQuestion[], signal: AbortSignal): Promise<Resolved> {
    let best: Resolved | undefined;
    for (const question of names) {
      const reply = await this.#queryServers(question);
      if (reply !== undefined && recordsFor(reply.reply, question.typeName).length > 0) return { reply, question };
      if (best === undefined || best.reply?.reply.rcode !== "NOERROR") best = { reply, question };
      if (reply === undefined || signal.aborted) break;
    }
    return best as Resolved;
  }

  /** Queries one server after the other until one gives a usable reply. */
  async #queryServers(question: ParsedQuestion): Promise<StubReply | undefined> {
    let firstError: StubReply | undefined;
    for (const server of this.#servers) {
      let reply = await this.#queryServer(question, server, this.#protocol);
      if (reply?.protocol === "udp" && reply.reply.isTruncated) {
        reply = (await this.#queryServer(question, server, "tcp")) ?? reply;
      }
      if (reply !== undefined && !RETRY_RCODES.has(reply.reply.rcode)) return reply;
      firstError ??= reply;
    }
    return firstError;
  }

  async #queryServer(question: ParsedQuestion, server: Server, protocol: Protocol): Promise<StubReply | undefined> {
    const began = performance.now();
    const outcome = await this.#exchange(questionQuery(question, randomInt(0x10000)), server, protocol);
    const reply = outcome.kind === "reply" ? replyText(outcome.reply.message) : undefined;
    this.attempts.push({
      name: question.name,
      server: server.address,
      protocol,
      ms: performance.now() - began,
      outcome: reply?.rcode ?? (outcome.kind === "failed" ? outcome.reason : "malformed reply"),
    });
    return reply === undefined ? undefined : { server: server.address, protocol, reply };
  }

  async #exchange(query: Buffer, server: Server, protocol: Protocol): Promise<AttemptResult> {
    let fd: number;
    try {
      fd = this.#dial(server, protocol);
    } catch (error) {
      return { kind: "failed", reason: reasonOf(error) };
    }
    return await new Promise((resolve) => {
      if (protocol === "tcp") queryTcp(fd, query, LIMITS.lookupMs, resolve);
      else {
        const family = server.address.includes(":") ? 6 : 4;
        queryUdp(fd, family, { query, hasOpt: true, udpSize: OUR_UDP_BYTES }, LIMITS.lookupMs, resolve);
      }
    });
  }
}

export interface ProbeResult {
  readonly isHealthy: boolean;
  readonly text: string;
}

interface ProbePagesParts {
  readonly probes: () => readonly HealthProbe[];
  /** Undefined before dns11 serves. */
  readonly ports: () => Pick<ControlPorts, "containers" | "inside"> | undefined;
}

/**
 * Pages that say whether a container resolves a name: /healthz-PAGE. Every process of the machine can request them, so
 * each asks once for all requests of a second.
 */
export class ProbePages {
  readonly #parts: ProbePagesParts;
  readonly #calls = new Map<string, CoalescedCall<ProbeResult>>();

  constructor(parts: ProbePagesParts) {
    this.#parts = parts;
  }

  /** Undefined where no probe has this page. */
  async get(page: string): Promise<ProbeResult | undefined> {
    const probes = this.#parts.probes();
    const probe = probes.find((each) => each.page === page);
    if (probe === undefined) return undefined;
    const texts = new Set(probes.map(healthProbeText));
    for (const text of this.#calls.keys()) if (!texts.has(text)) this.#calls.delete(text);
    const text = healthProbeText(probe);
    const call =
      this.#calls.get(text) ?? new CoalescedCall(async () => await this.#ask(probe), LIMITS.healthProbeEveryMs);
    this.#calls.set(text, call);
    return await call.get();
  }

  async #ask({ name, container }: HealthProbe): Promise<ProbeResult> {
    const ports = this.#parts.ports();
    if (ports === undefined) return { isHealthy: false, text: "dns11 does not serve yet" };
    try {
      const found = await lookup(ports, { container, name }, AbortSignal.timeout(LIMITS.healthProbeMs));
      const { rcode, question } = found;
      if (recordsFor(found, question.type).length > 0) return { isHealthy: true, text: "OK" };
      const what = rcode === null ? "no reply" : rcode === "NOERROR" ? "no records" : rcode;
      return { isHealthy: false, text: `${name} in ${container}: ${what}` };
    } catch (error) {
      return { isHealthy: false, text: `${name} in ${container}: ${reasonOf(error)}` };
    }
  }
}
