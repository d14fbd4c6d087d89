/**
 * SequentialForwarder: everything that nobody here knows is asked upstream as Docker's own resolver asks it: the first servers of
 * the list, one after the other, always from the first, by the transport that the client used. SERVFAIL and REFUSED go on
 * to the next server, as do silence and what cannot be read; any other reply is the answer and is passed on as it is.
 *
 * Docker has no keys: its library refuses to send what is signed (TSIG), having taken the signature off, and to read it.
 * So the first server is passed over, and the others are asked without the signature.
 */
import { setU16, u16 } from "../../base/dns/bytes.ts";
import { ADDITIONALS_AT, clearRcode } from "../../base/dns/header.ts";
import { OPT_BYTES } from "../../base/dns/opt.ts";
import { RCODE, rcodeName } from "../../base/dns/rcode.ts";
import { MESSAGE_BYTES_MAX } from "../../base/dns/sizes.ts";
import { LIMITS } from "../../base/limits.ts";
import type { Behaviour } from "../../base/model/behaviour.ts";
import type { QueryResult } from "../../base/model/query-record.ts";
import type { Server } from "../../base/model/view.ts";
import { reasonOf } from "../../base/lib/fault.ts";
import { guard } from "../../base/lib/guard.ts";
import type { Client } from "../client/client.ts";
import type { DeferredQuery, Forward, Respond, Transport } from "../ports.ts";
import { Outcome } from "../record/outcome.ts";
import type { Meter, UpstreamFailure } from "../record/meter.ts";
import { Question } from "../wire/question.ts";
import { failure } from "../wire/reply.ts";
import { UpstreamJournal } from "../trace.ts";
import { Admission } from "./admission.ts";
import { type AttemptResult, askTcp, askUdp } from "./attempt.ts";

/** Read before the next query is answered, so one serves all. */
const outcome = new Outcome();

/** Told of every attempt that failed, for the log. */
export type OnFailedAttempt = (server: Server, reason: string) => void;

interface SequentialQuery {
  readonly client: Client;
  readonly deferred: DeferredQuery;
  readonly transport: Transport;
  readonly respond: Respond;
  readonly servers: readonly Server[];
  /** Where somebody has it explained. */
  readonly journal: UpstreamJournal | undefined;
  readonly arrivedMs: number;
  /** Of its container's share. */
  readonly heldBytes: number;
  isDone: boolean;
}

export class SequentialForwarder {
  readonly #behaviour: Behaviour;
  readonly #onFailedAttempt: OnFailedAttempt;
  readonly #question = new Question();
  readonly #admission: Admission;
  readonly #meter: Pick<Meter, "recordReply" | "recordFailure"> | undefined;

  /** `queriesMax` bounds what all containers together have in flight: each may need a descriptor. */
  constructor(
    behaviour: Behaviour,
    onFailedAttempt: OnFailedAttempt,
    queriesMax: number = LIMITS.forwardQueriesTotal,
    meter?: Pick<Meter, "recordReply" | "recordFailure">,
  ) {
    this.#behaviour = behaviour;
    this.#onFailedAttempt = onFailedAttempt;
    this.#admission = new Admission(queriesMax);
    this.#meter = meter;
  }

  /** Queries that have not been answered yet. */
  get inFlight(): number {
    return this.#admission.inFlight;
  }

  readonly forward: Forward = (client, deferred, transport, respond) => {
    // A query outgrows a message when its compressed name is written out: then nobody can be asked.
    const servers = deferred.query.length > MESSAGE_BYTES_MAX ? [] : deferred.route.servers;
    const journal = deferred.trace === undefined ? undefined : deferred.trace.attachJournal(new UpstreamJournal());
    const arrivedMs = performance.now();
    const heldBytes = this.#admission.admit(client, deferred.query.length);
    const search = { client, deferred, transport, respond, servers, journal, arrivedMs, heldBytes, isDone: false };
    journal?.note(arrivedMs, undefined, "one server after the other, as Docker asks; nothing is remembered of them");
    // Answers that are ready go out first; and nobody is called back before this call has returned.
    queueMicrotask(() => this.#guarded(search, () => (heldBytes === 0 ? this.#refuse(search) : this.#next(search, 0))));
  };

  /** A defect on the way ends the search, so that nobody waits for it for ever. */
  #guarded(search: SequentialQuery, work: () => void): void {
    const { number } = search.client;
    if (guard.run("upstream", number, work) || search.isDone) return;
    guard.run("upstream", number, () => this.#fail(search, RCODE.SERVFAIL));
  }

  #next(search: SequentialQuery, index: number): void {
    if (search.isDone) return;
    const { client, servers } = search;
    const server = servers[index];
    if (server === undefined) {
      const why = servers.length === 0 ? "there is nobody to ask" : "all of them failed";
      search.journal?.note(performance.now(), undefined, why);
      this.#fail(search, RCODE.SERVFAIL);
    } else {
      client.slots.take(
        () => this.#guarded(search, () => this.#ask(search, server, index)),
        () => this.#guarded(search, () => this.#refuse(search)),
      );
    }
  }

