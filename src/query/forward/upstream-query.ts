/**
 * UpstreamQuery: one question, sent to a list of servers within one time budget. It ends exactly once, with a reply or
 * with the failure of each server. Its waiters are not its concern.
 *
 *   query the first --(no answer within its usual time)--> query the next as well --(none left)--> retry, ever less often
 *        |  it fails, is unreachable, replies SERVFAIL or REFUSED: the next at once; none left: end
 *        |  its reply is truncated: the same server over TCP
 *        v
 *      the first good reply ends the query; so does the end of the time budget
 */
import { setU16 } from "../../base/dns/bytes.ts";
import { ID_AT, isTruncated } from "../../base/dns/header.ts";
import { RCODE, rcodeName } from "../../base/dns/rcode.ts";
import { LIMITS } from "../../base/limits.ts";
import { reasonOf } from "../../base/lib/fault.ts";
import { guard } from "../../base/lib/guard.ts";
import type { Server } from "../../base/model/view.ts";
import type { UpstreamFailure } from "../record/meter.ts";
import { isReplyTo } from "../upstream/udp-socket.ts";
import { zoneOf } from "../upstream/zone.ts";
import { scrub } from "../wire/scrub.ts";
import { readFreshReply } from "../wire/shared-reply.ts";
import { type UpstreamReply, readReply } from "../wire/upstream-reply.ts";
import { UpstreamJournal } from "../trace.ts";
import type { UpstreamQueryHooks, UpstreamQueryPlan, UpstreamResult } from "./upstream-query-plan.ts";
import { Attempt, type AttemptResult, type AttemptListener, queryTcp } from "./attempt.ts";
import type { DeadlineTarget } from "./deadlines.ts";
import { concernsClient, messageFor, rejectsEdns } from "./edns-fallback.ts";
import {
  type UpstreamCandidate,
  WAITS_IN_QUEUE,
  TIMED_OUT,
  isAny,
  isAnyOpen,
  isAnyUp,
  isEligible,
  failuresOf,
  firstUntried,
  hedgeDelayMs,
  leastTried,
  orderServers,
  noteOrder,
} from "./server-order.ts";

/** Failures because of the client's own limits or namespace. Clients that joined have their own. */
const CLIENT_LIMIT = /too many|no longer needed|no longer served/;
const INTERNAL_ERROR = "internal error";
const ON_TRIAL = "down, trial query";
/** Codes with which a server declines to answer. */
const REFUSALS = new Set<number>([RCODE.SERVFAIL, RCODE.REFUSED]);

export class UpstreamQuery implements DeadlineTarget, AttemptListener<UpstreamCandidate> {
  step: number | undefined;
  place = -1;
  readonly startMs: number;
  readonly #plan: UpstreamQueryPlan;
  readonly #hooks: UpstreamQueryHooks;
  readonly #candidates: readonly UpstreamCandidate[];
  /** When the query ends at the latest. */
  #endMs: number;
  #lateMs: number;
  #stepMs = Number.POSITIVE_INFINITY;
  #retryMs: number = LIMITS.retransmitMs;
  #connections: { destroy(): void }[] | undefined;
  #truncated: (Pick<UpstreamReply, "message" | "rcode"> & { readonly server: Server }) | undefined;
  #extendedError: Buffer | undefined;
  #isClientLimit = false;
  #isStarting = true;
  #isDone = false;
  #journal: UpstreamJournal | undefined;

  constructor(plan: UpstreamQueryPlan, hooks: UpstreamQueryHooks) {
    this.#plan = plan;
    this.#hooks = hooks;
    this.startMs = hooks.now();
    this.#endMs = plan.endMs;
    this.#lateMs = plan.arrivedMs + LIMITS.staleAfterMs;
    this.#candidates = orderServers(plan, this.startMs);
  }

  get isDone(): boolean {
    return this.#isDone;
  }

