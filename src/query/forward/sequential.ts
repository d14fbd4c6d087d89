/**
 * SequentialForwarder: forwards queries as Docker's embedded DNS does: to the first servers of the list in order,
 * always starting with the first, over the client's transport. SERVFAIL, REFUSED, a timeout and an unreadable reply go
 * on to the next server; any other reply is passed on unchanged.
 *
 * Docker has no TSIG keys: its library strips the signature of a signed query and refuses to send it, and refuses to
 * read a signed reply. So the first server is skipped, and the others get the query without the signature.
 */
import { setU16, u16 } from "../../base/dns/bytes.ts";
import { ADDITIONALS_AT, clearRcode, MESSAGE_BYTES_MAX, UDP_BYTES_MIN } from "../../base/dns/header.ts";
import { OPT_BYTES } from "../../base/dns/opt.ts";
import { RCODE, rcodeName } from "../../base/dns/rcode.ts";
import { LIMITS } from "../../base/limits.ts";
import type { Behaviour } from "../../base/model/behaviour.ts";
import type { QueryResult } from "../../base/model/query-record.ts";
import { serverText } from "../../base/model/server-text.ts";
import type { Server } from "../../base/model/view.ts";
import { reasonOf } from "../../base/lib/fault.ts";
import { guard } from "../../base/lib/guard.ts";
import { filteredReply } from "../verdict.ts";
import type { Client } from "../client/client.ts";
import { AnswerEra, type PassedAnswer } from "../query-policy.ts";
import { sentQuery, restoreQuestion } from "../wire/bare-query.ts";
import type { DeferredQuery, Forward, Respond, Transport } from "../ports.ts";
import { Outcome } from "../record/outcome.ts";
import type { Meter, UpstreamFailure } from "../record/meter.ts";
import { replyToAlias } from "../wire/alias.ts";
import { Question } from "../wire/question.ts";
import { failure } from "../wire/reply.ts";
import { UpstreamJournal } from "../trace.ts";
import { Admission } from "./failed-reply.ts";
import { type AttemptResult, queryTcp, queryUdp } from "./attempt.ts";

/** Read before the next query is answered, so one object serves all. */
const outcome = new Outcome();

/** Events for the log. */
interface SequentialEvents {
  /** An attempt that got no usable reply. */
  readonly onFailedAttempt: (server: Server, reason: string) => void;
  /** A client query that all servers have failed. */
  readonly onFailure: (reason: string, client: Client, query: Pick<DeferredQuery, "name" | "type">) => void;
}

interface SequentialQuery {
  readonly client: Client;
  readonly deferred: DeferredQuery;
  readonly transport: Transport;
  readonly respond: Respond;
  readonly servers: readonly Server[];
  /** Set while the query is explained. */
  readonly journal: UpstreamJournal | undefined;
  readonly arrivedMs: number;
  /** Bytes held of the container's share. */
  readonly heldBytes: number;
  readonly failures: string[];
  /** The era in which the query came. */
  readonly era: number;
  isDone: boolean;
}

export class SequentialForwarder {
  readonly #behaviour: Behaviour;
  readonly #events: SequentialEvents;
  readonly #question = new Question();
  readonly #admission: Admission;
  readonly #meter: Pick<Meter, "recordReply" | "recordFailure"> | undefined;
  readonly #era: AnswerEra;

  /** `queriesMax` limits the queries in flight of all containers together: each may need a file descriptor. */
  constructor(
    behaviour: Behaviour,
    events: SequentialEvents,
    queriesMax: number = LIMITS.forwardQueriesTotal,
    meter?: Pick<Meter, "recordReply" | "recordFailure">,
    era: AnswerEra = new AnswerEra(),
  ) {
    this.#behaviour = behaviour;
    this.#events = events;
    this.#admission = new Admission(queriesMax);
    this.#meter = meter;
    this.#era = era;
  }

  /** Queries without an answer yet. */
  get inFlight(): number {
    return this.#admission.inFlight;
  }

