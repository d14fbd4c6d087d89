/**
 * FailedReply: the end of a query that was deferred and gets no answer: an error, recorded like every reply.
 */
import { RCODE } from "../../base/dns/rcode.ts";
import type { Behaviour } from "../../base/model/behaviour.ts";
import type { Client } from "../client/client.ts";
import { type DeferredQuery, type Respond, SLOT_BYTES, type Transport } from "../ports.ts";
import { Outcome } from "../record/outcome.ts";
import { Question } from "../wire/question.ts";
import type { ForwardedAnswer } from "../query-policy.ts";
import { relayFailure } from "../wire/relay.ts";
import { failure, sizeLimit } from "../wire/reply.ts";
import { LIMITS } from "../../base/limits.ts";

/** A query that waits for its answer. */
export interface WaitingQuery {
  readonly client: Client;
  readonly deferred: DeferredQuery;
  readonly transport: Transport;
  readonly respond: Respond;
  readonly arrivedMs: number;
  /** Bytes held of its container's share. */
  readonly heldBytes: number;
}

export class FailedReply {
  readonly #behaviour: Behaviour;
  readonly #now: () => number;
  /** Read before the next query is answered, so one object of each kind serves all. */
  readonly #block = Buffer.alloc(SLOT_BYTES);
  readonly #question = new Question();
  readonly #outcome = new Outcome();

  constructor({ behaviour, now }: { readonly behaviour: Behaviour; readonly now: () => number }) {
    this.#behaviour = behaviour;
    this.#now = now;
  }

  send({ client, deferred, transport, respond, arrivedMs }: WaitingQuery, rcode: number): void {
    const outcome = this.#outcome;
    deferred.query.copy(this.#block);
    this.#question.read(this.#block, 0, deferred.query.length);
    const reply = this.#block.subarray(0, failure(this.#block, this.#question, rcode, this.#behaviour));
    outcome.complete(deferred, reply, rcode === RCODE.REFUSED ? "refused" : "failed", undefined);
    outcome.setTimes(transport === "tcp", arrivedMs, this.#now());
    client.record(outcome);
    respond(reply, outcome);
  }
}

/**
 * Limits on queries in flight, over all containers, and on the bytes of each container. A container with few
 * queries in flight is always admitted, whatever others do.
 */
export class Admission {
  readonly #queriesMax: number;
  #inFlight = 0;

  constructor(queriesMax: number) {
    this.#queriesMax = queriesMax;
  }

  /** Queries without an answer yet. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /** Admits a query of `bytes` bytes; returns what it holds of the container's share, or 0 if it must be refused. */
  admit(client: Client, bytes: number): number {
    const isFull = this.#inFlight >= this.#queriesMax && client.slots.held >= LIMITS.forwardQueriesAlways;
    this.#inFlight++;
    return !isFull && client.shares.queryBytes.take(bytes) ? bytes : 0;
  }

  /** The query has its answer, even if that is a refusal. */
  release(client: Client, heldBytes: number): void {
    this.#inFlight--;
    client.shares.queryBytes.give(heldBytes);
  }
}

/** Room for what is written after a question: an SOA, and an OPT with a text. */
const REST_BYTES = 512;
const NO_RECORDS = { wantsAuthentic: false, isLocalName: false };

/** An error in place of an answer, made of the question alone: what follows it may be anything by now. */
export function failedAnswer(answer: Pick<ForwardedAnswer, "deferred" | "transport">, rcode: number): Uint8Array {
  const { block, questionEnd, options } = questionAlone(answer);
  return block.subarray(0, relayFailure(block, 0, questionEnd, { ...options, ...NO_RECORDS }, rcode));
}

/** The question that the client sent, with room for a reply. */
export function questionAlone({ deferred, transport }: Pick<ForwardedAnswer, "deferred" | "transport">): {
  readonly block: Buffer;
  readonly questionEnd: number;
  readonly options: { readonly limit: number; readonly hasOpt: boolean; readonly isDnssecOk: boolean };
} {
  const { alias, hasOpt, isDnssecOk, udpSize } = deferred;
  const { query, questionEnd } = alias ?? deferred;
  const block = Buffer.alloc(questionEnd + REST_BYTES);
  query.copy(block, 0, 0, questionEnd);
  return { block, questionEnd, options: { limit: sizeLimit(udpSize, transport === "tcp"), hasOpt, isDnssecOk } };
}
