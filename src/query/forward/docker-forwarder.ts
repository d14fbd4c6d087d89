/**
 * DockerForwarder: asks Docker's own resolver for the names that only it knows, before a query goes anywhere else. When Docker's resolver
 * has answered, the query is answered again from the start, with that answer at hand: a name that it does not know is treated as any other,
 * and one that it knows is answered like a local name.
 */
import { RCODE, rcodeName } from "../../base/dns/rcode.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import { guard } from "../../base/lib/guard.ts";
import { reasonOf } from "../../base/lib/fault.ts";
import type { RandomIds } from "../../base/lib/random-ids.ts";
import { LIMITS } from "../../base/limits.ts";
import type { Behaviour } from "../../base/model/behaviour.ts";
import { type DockerAnswer, type DockerQuestion, dockerQuestionKey } from "../../base/model/visible-names.ts";
import { QUERY_RESULT } from "../../base/model/query-record.ts";
import { DNS_PORT } from "../../base/model/server-text.ts";
import type { Server } from "../../base/model/view.ts";
import type { Client } from "../client/client.ts";
import { FailedReply, type WaitingQuery, Admission } from "./failed-reply.ts";
import { type AttemptResult, queryUdp } from "./attempt.ts";
import { DEFERRED, type DeferredQuery, type Forward, SLOT_BYTES } from "../ports.ts";
import { type Outcome, STAGE } from "../record/outcome.ts";
import { setU16, u16, u32 } from "../../base/dns/bytes.ts";
import {
  ADDITIONALS_AT,
  ANSWERS_AT,
  AUTHORITIES_AT,
  CODES_AT,
  HEADER_BYTES,
  QUESTIONS_AT,
  RA,
  isAuthoritative,
  isReply,
  isTruncated,
  rcodeOf,
} from "../../base/dns/header.ts";
import { LABELS_MAX, LABEL_BYTES_MAX, NAME_BYTES_MAX, POINTER, pointerTarget } from "../../base/dns/name.ts";
import { OPT_BYTES, OPT_SIZE_AT, writeOpt } from "../../base/dns/opt.ts";
import { queryOf } from "../../base/dns/query.ts";
import { DATA_LENGTH_AT, RECORD_FIXED_BYTES, TTL_AT, writeRecord } from "../../base/dns/record.ts";
import { resetNameSteps, skipName } from "../wire/name.ts";

/** Docker's resolver in the client's namespace, behind our rules. */
const DOCKER: Server = { from: "docker", address: "127.0.0.11", port: DNS_PORT };
const NOTHING = new Uint8Array(0);

/** Whether silence may mean that Docker's resolver has forwarded the query and waits: without the guard it may. */
function mayBeForwarded(
  { isGuarded }: DockerQuery,
  { isTimeout }: Extract<AttemptResult, { kind: "failed" }>,
): boolean {
  return !isGuarded && isTimeout === true;
}

/** Answers a query that was deferred for Docker's resolver, with what that resolver answered. */
interface AskingAnswerer {
  readonly outcome: Outcome;
  answerAgain(client: Client, block: Buffer, deferred: DeferredQuery, isStream: boolean): number;
  takeDeferred(block: Buffer): DeferredQuery;
}

interface DockerForwarderParts {
  readonly behaviour: Behaviour;
  readonly answerer: AskingAnswerer;
  /** Forwards queries that need nothing of Docker's resolver. */
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
interface WaitingQuestion {
  readonly query: AskingQuery;
  readonly question: DockerQuestion;
}

/** What one client waits for. */
class AskingClient {
  /** The queries that wait for one answer, by its key. */
  readonly queries = new Map<string, AskingQuery[]>();
  /** Questions in flight that Docker's resolver has not answered lately, so that it may not know the name. */
  unproven = 0;
  readonly waiting: WaitingQuestion[] = [];
}

export class DockerForwarder {
  readonly #parts: DockerForwarderParts;
  readonly #admission: Admission;
  readonly #failed: FailedReply;
  readonly #block = Buffer.alloc(SLOT_BYTES);
  readonly #asking = new WeakMap<Client, AskingClient>();