  readonly forward: Forward = (client, deferred, transport, respond) => {
    // A query may exceed the size of a message once its compressed name is written out; it cannot be forwarded then.
    const servers = deferred.query.length > MESSAGE_BYTES_MAX ? [] : deferred.route.servers;
    const journal = deferred.trace === undefined ? undefined : deferred.trace.attachJournal(new UpstreamJournal());
    const arrivedMs = performance.now();
    const heldBytes = this.#admission.admit(client, deferred.query.length);
    const parts = { client, deferred, transport, respond, servers, journal, arrivedMs, heldBytes };
    const pending: SequentialQuery = { ...parts, failures: [], era: this.#era.number, isDone: false };
    journal?.note(arrivedMs, undefined, "one server after the other, as in Docker, without health tracking");
    // Replies that are ready go out first, and the caller must not be called back before this call has returned.
    queueMicrotask(() =>
      this.#guarded(pending, () => (heldBytes === 0 ? this.#refuse(pending) : this.#next(pending, 0))),
    );
  };

  /** An internal error ends the query, so that no client waits forever. */
  #guarded(pending: SequentialQuery, work: () => void): void {
    const { number } = pending.client;
    if (guard.run("upstream", number, work) || pending.isDone) return;
    guard.run("upstream", number, () => this.#fail(pending, RCODE.SERVFAIL));
  }

  #next(pending: SequentialQuery, index: number): void {
    if (pending.isDone) return;
    const { client, servers } = pending;
    const server = servers[index];
    if (server === undefined) {
      const why = servers.length === 0 ? "no upstream servers" : "all servers failed";
      pending.journal?.note(performance.now(), undefined, why);
      const { deferred, failures } = pending;
      if (deferred.isOwn !== true) this.#events.onFailure(failures.join("; ") || why, client, deferred);
      this.#fail(pending, RCODE.SERVFAIL);
    } else {
      client.slots.take(
        () => this.#guarded(pending, () => this.#query(pending, server, index)),
        () => this.#guarded(pending, () => this.#refuse(pending)),
      );
    }
  }