  #ask(search: SequentialQuery, server: Server, index: number): void {
    const { client, deferred, transport } = search;
    const timeoutMs = server.from === "docker" ? LIMITS.forwardDockerMs : LIMITS.forwardServerMs;
    const startMs = performance.now();
    const onEnd = (attempted: AttemptResult, isUndialled = false): void => {
      client.slots.release();
      const tookMs = performance.now() - startMs;
      const isStream = transport === "tcp";
      if (attempted.kind === "reply") this.#meter?.recordReply(server, isStream, attempted.reply.rcode, tookMs);
      else
        this.#meter?.recordFailure(server, isStream, isUndialled ? "dial_error" : failureOf(tookMs, timeoutMs), tookMs);
      this.#guarded(search, () => this.#judge(search, server, index, attempted));
    };
    const why = index === 0 ? "the first of the list, always" : "the one before failed";
    search.journal?.note(performance.now(), server, `asked by ${transport}: ${why}`);
    const { signature } = deferred;
    const isTsig = signature?.isTsig === true;
    if (isTsig && index === 0) {
      onEnd({ kind: "failed", reason: "the query is signed, and there is no key to sign it with" });
      return;
    }
    const sent = isTsig ? { ...deferred, query: withoutLast(deferred.query, signature.at) } : deferred;
    let fd;
    try {
      fd = client.dial(server, transport);
    } catch (error) {
      onEnd({ kind: "failed", reason: reasonOf(error) }, true);
      return;
    }
    if (transport === "udp") askUdp(fd, server.address.includes(":") ? 6 : 4, sent, timeoutMs, onEnd);
    else askTcp(fd, sent.query, timeoutMs, onEnd);
  }

  #judge(search: SequentialQuery, server: Server, index: number, attempted: AttemptResult): void {
    if (search.isDone) return;
    const isUnread = attempted.kind === "failed" || attempted.reply.isSigned;
    if (isUnread) {
      const reason =
        attempted.kind === "failed" ? attempted.reason : "its answer is signed, and there is no key to check it";
      search.journal?.note(performance.now(), server, `failed: ${reason}`);
      this.#onFailedAttempt(server, reason);
      this.#next(search, index + 1);
      return;
    }
    const { message, rcode } = attempted.reply;
    if (rcode === RCODE.SERVFAIL || rcode === RCODE.REFUSED) {
      search.journal?.note(performance.now(), server, `failed: ${rcodeName(rcode)}`);
      this.#next(search, index + 1);
      return;
    }
    search.journal?.replied(performance.now(), server, `answered ${rcodeName(rcode)}`);
    if (rcode === RCODE.NXDOMAIN && search.deferred.isLocalName) clearRcode(message);
    this.#respond(search, message, "forwarded", server);
  }

  #refuse(search: SequentialQuery): void {
    search.journal?.note(performance.now(), undefined, "refused: too many queries are in flight");
    this.#fail(search, RCODE.REFUSED);
  }

  #fail(search: SequentialQuery, rcode: number): void {
    const { query, questionEnd } = search.deferred;
    const block = Buffer.alloc(Math.max(query.length, questionEnd) + OPT_BYTES);
    query.copy(block);
    this.#question.read(block, 0, query.length);
    const how = rcode === RCODE.REFUSED ? "refused" : "failed";
    this.#respond(search, block.subarray(0, failure(block, this.#question, rcode, this.#behaviour)), how);
  }

  #respond(search: SequentialQuery, reply: Uint8Array, how: QueryResult, server?: Server): void {
    const { client, deferred, transport, arrivedMs, heldBytes } = search;
    search.isDone = true;
    this.#admission.release(client, heldBytes);
    outcome.deliver(deferred, reply, how, server);
    outcome.isExplained = deferred.trace !== undefined;
    outcome.setTimes(transport === "tcp", arrivedMs, performance.now());
    client.record(outcome);
    search.respond(reply, outcome);
  }
}

/** Without its last record, which begins there. */
function withoutLast(query: Buffer, at: number): Buffer {
  const shorter = Buffer.from(query.subarray(0, at));
  setU16(shorter, ADDITIONALS_AT, u16(shorter, ADDITIONALS_AT) - 1);
  return shorter;
}

function failureOf(tookMs: number, timeoutMs: number): UpstreamFailure {
  return tookMs < timeoutMs ? "error" : "timeout";
}