  /** Whether any server has the query, or has had it. */
  get isSent(): boolean {
    return this.#candidates.some(({ tries }) => tries > 0);
  }

  /** Starts a journal if there is none yet, for a query that is being explained. */
  openJournal(): UpstreamJournal {
    if (this.#journal !== undefined) return this.#journal;
    this.#journal = new UpstreamJournal();
    noteOrder(this.#plan, this.#candidates, this.#journal, this.#hooks.now());
    return this.#journal;
  }

  start(): void {
    this.#guarded(() => this.#start());
  }

  /** An internal error ends the query, so that no client waits forever. */
  #guarded(work: () => void): void {
    if (guard.run("upstream", this.#plan.clientNumber, work) || this.#isDone) return;
    this.#isStarting = true;
    this.#giveUp(INTERNAL_ERROR);
  }

  #start(): void {
    const { policy } = this.#plan;
    const now = this.startMs;
    const isAnyServerUp = isAnyUp(this.#candidates, now, this.#plan.clientNumber);
    if (policy.order === "parallel" || (!isAnyServerUp && policy.order === "adaptive")) {
      // No server is known to be up, so there is no preferred order, and a stale answer may be served at once.
      if (!isAnyServerUp) this.#lateMs = now;
      this.#stepMs = now + LIMITS.retransmitMs;
      const why = policy.order === "parallel" ? "all servers at once" : "no server is known to be up, so all are tried";
      for (const candidate of this.#candidates)
        if (isEligible(this.#candidates, candidate)) this.#query(candidate, why, now);
    } else {
      for (const candidate of this.#candidates)
        if (candidate.nameserver.health.takeTrial(now, this.#plan.clientNumber)) this.#query(candidate, ON_TRIAL, now);
      if (!this.#isDone) this.#queryNext("first in order", now);
    }
    if (!this.#isDone && !isAnyOpen(this.#candidates)) this.#giveUp();
    this.#isStarting = false;
    if (!this.#isDone) this.#arm();
  }

  onDue(): void {
    this.#guarded(() => this.#onDue());
  }

  #onDue(): void {
    const now = this.#hooks.now();
    if (now >= this.#endMs) return this.#giveUp();
    if (now >= this.#lateMs) {
      this.#lateMs = Number.POSITIVE_INFINITY;
      this.#journal?.note(now, undefined, "late: a stale answer may be served now");
      this.#hooks.onLate(this);
    }
    if (now >= this.#stepMs) this.#next(now);
    if (!this.#isDone) this.#arm();
  }

  #arm(): void {
    this.#hooks.deadlines.set(this, Math.min(this.#endMs, this.#lateMs, this.#stepMs));
  }

  /** Queries the next server; if all have been queried, retries one that has not answered. */
  #next(now: number): void {
    if (this.#queryNext("no reply within the usual time of the servers before", now)) return;
    this.#retryMs *= 2;
    this.#stepMs = now + this.#retryMs;
    const again = leastTried(this.#candidates);
    if (again !== undefined) this.#query(again, "retry, no reply yet", now);
  }

  /** Queries the next server that has not been tried; returns whether there was one. */
  #queryNext(why: string, now: number): boolean {
    const next = firstUntried(this.#candidates);
    if (next === undefined) return false;
    this.#stepMs = now + hedgeDelayMs(this.#plan, this.#candidates, next);
    this.#query(next, why, now);
    return true;
  }

  /** Sends the query to a server, or has it wait while the server has enough queries of the container. */
  #query(candidate: UpstreamCandidate, why: string, now: number): void {
    const queue = (candidate.queue ??= this.#plan.queueTo(candidate.nameserver));
    if (candidate.state !== "untried" || queue.tryEnter(candidate, now)) return this.#send(candidate, why, now);
    candidate.state = "waiting";
    candidate.reason = WAITS_IN_QUEUE;
    this.#journal?.note(now, candidate.nameserver.server, `waits: ${WAITS_IN_QUEUE}`);
    queue.wait(candidate, () => {
      if (this.#isDone) queue.leave(candidate);
      else this.#guarded(() => this.#send(candidate, why, this.#hooks.now()));
    });
  }

  #send(candidate: UpstreamCandidate, why: string, now: number): void {
    candidate.state = "pending";
    candidate.reason = TIMED_OUT;
    candidate.tries++;
    if (this.#plan.usesTcp) return this.#queryTcp(candidate, why, now);
    const { nameserver } = candidate;
    this.#journal?.note(now, nameserver.server, `sent over udp: ${why}`);
    let socket;
    try {
      socket = nameserver.sockets.draw(now, () => this.#plan.dial(nameserver.server, "udp"));
    } catch (error) {
      this.#meterFailure(candidate, "dial_error", now);
      this.#giveUpOn(candidate, reasonOf(error));
      return;
    }
    nameserver.health.recordQuery(now, this.#plan.clientNumber);
    socket.send(this.#attempt(candidate, now, false), now);
  }

  #attempt(candidate: UpstreamCandidate, now: number, isStream: boolean): Attempt<UpstreamCandidate> {
    const { questionEnd, clientNumber } = this.#plan;
    const message = messageFor(this.#plan, candidate, now);
    return new Attempt({ message, questionEnd, clientNumber }, this, candidate, now, isStream);
  }

  #queryTcp(candidate: UpstreamCandidate, why: string, now: number): void {
    const { nameserver } = candidate;
    const { isTransfer, streamsTo } = this.#plan;
    this.#journal?.note(now, nameserver.server, `sent over tcp: ${why}`);
    try {
      if (isTransfer) this.#queryDedicated(candidate, now);
      else streamsTo(nameserver).send(this.#attempt(candidate, now, true));
      nameserver.health.recordQuery(now, this.#plan.clientNumber);
    } catch (error) {
      this.#meterFailure(candidate, "dial_error", now, true);
      this.#giveUpOn(candidate, reasonOf(error), true);
    }
  }

  /** Uses a connection that is closed with the query. */
  #queryDedicated(candidate: UpstreamCandidate, now: number): void {
    const { fd, onClosed } = this.#plan.streamsTo(candidate.nameserver).openDedicated();
    const query = Buffer.from(messageFor(this.#plan, candidate, now));
    setU16(query, ID_AT, this.#hooks.random());
    this.#connections ??= [];
    this.#connections.push(
      queryTcp(fd, query, this.#endMs - now, (outcome) => {
        onClosed();
        this.#onTcpOutcome(candidate, query, now, outcome);
      }),
    );
  }

  #onTcpOutcome(candidate: UpstreamCandidate, query: Buffer, sentMs: number, outcome: AttemptResult): void {
    if (outcome.kind === "failed") {
      if (!this.#isDone) this.#meterFailure(candidate, "error", sentMs, true);
      this.#fail(candidate, outcome.reason);
    } else if (isReplyTo(outcome.reply.message, { message: query, questionEnd: this.#plan.questionEnd })) {
      this.#judge(candidate, outcome.reply, sentMs, true);
    } else {
      this.#fail(candidate, "the reply is to another question");
    }
  }

  onReply(candidate: UpstreamCandidate, message: Buffer, sentMs: number, isStream: boolean): void {
    this.#guarded(() => this.#onReply(candidate, message, sentMs, isStream));
  }

  #onReply(candidate: UpstreamCandidate, message: Buffer, sentMs: number, isStream: boolean): void {
    const reply = readReply(message, this.#plan.checksReplies);
    if (reply === undefined) {
      this.#recordFailure(candidate, undefined);
      this.#meterFailure(candidate, "error", sentMs, isStream);
      this.#fail(candidate, "the reply cannot be parsed");
    } else {
      this.#judge(candidate, reply, sentMs, isStream);
    }
  }

  #judge(candidate: UpstreamCandidate, reply: UpstreamReply, sentMs: number, isStream: boolean): void {
    const { nameserver } = candidate;
    const { clientNumber, checksReplies, fetchesWhole } = this.#plan;
    const now = this.#hooks.now();
    const isFailure = REFUSALS.has(reply.rcode);
    if (isStream) nameserver.noteTcp(now, true);
    this.#hooks.meter?.recordReply(nameserver.server, isStream, reply.rcode, now - sentMs);
    const tookMs = isStream ? undefined : now - sentMs;
    candidate.queue?.recordAnswer(candidate, now);
    if (!isFailure) nameserver.health.recordAnswer(now, tookMs);
    else this.#recordFailure(candidate, tookMs);
    // A reply after the end affects only the health of the server.
    if (this.#isDone) return;
    if (isFailure) {
      this.#extendedError ??= readFreshReply(reply.message)?.extendedError;
      return this.#fail(candidate, rcodeName(reply.rcode));
    }
    if (rejectsEdns(this.#plan, reply) && nameserver.speaksEdns(now, clientNumber) && !candidate.isWithoutEdns) {
      candidate.isWithoutEdns = true;
      this.#query(candidate, "retry without EDNS", now);
      return;
    }
    // Only remembered once a query without EDNS works: an authoritative server may reply anything.
    if (candidate.isWithoutEdns && !rejectsEdns(this.#plan, reply)) nameserver.markWithoutEdns(now, clientNumber);
    if (checksReplies && !concernsClient(this.#plan, reply)) return this.#fail(candidate, rcodeName(reply.rcode));
    const message = checksReplies ? scrub(reply.message) : reply.message;
    if (typeof message === "string") return this.#fail(candidate, message);
    const isCut = isTruncated(message);
    if (isCut && !isStream && fetchesWhole) {
      this.#truncated ??= { rcode: reply.rcode, message: Buffer.from(message), server: nameserver.server };
      // If TCP is blocked, the truncated reply must do.
      this.#endMs = Math.min(this.#endMs, now + LIMITS.tcpFallbackMs);
      this.#stepMs = Number.POSITIVE_INFINITY;
      this.#queryTcp(candidate, "the reply was truncated", now);
      return;
    }
    const text = `answered ${rcodeName(reply.rcode)} after ${(now - sentMs).toFixed(1)} ms${isCut ? ", truncated" : ""}`;
    this.#journal?.replied(now, nameserver.server, text);
    this.#end();
    const { rcode } = reply;
    const { server } = nameserver;
    const { isWithoutEdns } = candidate;
    const isWhole = !isCut;
    this.#hooks.onResult(this, { kind: "reply", message, rcode, isWhole, server, isWithoutEdns, isClientLimit: false });
  }

  #recordFailure({ nameserver }: UpstreamCandidate, tookMs: number | undefined): void {
    const { clientNumber, message } = this.#plan;
    nameserver.health.recordFailure(this.#hooks.now(), tookMs, clientNumber, zoneOf(message));
  }

  onUnreachable(candidate: UpstreamCandidate, reason: string, sentMs: number, isStream: boolean): void {
    this.#guarded(() => this.#onUnreachable(candidate, reason, sentMs, isStream));
  }

  #onUnreachable(candidate: UpstreamCandidate, reason: string, sentMs: number, isStream: boolean): void {
    if (!isStream || !this.#isDone) this.#meterFailure(candidate, "error", sentMs, isStream);
    if (isStream && !this.#isDone) candidate.nameserver.noteTcp(this.#hooks.now(), false);
    // A server that answers over UDP is up, and only unavailable over TCP.
    if (isStream && !this.#plan.usesTcp) return this.#fail(candidate, reason);
    if (isStream) return this.#giveUpOn(candidate, reason, true);
    candidate.socketErrors++;
    // The error may be forged, for the port of that socket.
    const isConfirmed = candidate.socketErrors >= LIMITS.downAfterSocketErrors;
    if (isConfirmed) this.#markUnreachable(candidate, reason);
    else if (!this.#isDone) this.#send(candidate, `retry on another port: ${reason}`, this.#hooks.now());
  }

  /**
   * The server cannot be reached. The error shows whether the cause is the server, or our lack of descriptors or memory.
   */
  #giveUpOn(candidate: UpstreamCandidate, reason: string, isStream = false): void {
    // A container may use TCP at will; a failure affects the server's health only if all queries use TCP.
    const isRelevant = !isStream || this.#plan.policy.usesTcp;
    if (isRelevant) candidate.nameserver.health.recordUnreachable(this.#hooks.now(), reason);
    this.#markUnreachable(candidate, reason);
  }

  #markUnreachable(candidate: UpstreamCandidate, reason: string): void {
    candidate.isUnreachable = true;
    this.#fail(candidate, reason);
  }

  /** Forged replies arrive: over TCP an attacker would have to guess much more than an id. */
  onForgery(candidate: UpstreamCandidate): void {
    this.#guarded(() => {
      if (!this.#isDone) this.#queryTcp(candidate, "forged replies arrived over udp", this.#hooks.now());
    });
  }

  #fail(candidate: UpstreamCandidate, reason: string): void {
    candidate.queue?.leave(candidate);
    if (this.#isDone) return;
    candidate.state = "failed";
    candidate.reason = reason;
    this.#isClientLimit ||= CLIENT_LIMIT.test(reason);
    const now = this.#hooks.now();
    this.#journal?.note(now, candidate.nameserver.server, `failed: ${reason}`);
    // All servers have been tried and none may still answer: stop waiting.
    if (!this.#queryNext("the server before failed", now) && !isAnyOpen(this.#candidates)) this.#giveUp();
    if (!this.#isDone && !this.#isStarting) this.#arm();
  }

  #meterFailure({ nameserver }: UpstreamCandidate, failure: UpstreamFailure, sinceMs: number, isStream = false): void {
    this.#hooks.meter?.recordFailure(nameserver.server, isStream, failure, this.#hooks.now() - sinceMs);
  }

  #giveUp(why?: string): void {
    for (const candidate of this.#candidates) {
      if (candidate.state !== "pending") continue;
      this.#meterFailure(candidate, "timeout", this.startMs, this.#plan.usesTcp);
      const isOverTcp = this.#plan.usesTcp || this.#truncated?.server === candidate.nameserver.server;
      if (isOverTcp) candidate.nameserver.noteTcp(this.#hooks.now(), false);
    }
    this.#isClientLimit ||= isAny(this.#candidates, "waiting");
    const truncated = why === undefined ? this.#truncated : undefined;
    const what = truncated === undefined ? "gave up" : "using the truncated reply";
    this.#journal?.note(this.#hooks.now(), undefined, what);
    this.#end();
    const result: UpstreamResult =
      truncated === undefined
        ? {
            kind: "failed",
            failures: why === undefined ? failuresOf(this.#plan, this.#candidates) : [{ server: "dns11", reason: why }],
            wasSilent: this.#candidates.some(({ state, isUnreachable }) => state === "pending" || isUnreachable),
            extendedError: this.#extendedError,
            isClientLimit: this.#isClientLimit || why !== undefined,
          }
        : { kind: "reply", isWhole: false, isWithoutEdns: false, isClientLimit: this.#isClientLimit, ...truncated };
    // Deferred: the caller must not be called back before its own call has returned.
    if (this.#isStarting) guard.defer(this.#plan.clientNumber, () => this.#hooks.onResult(this, result));
    else this.#hooks.onResult(this, result);
  }

  #end(): void {
    this.#isDone = true;
    this.#hooks.deadlines.clear(this);
    for (const candidate of this.#candidates) {
      if (candidate.state === "waiting") candidate.queue?.cancel(candidate);
    }
    for (const connection of this.#connections ?? []) connection.destroy();
  }
}