  #query(pending: SequentialQuery, server: Server, index: number): void {
    const { client, deferred, transport } = pending;
    const timeoutMs = server.from === "docker" ? LIMITS.forwardDockerMs : LIMITS.forwardServerMs;
    const startMs = performance.now();
    const onEnd = (result: AttemptResult, isDialError = false): void => {
      client.slots.release();
      const tookMs = performance.now() - startMs;
      const isStream = transport === "tcp";
      if (result.kind === "reply") {
        this.#meter?.recordReply(server, isStream, result.reply.rcode, tookMs);
        client.tap?.replied(server, result.reply.message, isStream, startMs);
      } else
        this.#meter?.recordFailure(server, isStream, isDialError ? "dial_error" : failureOf(tookMs, timeoutMs), tookMs);
      this.#guarded(pending, () => this.#judge(pending, server, index, result));
    };
    const why = index === 0 ? "always the first of the list" : "the server before failed";
    pending.journal?.note(performance.now(), server, `sent over ${transport}: ${why}`);
    const { signature } = deferred;
    const isTsig = signature?.isTsig === true;
    if (isTsig && index === 0) {
      onEnd({ kind: "failed", reason: "the query has a TSIG, and dns11 has no key" });
      return;
    }
    if (server.tls !== undefined) {
      onEnd({ kind: "failed", reason: "a server by TLS is not asked with forward.order: docker" });
      return;
    }
    // A policy has taken the signature out already.
    const query = isTsig ? withoutLast(deferred.query, signature.at) : sentQuery(deferred);
    const sent = query === deferred.query ? deferred : { ...deferred, query };
    let fd;
    try {
      fd = client.dial(server, transport);
    } catch (error) {
      onEnd({ kind: "failed", reason: reasonOf(error) }, true);
      return;
    }
    client.tap?.sent(server, sent.query, transport === "tcp");
    if (transport === "udp") queryUdp(fd, server.address.includes(":") ? 6 : 4, sent, timeoutMs, onEnd);
    else queryTcp(fd, sent.query, timeoutMs, onEnd);
  }

  #judge(pending: SequentialQuery, server: Server, index: number, result: AttemptResult): void {
    if (pending.isDone) return;
    const isUnread = result.kind === "failed" || result.reply.isSigned;
    if (isUnread) {
      const reason = result.kind === "failed" ? result.reason : "the reply has a TSIG, and dns11 has no key";
      this.#note(pending, server, reason);
      this.#events.onFailedAttempt(server, reason);
      this.#next(pending, index + 1);
      return;
    }
    const { message, rcode } = result.reply;
    if (rcode === RCODE.SERVFAIL || rcode === RCODE.REFUSED) {
      this.#note(pending, server, rcodeName(rcode));
      this.#next(pending, index + 1);
      return;
    }
    pending.journal?.replied(performance.now(), server, `answered ${rcodeName(rcode)}`);
    restoreQuestion(message, pending.deferred);
    if (rcode === RCODE.NXDOMAIN && pending.deferred.isLocalName) clearRcode(message);
    this.#respond(pending, message, "forwarded", server);
  }

  #note({ journal, failures }: SequentialQuery, server: Server, reason: string): void {
    journal?.note(performance.now(), server, `failed: ${reason}`);
    failures.push(`${serverText(server)}: ${reason}`);
  }

  #refuse(pending: SequentialQuery): void {
    pending.journal?.note(performance.now(), undefined, "refused: too many queries in flight");
    this.#fail(pending, RCODE.REFUSED);
  }

  #fail(pending: SequentialQuery, rcode: number): void {
    const { query, questionEnd } = pending.deferred;
    const block = Buffer.alloc(Math.max(query.length, questionEnd) + OPT_BYTES);
    query.copy(block);
    this.#question.read(block, 0, query.length);
    const result = rcode === RCODE.REFUSED ? "refused" : "failed";
    this.#respond(pending, block.subarray(0, failure(block, this.#question, rcode, this.#behaviour)), result);
  }

  #respond(pending: SequentialQuery, answer: Uint8Array, result: QueryResult, server?: Server): void {
    const { client, deferred, transport } = pending;
    pending.isDone = true;
    const { alias } = deferred;
    const { policy, shares } = client;
    if (pending.era === this.#era.number) policy?.answered({ deferred, transport, reply: answer, result }, pending.era);
    const whole = alias === undefined ? answer : replyToAlias(answer, alias);
    const { filter } = client;
    const reply =
      filter === undefined ? whole : filteredReply(filter, whole, Math.max(whole.length, UDP_BYTES_MIN), deferred);
    if (policy === undefined) return this.#give(pending, { reply, result }, server);
    policy.passForwarded({ deferred, transport, reply, result }, shares.queryBytes, (passed) =>
      this.#give(pending, passed, server),
    );
  }

  #give(pending: SequentialQuery, { reply, result, refusal }: PassedAnswer, server?: Server): void {
    const { client, deferred, transport, arrivedMs, heldBytes } = pending;
    this.#admission.release(client, heldBytes);
    outcome.complete(deferred, reply, result, server);
    if (refusal !== undefined) outcome.refuse(refusal);
    outcome.setTimes(transport === "tcp", arrivedMs, performance.now());
    client.record(outcome);
    pending.respond(reply, outcome);
  }
}

/** The query without its last record, which begins at `at`. */
function withoutLast(query: Buffer, at: number): Buffer {
  const shorter = Buffer.from(query.subarray(0, at));
  setU16(shorter, ADDITIONALS_AT, u16(shorter, ADDITIONALS_AT) - 1);
  return shorter;
}

function failureOf(tookMs: number, timeoutMs: number): UpstreamFailure {
  return tookMs < timeoutMs ? "error" : "timeout";
}
