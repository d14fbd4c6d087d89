/**
 * HeldAnswers: holds answers until the addresses in them are open for their client. What waits is charged to its container like
 * a query that waits for a server.
 */
import { RCODE } from "../../base/dns/rcode.ts";
import { guard } from "../../base/lib/guard.ts";
import { LOCAL_SOURCE } from "../../base/model/local-source.ts";
import { Admission } from "../forward/admission.ts";
import type { WaitingQuery } from "../forward/failed-reply.ts";
import { failedAnswer } from "../gate/deferred-answer.ts";
import type { Forward, HeldAnswer } from "../ports.ts";
import { Outcome } from "../record/outcome.ts";

interface HeldAnswersParts {
  /** For queries without an answer. */
  readonly forward: Forward;
  readonly now: () => number;
  /** Limit over all containers. */
  readonly queriesMax: number;
}

export class HeldAnswers {
  readonly #parts: HeldAnswersParts;
  readonly #admission: Admission;
  /** Read before the next answer is given, so one serves all. */
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
    if (client.isClosed) return;
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
    outcome.complete(deferred.alias ?? deferred, reply, result, undefined);
    outcome.source = source;
    outcome.isOwn = deferred.isOwn === true;
    outcome.setTimes(transport === "tcp", arrivedMs, this.#parts.now());
    client.record(outcome);
    respond(reply, outcome);
  }
}
