/**
 * Delayer: holds queries that a judge delays. Then they are answered from the start, as if they had just arrived, but are not judged again.
 * A waiting query is charged to its container like one that waits for a server.
 */
import { RCODE } from "../../base/dns/rcode.ts";
import { guard } from "../../base/lib/guard.ts";
import type { Behaviour } from "../../base/model/behaviour.ts";
import type { Client } from "../client/client.ts";
import { FailedReply, type WaitingQuery, Admission, failedAnswer } from "./failed-reply.ts";
import { DEFERRED, type DeferredQuery, type Forward, SLOT_BYTES } from "../ports.ts";
import type { HeldAnswer } from "../query-policy.ts";
import { Outcome, STAGE } from "../record/outcome.ts";
import { LOCAL_SOURCE } from "../../base/model/local-source.ts";

/** Answers a query that was deferred, without judging it again. */
interface DelayedAnswerer {
  readonly outcome: Outcome;
  answerAgain(client: Client, block: Buffer, deferred: DeferredQuery, isStream: boolean): number;
  takeDeferred(block: Buffer): DeferredQuery;
}

interface DelayerParts {
  readonly behaviour: Behaviour;
  readonly answerer: DelayedAnswerer;
  /** Forwards queries that need no delay, or have had it. */
  readonly forward: Forward;
  readonly now: () => number;
  /** Limit over all containers. */
  readonly queriesMax: number;
}

export class Delayer {
  readonly #parts: DelayerParts;
  readonly #admission: Admission;
  readonly #failed: FailedReply;
  readonly #block = Buffer.alloc(SLOT_BYTES);

  constructor(parts: DelayerParts) {
    this.#parts = parts;
    this.#admission = new Admission(parts.queriesMax);
    this.#failed = new FailedReply(parts);
  }

  readonly forward: Forward = (client, deferred, transport, respond) => {
    const { delayMs } = deferred;
    if (delayMs === undefined) return this.#parts.forward(client, deferred, transport, respond);
    const heldBytes = this.#admission.admit(client, deferred.query.length);
    const query = { client, deferred, transport, respond, arrivedMs: this.#parts.now(), heldBytes };
    const refuse = (): void => this.#end(query, () => this.#failed.send(query, RCODE.REFUSED));
    guard.defer(client.number, () => {
      if (heldBytes === 0) refuse();
      else client.slots.take(() => setTimeout(() => this.#goOn(query), delayMs), refuse);
    });
  };

  #goOn(query: WaitingQuery): void {
    query.client.slots.release();
    this.#end(query, () => this.#answer(query));
  }

  /** An internal error ends the query, so that no client waits forever. */
  #end(query: WaitingQuery, answer: () => void): void {
    const { client, heldBytes } = query;
    this.#admission.release(client, heldBytes);
    if (client.isClosed ? !isExplained(query) : guard.run("timer", client.number, answer)) return;
    guard.run("timer", client.number, () => this.#failed.send(query, RCODE.SERVFAIL));
  }

  #answer({ client, deferred, transport, respond, arrivedMs }: WaitingQuery): void {
    const { answerer, forward, now } = this.#parts;
    deferred.query.copy(this.#block);
    const length = answerer.answerAgain(client, this.#block, deferred, transport === "tcp");
    const { outcome } = answerer;
    if (length === DEFERRED) {
      const { trace } = deferred;
      return forward(client, { ...answerer.takeDeferred(this.#block), ...(trace && { trace }) }, transport, respond);
    }
    outcome.stage = STAGE.completed;
    outcome.setTimes(transport === "tcp", arrivedMs, now());
    client.record(outcome);
    if (length > 0) respond(this.#block.subarray(0, length), outcome);
  }
}

/** Whoever explains a query waits for its reply, also when the container has ended meanwhile. */
function isExplained({ deferred }: WaitingQuery): boolean {
  return deferred.isOwn === true;
}

interface HeldAnswersParts {
  /** Forwards queries that have no answer yet. */
  readonly forward: Forward;
  readonly now: () => number;
  /** Limit over all containers. */
  readonly queriesMax: number;
}

/**
 * Holds answers until they may be given. What waits is charged to its container like
 * a query that waits for a server.
 */
export class HeldAnswers {
  readonly #parts: HeldAnswersParts;
  readonly #admission: Admission;
  /** Read before the next answer is given, so one object serves all. */
  readonly #outcome = new Outcome();

  constructor(parts: HeldAnswersParts) {
    this.#parts = parts;
    this.#admission = new Admission(parts.queriesMax);
  }

  readonly forward: Forward = (client, deferred, transport, respond) => {
    const { held } = deferred;
    if (held === undefined) return this.#parts.forward(client, deferred, transport, respond);
    const heldBytes = this.#admission.admit(client, held.reply.length);
    const query = { client, deferred, transport, respond, arrivedMs: this.#parts.now(), heldBytes };
    guard.defer(client.number, () => {
      if (heldBytes > 0) return held.wait((isOpen) => this.#end(query, held, isOpen));
      this.#admission.release(client, 0);
      this.#fail(query, RCODE.REFUSED);
    });
  };

  /** An internal error ends the query, so that no client waits forever. */
  #end(query: WaitingQuery, held: HeldAnswer, isOpen: boolean): void {
    const { client, heldBytes } = query;
    this.#admission.release(client, heldBytes);
    if (client.isClosed && !isExplained(query)) return;
    const isDone = guard.run("timer", client.number, () => {
      if (isOpen) this.#give(query, held);
      else this.#fail(query, RCODE.SERVFAIL);
    });
    if (!isDone) guard.run("timer", client.number, () => this.#fail(query, RCODE.SERVFAIL));
  }

  #fail(query: WaitingQuery, rcode: number): void {
    const result = rcode === RCODE.REFUSED ? "refused" : "failed";
    this.#give(query, { reply: failedAnswer(query, rcode), result, source: LOCAL_SOURCE.rule });
  }

  #give(
    query: WaitingQuery,
    { reply, result, source }: Pick<HeldAnswer, "result" | "source"> & { readonly reply: Uint8Array },
  ): void {
    const { client, deferred, transport, respond, arrivedMs } = query;
    const outcome = this.#outcome;
    outcome.complete(deferred, reply, result, undefined);
    outcome.source = source;
    outcome.setTimes(transport === "tcp", arrivedMs, this.#parts.now());
    client.record(outcome);
    respond(reply, outcome);
  }
}
