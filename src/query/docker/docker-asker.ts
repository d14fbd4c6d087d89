/**
 * DockerAsker: asks Docker's own resolver for the names that only it knows, before a query goes anywhere else. When it has
 * answered, the query is answered again from the start, with that answer in its place: so a name that it does not know
 * goes on as any other does, and one that it knows is answered like a local name.
 */
import { RCODE } from "../../base/dns/rcode.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import { guard } from "../../base/lib/guard.ts";
import { reasonOf } from "../../base/lib/fault.ts";
import type { RandomIds } from "../../base/lib/random-ids.ts";
import { LIMITS } from "../../base/limits.ts";
import type { Behaviour } from "../../base/model/behaviour.ts";
import { type DockerAnswer, type DockerAsk, askKey } from "../../base/model/docker-ask.ts";
import { QUERY_RESULT } from "../../base/model/query-record.ts";
import { DNS_PORT } from "../../base/model/server-text.ts";
import type { Server } from "../../base/model/view.ts";
import type { Client } from "../client/client.ts";
import { Admission } from "../forward/admission.ts";
import { FailedReply, type WaitingQuery } from "../forward/failed-reply.ts";
import { type AttemptResult, queryUdp } from "../forward/attempt.ts";
import { DEFERRED, type DeferredQuery, type Forward, SLOT_BYTES } from "../ports.ts";
import { type Outcome, STAGE } from "../record/outcome.ts";
import { type AskMessage, type AskedRecords, askMessage, readAsked } from "./ask-message.ts";

/** Docker's resolver in the client's namespace, behind our rules. */
const DOCKER: Server = { from: "docker", address: "127.0.0.11", port: DNS_PORT };
const NOTHING = new Uint8Array(0);

/** Without the guard, Docker's resolver may wait for its own servers. */
function mayBeForwarded({ isGuarded }: AskMessage, { isTimeout }: Extract<AttemptResult, { kind: "failed" }>): boolean {
  return !isGuarded && isTimeout === true;
}

/** Answers a query that was deferred to ask, with what was answered. */
interface AskingAnswerer {
  readonly outcome: Outcome;
  answerAgain(client: Client, block: Buffer, deferred: DeferredQuery, isStream: boolean): number;
  takeDeferred(block: Buffer): DeferredQuery;
}

export interface DockerAskerParts {
  readonly behaviour: Behaviour;
  readonly answerer: AskingAnswerer;
  /** Queries that need nothing of Docker's resolver go here. */
  readonly forward: Forward;
  readonly ids: RandomIds;
  readonly now: () => number;
  /** Limit over all containers. */
  readonly queriesMax: number;
}

/** A query that waits for Docker's resolver. */
interface AskingQuery extends WaitingQuery {
  readonly answers: Map<string, DockerAnswer>;
  isDone: boolean;
}

/** A question that waits until one of the same client has its answer. */
interface WaitingAsk {
  readonly query: AskingQuery;
  readonly ask: DockerAsk;
}

/** What one client waits for. */
class AskingClient {
  /** The queries that wait for one answer, by its key. */
  readonly queries = new Map<string, AskingQuery[]>();
  /** Questions in flight that Docker's resolver has not answered lately, so that it may not know the name. */
  unproven = 0;
  readonly waiting: WaitingAsk[] = [];
}

export class DockerAsker {
  readonly #parts: DockerAskerParts;
  readonly #admission: Admission;
  readonly #failed: FailedReply;
  readonly #block = Buffer.alloc(SLOT_BYTES);
  readonly #asking = new WeakMap<Client, AskingClient>();

  constructor(parts: DockerAskerParts) {
    this.#parts = parts;
    this.#admission = new Admission(parts.queriesMax);
    this.#failed = new FailedReply(parts);
  }

  readonly forward: Forward = (client, deferred, transport, respond) => {
    if (deferred.ask === undefined) return this.#parts.forward(client, deferred, transport, respond);
    const heldBytes = this.#admission.admit(client, deferred.query.length);
    const arrivedMs = this.#parts.now();
    const query: AskingQuery = {
      client,
      deferred,
      transport,
      respond,
      arrivedMs,
      heldBytes,
      answers: new Map<string, DockerAnswer>(),
      isDone: false,
    };
    const { ask } = deferred;
    guard.defer(client.number, () => {
      if (heldBytes === 0) this.#fail(query, RCODE.REFUSED);
      else
        client.slots.take(
          () => this.#guarded(query, () => this.#ask(query, ask)),
          () => this.#fail(query, RCODE.REFUSED),
        );
    });
  };

  /** An internal error ends the query, so that no client waits forever. */
  #guarded(query: AskingQuery, work: () => void): void {
    const { number } = query.client;
    if (!guard.run("upstream", number, work))
      guard.run("upstream", number, () => this.#fail(query, RCODE.SERVFAIL, true));
  }