  constructor(parts: DockerForwarderParts) {
    this.#parts = parts;
    this.#admission = new Admission(parts.queriesMax);
    this.#failed = new FailedReply(parts);
  }

  readonly forward: Forward = (client, deferred, transport, respond) => {
    if (deferred.dockerQuestion === undefined) return this.#parts.forward(client, deferred, transport, respond);
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
    const { dockerQuestion } = deferred;
    guard.defer(client.number, () => {
      if (heldBytes === 0) this.#fail(query, RCODE.REFUSED);
      else
        client.slots.take(
          () => this.#guarded(query, () => this.#ask(query, dockerQuestion)),
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

  /** Sends the same question of one client once, and questions for possibly unknown names only as many at once as may fail. */
  #ask(query: AskingQuery, question: DockerQuestion): void {
    const { client } = query;
    const key = dockerQuestionKey(question);
    const asking = this.#asking.get(client) ?? new AskingClient();
    this.#asking.set(client, asking);
    const same = asking.queries.get(key);
    if (same !== undefined) {
      same.push(query);
      return;
    }
    const wasKnown = client.dockerAnswers.isKept(key);
    const refused = wasKnown ? undefined : client.dockerAnswers.refused(key);
    if (refused !== undefined) return this.#goOn(query, key, refused);
    if (!wasKnown && asking.unproven >= client.dockerAnswers.unknownLeft) {
      asking.waiting.push({ query, question });
      return;
    }
    if (!wasKnown) asking.unproven++;
    const all = [query];
    asking.queries.set(key, all);
    this.#askRecords(client, question, (answer) => {
      asking.queries.delete(key);
      if (!wasKnown) asking.unproven--;
      const taken = client.dockerAnswers.take(key, answer);
      for (const each of all) this.#guarded(each, () => this.#goOn(each, key, taken));
      for (const each of asking.waiting.splice(0)) this.#guarded(each.query, () => this.#askAgain(each));
    });
  }

  /** The answer may have come while the question waited. */
  #askAgain({ query, question }: WaitingQuestion): void {
    const answer = query.client.dockerAnswers.find(question);
    if (answer === undefined) this.#ask(query, question);
    else this.#goOn(query, dockerQuestionKey(question), answer);
  }

