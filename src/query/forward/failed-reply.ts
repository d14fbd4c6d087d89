/**
 * FailedReply: the end of a query that was deferred and gets no answer: an error, recorded like every reply.
 */
import { RCODE } from "../../base/dns/rcode.ts";
import type { Behaviour } from "../../base/model/behaviour.ts";
import type { Client } from "../client/client.ts";
import { type DeferredQuery, type Respond, SLOT_BYTES, type Transport } from "../ports.ts";
import { Outcome } from "../record/outcome.ts";
import { Question } from "../wire/question.ts";
import { failure } from "../wire/reply.ts";

/** A query that waits for its answer. */
export interface WaitingQuery {
  readonly client: Client;
  readonly deferred: DeferredQuery;
  readonly transport: Transport;
  readonly respond: Respond;
  readonly arrivedMs: number;
  /** Held of its container's share. */
  readonly heldBytes: number;
}

export class FailedReply {
  readonly #behaviour: Behaviour;
  readonly #now: () => number;
  /** Read before the next query is answered, so one of each serves all. */
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
    outcome.isOwn = deferred.isOwn === true;
    outcome.setTimes(transport === "tcp", arrivedMs, this.#now());
    client.record(outcome);
    respond(reply, outcome);
  }
}