  /** The same question of one client is asked once; of names that may be unknown, as many at once as may fail. */
  #ask(query: AskingQuery, ask: DockerAsk): void {
    const { client } = query;
    const key = askKey(ask);
    const asking = this.#asking.get(client) ?? new AskingClient();
    this.#asking.set(client, asking);
    const same = asking.queries.get(key);
    if (same !== undefined) {
      same.push(query);
      return;
    }
    const wasKnown = client.asked.isKept(key);
    const refused = wasKnown ? undefined : client.asked.refused(key);
    if (refused !== undefined) return this.#goOn(query, key, refused);
    if (!wasKnown && asking.unproven >= client.asked.unknownLeft) {
      asking.waiting.push({ query, ask });
      return;
    }
    if (!wasKnown) asking.unproven++;
    const all = [query];
    asking.queries.set(key, all);
    this.#askRecords(client, ask, (answer) => {
      asking.queries.delete(key);
      if (!wasKnown) asking.unproven--;
      const taken = client.asked.take(key, answer);
      for (const each of all) this.#guarded(each, () => this.#goOn(each, key, taken));
      for (const each of asking.waiting.splice(0)) this.#guarded(each.query, () => this.#askAgain(each));
    });
  }

  /** After it has waited, it may have its answer. */
  #askAgain({ query, ask }: WaitingAsk): void {
    const answer = query.client.asked.find(ask);
    if (answer === undefined) this.#ask(query, ask);
    else this.#goOn(query, askKey(ask), answer);
  }

  /** A name is known if it has an address of either family; before Docker 28, only if it has an IPv4 address. */
  #askRecords(client: Client, ask: DockerAsk, onAnswer: (answer: DockerAnswer) => void): void {
    const known = (v4: Uint8Array, v6: Uint8Array, target?: Uint8Array): void =>
      onAnswer({ kind: "known", v4, v6, target });
    if (ask.kind === "address") {
      this.#exchange(client, ask, TYPE.PTR, (answer) => {
        if (answer.kind !== "records") onAnswer(answer);
        else if (answer.data.length === 0) onAnswer({ kind: "unknown" });
        else known(NOTHING, NOTHING, answer.data);
      });
      return;
    }
    this.#exchange(client, ask, TYPE.A, (v4) => {
      if (v4.kind !== "records") onAnswer(v4);
      else if (!ask.hasIPv6) known(v4.data, NOTHING);
      else this.#exchange(client, ask, TYPE.AAAA, (v6) => known(v4.data, v6.kind === "records" ? v6.data : NOTHING));
    });
  }

  #exchange(client: Client, ask: DockerAsk, type: number, onRecords: (records: AskedRecords) => void): void {
    const asked = askMessage(ask, type, this.#parts.ids.next());
    let fd;
    try {
      fd = client.dial(DOCKER, "udp");
    } catch (error) {
      onRecords({ kind: "away", reason: reasonOf(error) });
      return;
    }
    const sent = { query: asked.message, hasOpt: true, udpSize: 0xffff };
    queryUdp(fd, 4, sent, LIMITS.swarmAskMs, (result) =>
      guard.run("upstream", client.number, () =>
        onRecords(
          result.kind === "failed"
            ? { kind: "away", reason: `Docker's resolver: ${result.reason}`, isOfName: mayBeForwarded(asked, result) }
            : readAsked(result.reply.message, asked),
        ),
      ),
    );
  }

  /** Answers with what is known by now, or asks for the next name that the answer needs. */
  #goOn(query: AskingQuery, key: string, answer: DockerAnswer): void {
    const { client, deferred, transport, respond, answers } = query;
    const { answerer, forward } = this.#parts;
    answers.set(key, answer);
    deferred.query.copy(this.#block);
    const isStream = transport === "tcp";
    const length = client.asked.during(answers, () => answerer.answerAgain(client, this.#block, deferred, isStream));
    if (length !== DEFERRED) return this.#respond(query, length, answer);
    const next = { ...answerer.takeDeferred(this.#block), ...(deferred.trace && { trace: deferred.trace }) };
    const { ask } = next;
    if (ask === undefined) {
      this.#release(query);
      return forward(client, next, transport, respond);
    }
    if (answers.size >= LIMITS.swarmPasses || answers.has(askKey(ask))) return this.#fail(query, RCODE.SERVFAIL, true);
    this.#ask(query, ask);
  }

  #respond(query: AskingQuery, length: number, answer: DockerAnswer): void {
    const { client, transport, arrivedMs, respond } = query;
    const { outcome } = this.#parts.answerer;
    this.#release(query);
    outcome.stage = STAGE.completed;
    if (answer.kind === "known") outcome.result = answer.isLast === true ? QUERY_RESULT.stale : QUERY_RESULT.forwarded;
    if (answer.kind === "known" && answer.isLast !== true) outcome.server = DOCKER;
    outcome.setTimes(transport === "tcp", arrivedMs, this.#parts.now());
    client.record(outcome);
    respond(this.#block.subarray(0, length), outcome);
  }

  #release(query: AskingQuery): void {
    query.isDone = true;
    this.#admission.release(query.client, query.heldBytes);
    query.client.slots.release();
  }

  /** `hasSlot`: it has one of the client's slots. */
  #fail(query: AskingQuery, rcode: number, hasSlot = false): void {
    const { client, heldBytes } = query;
    if (query.isDone) return;
    query.isDone = true;
    this.#admission.release(client, heldBytes);
    if (hasSlot) client.slots.release();
    this.#failed.send(query, rcode);
  }
}