  /** A name is known if it has an address of either family; before Docker 28, only if it has an IPv4 address. */
  #askRecords(client: Client, question: DockerQuestion, onAnswer: (answer: DockerAnswer) => void): void {
    const known = (v4: Uint8Array, v6: Uint8Array, target?: Uint8Array): void =>
      onAnswer({ kind: "known", v4, v6, target });
    if (question.kind === "address") {
      this.#exchange(client, question, TYPE.PTR, (answer) => {
        if (answer.kind !== "records") onAnswer(answer);
        else if (answer.data.length === 0) onAnswer({ kind: "unknown" });
        else known(NOTHING, NOTHING, answer.data);
      });
      return;
    }
    this.#exchange(client, question, TYPE.A, (v4) => {
      if (v4.kind !== "records") onAnswer(v4);
      else if (!question.hasIPv6) known(v4.data, NOTHING);
      else
        this.#exchange(client, question, TYPE.AAAA, (v6) => known(v4.data, v6.kind === "records" ? v6.data : NOTHING));
    });
  }

  #exchange(client: Client, question: DockerQuestion, type: number, onRecords: (records: DockerRecords) => void): void {
    const asked = dockerQuery(question, type, this.#parts.ids.next());
    let fd;
    try {
      fd = client.dial(DOCKER, "udp");
    } catch (error) {
      onRecords({ kind: "away", reason: reasonOf(error) });
      return;
    }
    const sent = { query: asked.message, hasOpt: true, udpSize: 0xffff };
    queryUdp(fd, 4, sent, LIMITS.askedWaitMs, (result) =>
      guard.run("upstream", client.number, () =>
        onRecords(
          result.kind === "failed"
            ? { kind: "away", reason: `Docker's resolver: ${result.reason}`, isOfName: mayBeForwarded(asked, result) }
            : readDockerReply(result.reply.message, asked),
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
    const length = client.dockerAnswers.during(answers, () =>
      answerer.answerAgain(client, this.#block, deferred, isStream),
    );
    if (length !== DEFERRED) return this.#respond(query, length, answer);
    const next = { ...answerer.takeDeferred(this.#block), ...(deferred.trace && { trace: deferred.trace }) };
    const { dockerQuestion } = next;
    if (dockerQuestion === undefined) {
      this.#release(query);
      return forward(client, next, transport, respond);
    }
    if (answers.size >= LIMITS.askedPasses || answers.has(dockerQuestionKey(dockerQuestion)))
      return this.#fail(query, RCODE.SERVFAIL, true);
    this.#ask(query, dockerQuestion);
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

  /** `hasSlot`: the query holds one of the client's slots. */
  #fail(query: AskingQuery, rcode: number, hasSlot = false): void {
    const { client, heldBytes } = query;
    if (query.isDone) return;
    query.isDone = true;
    this.#admission.release(client, heldBytes);
    if (hasSlot) client.slots.release();
    this.#failed.send(query, rcode);
  }
}

/** Priority 1, the root as target, the parameter alpn (1) with one protocol name of length 0. */
const EMPTY_ALPN = Uint8Array.of(0, 1, 0, 0, 1, 0, 1, 0);
const SVCB = 64;
/** Room for every address of a large service. */
const REPLY_BYTES = 0xffff;
/** The TTL of all that Docker's resolver answers itself. */
const DOCKER_TTL = 600;
/** Labels and pointers of a name: as many as a name has labels, each behind a pointer. */
const NAME_STEPS_MAX = 2 * LABELS_MAX;

/**
 * What is sent to Docker's resolver, and what a reply to it must repeat. That resolver forwards what it does not know
 * to the servers it has, whatever our routes say, and its reply does not tell which of the two it did.
 *
 * So the question carries a record that its DNS library can read, but refuses to write: an SVCB record with an empty
 * protocol name. A name that it knows is answered from its own tables, without that record. To forward, it would have to
 * write the whole query again, which fails before a byte is sent: SERVFAIL, and a line in dockerd's log.
 */
interface DockerQuery {
  readonly message: Buffer;
  readonly questionEnd: number;
  readonly type: number;
  readonly isGuarded: boolean;
}

/** The query, with an OPT for long replies and the guard. */
export function dockerQuery({ labels, isGuarded }: DockerQuestion, type: number, id: number): DockerQuery {
  const question = queryOf({ labels, type, id });
  const unwritable = Buffer.alloc(1 + RECORD_FIXED_BYTES + EMPTY_ALPN.length);
  unwritable.set(EMPTY_ALPN, writeRecord(unwritable, 1, SVCB, 0, EMPTY_ALPN.length));
  const opt = Buffer.alloc(OPT_BYTES);
  writeOpt(opt, 0, 0, false);
  setU16(opt, 1 + OPT_SIZE_AT, REPLY_BYTES);
  const message = Buffer.concat([question, ...(isGuarded ? [unwritable] : []), opt]);
  setU16(message, ADDITIONALS_AT, isGuarded ? 2 : 1);
  return { message, questionEnd: question.length, type, isGuarded };
}

/** What the data of the reply's records are, concatenated; "unknown" if Docker's resolver does not have the name. */
export type DockerRecords =
  | { readonly kind: "records"; readonly data: Uint8Array }
  | Exclude<DockerAnswer, KnownAnswer>;
type KnownAnswer = { readonly kind: "known" };

/**
 * Reads a reply that has been validated, and has the id of the query. A program in the container can send one in the place of
 * Docker's resolver; then only that container is misled.
 */
export function readDockerReply(reply: Buffer, asked: DockerQuery): DockerRecords {
  const rcode = rcodeOf(reply);
  if (rcode === RCODE.FORMERR || rcode === RCODE.REFUSED || rcode === RCODE.NOTIMP)
    return { kind: "away", reason: `Docker's resolver answered ${rcodeName(rcode)}` };
  if (!isOfQuestion(reply, asked)) return { kind: "away", reason: "Docker's resolver answered another question" };
  if (rcode !== RCODE.NOERROR) return { kind: "unknown" };
  // With the guard, only a name of Docker's own has an answer without an error.
  if (!asked.isGuarded && !isDockers(reply)) return { kind: "unknown" };
  // A truncated answer has some of the addresses, as any client of Docker's resolver would get; one without any is no answer.
  if (isTruncated(reply) && u16(reply, ANSWERS_AT) === 0)
    return { kind: "away", reason: "Docker's resolver truncated the whole answer" };
  return recordsOf(reply, asked);
}

/** Docker's resolver repeats the question byte by byte. */
function isOfQuestion(reply: Buffer, { message, questionEnd }: DockerQuery): boolean {
  if (!isReply(reply) || u16(reply, QUESTIONS_AT) !== 1 || reply.length < questionEnd) return false;
  return reply.compare(message, HEADER_BYTES, questionEnd, HEADER_BYTES, questionEnd) === 0;
}

/**
 * Says without the guard whether Docker's resolver wrote the reply itself. Servers answer a query with an OPT with one.
 */
function isDockers(message: Buffer): boolean {
  const isPlain = u16(message, AUTHORITIES_AT) === 0 && u16(message, ADDITIONALS_AT) === 0;
  return isPlain && u16(message, ANSWERS_AT) > 0 && !isAuthoritative(message) && hasRecursion(message);
}

function hasRecursion(message: Buffer): boolean {
  return ((message[CODES_AT] as number) & RA) !== 0;
}

function recordsOf(message: Buffer, { questionEnd, type, isGuarded }: DockerQuery): DockerRecords {
  const end = message.length;
  resetNameSteps(end);
  let at = questionEnd;
  const all: Uint8Array[] = [];
  for (let left = u16(message, ANSWERS_AT); left > 0 && all.length < LIMITS.askedAddresses; left--) {
    const fixed = skipName(message, 0, at, end);
    const data = fixed + RECORD_FIXED_BYTES;
    if (fixed === -1 || data > end) break;
    at = data + u16(message, fixed + DATA_LENGTH_AT);
    if (at > end) break;
    if (!isGuarded && u32(message, fixed + TTL_AT) !== DOCKER_TTL) return { kind: "unknown" };
    const each = u16(message, fixed) === type ? dataOf(message, type, data, at) : undefined;
    if (each !== undefined) all.push(each);
  }
  return { kind: "records", data: type === TYPE.PTR ? (all[0] ?? new Uint8Array(0)) : Buffer.concat(all) };
}

function dataOf(message: Buffer, type: number, at: number, end: number): Uint8Array | undefined {
  if (type === TYPE.PTR) return expandedName(message, at);
  return end - at === (type === TYPE.A ? 4 : 16) ? Uint8Array.from(message.subarray(at, end)) : undefined;
}

/** The name at `start`, without compression and with its terminating zero; undefined if it is none, or too long. */
function expandedName(message: Buffer, start: number): Uint8Array | undefined {
  const labels: Uint8Array[] = [];
  let bytes = 0;
  let at = start;
  for (let step = 0; step < NAME_STEPS_MAX; step++) {
    const length = message[at];
    if (length === undefined) return undefined;
    if (length === 0) return Buffer.concat([...labels, Uint8Array.of(0)]);
    if (length >= POINTER) at = pointerTarget(message, at);
    else {
      bytes += 1 + length;
      if (length > LABEL_BYTES_MAX || bytes > NAME_BYTES_MAX) return undefined;
      labels.push(Uint8Array.from(message.subarray(at, at + 1 + length)));
      at += 1 + length;
    }
  }
  return undefined;
}
