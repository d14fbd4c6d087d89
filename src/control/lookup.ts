/**
 * Lookup: a question asked from inside a container as a program in there would ask it: to the nameservers of its own
 * resolv.conf, in their order, over sockets of its own namespace. So the answer is that of whoever serves there, be it us.
 */
import { randomInt } from "node:crypto";

import { OUR_UDP_BYTES } from "../base/dns/opt.ts";
import { LIMITS } from "../base/limits.ts";
import type { ContainerFact } from "../container/registry/fact.ts";
import type { ResolvConf } from "../container/watch/resolv-conf.ts";
import { Fault, reasonOf } from "../base/lib/fault.ts";
import { type ParsedQuestion, parseQuestion, questionQuery } from "../base/model/question-text.ts";
import { type ReplyText, replyText } from "../base/model/reply-text.ts";
import type { Server } from "../base/model/view.ts";
import { type AttemptResult, askTcp, askUdp } from "../query/forward/attempt.ts";
import type { ControlPorts } from "./ports.ts";
import { findContainer, namespaceOwner } from "./find-container.ts";
import { searchNames } from "./search-list.ts";
import type { ContainerRef, Lookup, LookupAttempt, LookupRequest } from "../api/names.ts";

type Protocol = "udp" | "tcp";

interface StubReply {
  readonly server: string;
  readonly protocol: Protocol;
  readonly reply: ReplyText;
}

const DNS_PORT = 53;
/** What the C library takes for an answer that another server may know better. */
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

/** Throws a Fault where it cannot be asked at all; that nobody answers is an answer. */
export async function lookup(
  { containers, inside }: ControlPorts,
  order: LookupRequest,
  signal: AbortSignal,
): Promise<Lookup> {
  const question = readQuestion(order.name, order.type);
  const fact = findContainer(containers.facts.values(), order.container);
  const owner = namespaceOwner(containers.facts, fact);
  const resolvConf = inside.resolvConfOf(fact) ?? inside.resolvConfOf(owner);
  if (resolvConf === undefined) {
    throw new Fault(
      "NO_RESOLV_CONF",
      `The resolv.conf of "${fact.name}" cannot be read, so nobody can tell whom it asks`,
      { remedy: "One that a user has mounted there is not read; a program may hold a lease on the engine's own." },
    );
  }
  const names = order.search === true ? searchNames(question, resolvConf) : [question];
  const began = performance.now();
  const namespace = inside.open(owner);
  try {
    const asking = new StubResolver(serversOf(resolvConf), order.tcp === true ? "tcp" : "udp", namespace.dial);
    const { answered, asked } = await asking.resolve(names, signal);
    return {
      container: containerRef(fact, owner),
      question: { name: asked.name, type: asked.typeName },
      server: answered?.server ?? null,
      protocol: answered?.protocol ?? null,
      ms: performance.now() - began,
      attempts: asking.attempts,
      ...(answered?.reply ?? { rcode: null, ...EMPTY_REPLY }),
    };
  } finally {
    namespace.close();
  }
}

export function readQuestion(name: string, type: string | undefined): ParsedQuestion {
  try {
    return parseQuestion(name, type);
  } catch (error) {
    throw new Fault("BAD_QUESTION", reasonOf(error));
  }
}

export function containerRef(fact: ContainerFact, owner: ContainerFact): ContainerRef {
  return { id: fact.id, name: fact.name, ...(owner !== fact && { sharedWith: owner.name }) };
}

/** Where a file names nobody, the C library asks the machine itself, which in there is the container. */
function serversOf({ nameservers }: ResolvConf): readonly Server[] {
  const named = nameservers.length === 0 ? ["127.0.0.1"] : nameservers.slice(0, LIMITS.lookupServers);
  return named.map((address) => ({ from: "container", address, port: DNS_PORT }));
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
   * One name after the other until one has an answer, or nobody waits for it; without any, the first that exists, and the
   * last otherwise.
   */
  async resolve(
    names: readonly ParsedQuestion[],
    signal: AbortSignal,
  ): Promise<{ answered: StubReply | undefined; asked: ParsedQuestion }> {
    let best: { answered: StubReply | undefined; asked: ParsedQuestion } | undefined;
    for (const asked of names) {
      const answered = await this.#askServers(asked);
      if ((answered?.reply.answers.length ?? 0) > 0) return { answered, asked };
      if (best === undefined || best.answered?.reply.rcode !== "NOERROR") best = { answered, asked };
      if (answered === undefined || signal.aborted) break;
    }
    return best as { answered: StubReply | undefined; asked: ParsedQuestion };
  }

  /** One server after the other until one has something to say. */
  async #askServers(question: ParsedQuestion): Promise<StubReply | undefined> {
    let useless: StubReply | undefined;
    for (const server of this.#servers) {
      let answered = await this.#askOne(question, server, this.#protocol);
      if (answered?.protocol === "udp" && answered.reply.isTruncated) {
        answered = (await this.#askOne(question, server, "tcp")) ?? answered;
      }
      if (answered !== undefined && !RETRY_RCODES.has(answered.reply.rcode)) return answered;
      useless ??= answered;
    }
    return useless;
  }

  async #askOne(question: ParsedQuestion, server: Server, protocol: Protocol): Promise<StubReply | undefined> {
    const began = performance.now();
    const outcome = await this.#exchange(questionQuery(question, randomInt(0x10000)), server, protocol);
    const reply = outcome.kind === "reply" ? replyText(outcome.reply.message) : undefined;
    this.attempts.push({
      name: question.name,
      server: server.address,
      protocol,
      ms: performance.now() - began,
      outcome: reply?.rcode ?? (outcome.kind === "failed" ? outcome.reason : "what came back is no DNS reply"),
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
      if (protocol === "tcp") askTcp(fd, query, LIMITS.lookupMs, resolve);
      else {
        const family = server.address.includes(":") ? 6 : 4;
        askUdp(fd, family, { query, hasOpt: true, udpSize: OUR_UDP_BYTES }, LIMITS.lookupMs, resolve);
      }
    });
  }
}
