/**
 * Waiter: a client query that waits for an upstream reply, and how it gets its reply: with its own id, letter case and
 * size limit, and only with the records and flags that it requested.
 */
import { setU16, u16, copyBytes } from "../../base/dns/bytes.ts";
import {
  ADDITIONALS_AT,
  ANSWERS_AT,
  HEADER_BYTES,
  ID_AT,
  QUESTIONS_AT,
  clearRcode,
  idOf,
  rcodeOf,
  setTruncated,
  MESSAGE_BYTES_MAX,
} from "../../base/dns/header.ts";
import { writeOpt } from "../../base/dns/opt.ts";
import { RCODE } from "../../base/dns/rcode.ts";
import type { QueryResult } from "../../base/model/query-record.ts";
import type { Server } from "../../base/model/view.ts";
import { filteredReply } from "../verdict.ts";
import type { Client } from "../client/client.ts";
import { type DeferredQuery, type Respond, SLOT_BYTES, type Transport } from "../ports.ts";
import type { AnswerEra, PassedAnswer } from "../query-policy.ts";
import { Outcome } from "../record/outcome.ts";
import { replyToAlias } from "../wire/alias.ts";
import { restoreQuestion } from "../wire/bare-query.ts";
import { withoutHopByHop, requestsAuthentic } from "../wire/hop-options.ts";
import { type ReplyAge, type RelayOptions, relay, relayFailure } from "../wire/relay.ts";
import { sizeLimit } from "../wire/reply.ts";
import type { SharedReply } from "../wire/shared-reply.ts";
import type { EarlierReply } from "./upstream-query-plan.ts";

/** A reply is sent, or copied, before the next one is built, so one buffer serves all. */
const scratch = Buffer.allocUnsafeSlow(SLOT_BYTES);
const outcome = new Outcome();

interface WaiterParts {
  readonly client: Client;
  readonly deferred: DeferredQuery;
  readonly transport: Transport;
  readonly arrivedMs: number;
  readonly era: AnswerEra;
  /** Replies that are too large for the client are truncated. */
  readonly handlesTruncation: boolean;
  /** Bytes held of the container's share. */
  readonly heldBytes: number;
  readonly respond: Respond;
  /** One function for all waiters, called just before a waiter gets its answer; returns the current time. */
  readonly onDone: (waiter: Waiter) => number;
}

export class Waiter {
  readonly #parts: WaiterParts;
  /** The era in which the query came. */
  readonly #era: number;
  #isDone = false;
  #hasSlot = true;
  /** Whether the query had joined another client's and is sent on its own now. */
  isRequeued = false;
  /** The reply that the joined query got. */
  earlier: EarlierReply | undefined;

  constructor(parts: WaiterParts) {
    this.#parts = parts;
    this.#era = parts.era.number;
  }

  get client(): Client {
    return this.#parts.client;
  }

  get deferred(): DeferredQuery {
    return this.#parts.deferred;
  }

  get transport(): Transport {
    return this.#parts.transport;
  }

  get arrivedMs(): number {
    return this.#parts.arrivedMs;
  }

  get heldBytes(): number {
    return this.#parts.heldBytes;
  }

  /** It has been answered. */
  get isDone(): boolean {
    return this.#isDone;
  }

  releaseSlot(): void {
    if (!this.#hasSlot) return;
    this.#hasSlot = false;
    this.client.slots.release();
  }

  /** A reply that can be shared: a server's, or a stale one from the cache. */
  sendShared(reply: SharedReply, age: ReplyAge, server: Server | undefined, why?: Uint8Array): void {
    this.#copyQuestion();
    const result = server === undefined ? "stale" : "forwarded";
    this.#finish(relay(scratch, 0, this.#options(), reply, age, why), result, server);
  }

  /** A reply to this query only, unchanged but for what is between us and the server. */
  sendRaw(message: Buffer, server: Server): void {
    const { query, questionEnd, hasOpt, isDnssecOk, isLocalName, signature } = this.deferred;
    const hasQuestion = u16(message, QUESTIONS_AT) === 1 && signature === undefined;
    const reply = hasQuestion ? withoutHopByHop(message, questionEnd) : Buffer.from(message);
    setU16(reply, ID_AT, idOf(query));
    restoreQuestion(reply, this.deferred);
    if (isLocalName && rcodeOf(reply) === RCODE.NXDOMAIN) clearRcode(reply);
    if (reply.length <= this.#limit()) {
      this.#done(reply, "forwarded", server);
      return;
    }
    // Header and question only, truncated: the client may retry over TCP. It gets an OPT if it has sent one (RFC 6891, 7).
    setTruncated(reply);
    reply.fill(0, ANSWERS_AT, HEADER_BYTES);
    if (hasOpt) setU16(reply, ADDITIONALS_AT, 1);
    const end = hasOpt ? writeOpt(reply, questionEnd, 0, isDnssecOk) : questionEnd;
    this.#done(reply.subarray(0, end), "forwarded", server);
  }

  fail(rcode: number, why?: Uint8Array): void {
    this.#copyQuestion();
    const result = rcode === RCODE.REFUSED ? "refused" : "failed";
    this.#finish(relayFailure(scratch, 0, this.deferred.questionEnd, this.#options(), rcode, why), result, undefined);
  }

  #copyQuestion(): void {
    const { query, questionEnd } = this.deferred;
    copyBytes(query, 0, questionEnd, scratch, 0);
  }

  #finish(length: number, result: QueryResult, server: Server | undefined): void {
    this.#done(scratch.subarray(0, length), result, server);
  }

  #done(answer: Uint8Array, result: QueryResult, server: Server | undefined): void {
    this.#isDone = true;
    const { client, deferred, transport, era } = this.#parts;
    const { alias } = deferred;
    const { policy, shares } = client;
    const isCurrent = this.#era === era.number;
    if (isCurrent) policy?.answered({ deferred, transport, reply: answer, result }, this.#era);
    const whole = alias === undefined ? answer : replyToAlias(answer, alias, policy === undefined);
    const { filter } = client;
    const reply = filter === undefined ? whole : filteredReply(filter, whole, this.#limit(), deferred);
    if (policy === undefined) return this.#give({ reply, result }, server);
    policy.passForwarded({ deferred, transport, reply, result }, shares.queryBytes, (passed) =>
      this.#give(passed, server),
    );
  }

  #give({ reply, result, refusal }: PassedAnswer, server: Server | undefined): void {
    const { client, deferred, transport, arrivedMs } = this.#parts;
    outcome.complete(deferred, reply, result, server);
    if (refusal !== undefined) outcome.refuse(refusal);
    outcome.setTimes(transport === "tcp", arrivedMs, this.#parts.onDone(this));
    client.record(outcome);
    this.#parts.respond(reply, outcome);
  }

  #limit(): number {
    return this.#parts.handlesTruncation
      ? sizeLimit(this.deferred.udpSize, this.transport === "tcp")
      : MESSAGE_BYTES_MAX;
  }

  #options(): RelayOptions {
    const { query, hasOpt, isDnssecOk, isLocalName } = this.deferred;
    return {
      limit: this.#limit(),
      hasOpt,
      isDnssecOk,
      wantsAuthentic: isDnssecOk || requestsAuthentic(query, 0),
      isLocalName,
      // A policy judges what the aliases lead to, so they stay in the reply.
      endsChain: !hasOpt && this.client.policy === undefined,
    };
  }
}
