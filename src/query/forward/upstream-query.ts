/**
 * UpstreamQuery: one question, sent to a list of servers within one time budget. It ends exactly once, with a reply or
 * with the failure of each server. Its waiters are not its concern.
 *
 *   query the first --(no answer within its usual time)--> query the next as well --(none left)--> retry, ever less often
 *        |  it fails, is unreachable, replies SERVFAIL, REFUSED, FORMERR or NOTIMP: the next at once; none left: end
 *        |  its reply is truncated: the same server over TCP; it is silent there: the next over TCP
 *        |  it is silent: again without EDNS and AD, and over TCP if the client came that way
 *        v
 *      a good reply ends the query, once no server before it in the list may still answer: until then it is held;
 *      so does the end of the time budget
 *
 * The list decides which reply counts, because servers may know different names: the first one internal names, say, which the
 * second one denies. Asking the second one early may only save waiting.
 */
import { setU16 } from "../../base/dns/bytes.ts";
import { ID_AT, isTruncated } from "../../base/dns/header.ts";
import { RCODE, rcodeName } from "../../base/dns/rcode.ts";
import { LIMITS } from "../../base/limits.ts";
import { serverText } from "../../base/model/server-text.ts";
import { reasonOf } from "../../base/lib/fault.ts";
import { guard } from "../../base/lib/guard.ts";
import type { Server } from "../../base/model/view.ts";
import type { UpstreamFailure } from "../record/meter.ts";
import { isReplyTo } from "../upstream/udp-socket.ts";
import { zoneOf } from "../upstream/loop-guard.ts";
import { scrub, type UpstreamReply, readReply } from "../wire/scrub.ts";
import { readFreshReply } from "../wire/shared-reply.ts";
import { UpstreamJournal } from "../trace.ts";
import type { UpstreamQueryHooks, UpstreamQueryPlan, UpstreamResult, DeadlineTarget } from "./upstream-query-plan.ts";
import { Attempt, type AttemptResult, type AttemptListener, queryTcp } from "./attempt.ts";
import {
  AUTHENTIC,
  concernsClient,
  extrasOf,
  extrasText,
  formText,
  lacksExtras,
  learnFrom,
  learnFromRejection,
  leftAfterSilence,
  messageFor,
  rejectsExtras,
} from "./edns-fallback.ts";
import {
  type GoodReply,
  type UpstreamCandidate,
  WAITS_IN_QUEUE,
  TIMED_OUT,
  awaitedBefore,
  isAny,
  isAnyOpen,
  isAnyUp,
  isEligible,
  isRanked,
  isSkippedForOne,
  failuresOf,
  firstUntried,
  hedgeDelayMs,
  leastTried,
  orderServers,
  noteOrder,
  whyLower,
  passedOver,
  takesTrial,
} from "./server-order.ts";

/** How failures because of the client's own limits or namespace begin. Clients that joined have their own. */
const CLIENT_LIMIT = /^(?:too many |connection no longer needed|The namespace is no longer served)/;
const INTERNAL_ERROR = "internal error";
const TCP_BLOCKED = "the reply was truncated, and it does not answer over tcp";
const ON_TRIAL = "down, trial query";
const NO_ROOM = "too many bytes of the container wait, so its reply cannot be held";
/** Codes with which a server declines to answer. */
const REFUSALS = new Set<number>([RCODE.SERVFAIL, RCODE.REFUSED]);
/** Codes with which it does not understand the query. They are the answer if no server has another one. */
const NOT_UNDERSTOOD = new Set<number>([RCODE.FORMERR, RCODE.NOTIMP]);

/** A reply that is used if there is no better one. */
type LesserReply = Pick<UpstreamReply, "message" | "rcode"> & { readonly isWhole: boolean; readonly server: Server };

export class UpstreamQuery implements DeadlineTarget, AttemptListener<UpstreamCandidate> {
  step: number | undefined;
  indexInStep = -1;
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
  #truncated: LesserReply | undefined;
  #notUnderstood: LesserReply | undefined;
  #extendedError: Buffer | undefined;
  /** The best of the replies that wait for servers before theirs; its bytes are charged to the container's share. */
  #held: GoodReply | undefined;
  /** Until then a server that is down may still answer: none was up. */
  #noneUpUntilMs = 0;
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
    const { policy, clientNumber } = this.#plan;
    const now = this.startMs;
    this.#holdEarlier(now);
    const isAnyServerUp = isAnyUp(this.#candidates, now, clientNumber);
    if (policy.order === "parallel" || (!isAnyServerUp && policy.order === "adaptive")) {
      // No server is known to be up, so there is no preferred order, and a stale answer may be served at once.
      if (!isAnyServerUp) {
        this.#lateMs = now;
        this.#noneUpUntilMs = now + LIMITS.downAfterMs;
      }
      this.#stepMs = now + LIMITS.retransmitMs;
      const why = policy.order === "parallel" ? "all servers at once" : "no server is known to be up, so all are tried";
      for (const candidate of this.#candidates) {
        if (this.#isDone) break;
        if (candidate.state === "untried" && isEligible(this.#candidates, candidate)) this.#query(candidate, why, now);
      }
    } else {
      for (const candidate of this.#candidates) {
        if (this.#isDone) break;
        if (takesTrial(this.#candidates, candidate, now, clientNumber)) this.#query(candidate, ON_TRIAL, now);
      }
      if (!this.#isDone) this.#queryNext("first in order", now);
    }
    if (!this.#isDone && !this.#useHeld(now) && !isAnyOpen(this.#candidates)) this.#giveUp();
    this.#isStarting = false;
    if (!this.#isDone) this.#arm();
  }

  onDue(): void {
    this.#guarded(() => this.#onDue());
  }

  #onDue(): void {
    const now = this.#hooks.now();
    if (this.#useHeld(now)) return;
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
    let atMs = Math.min(this.#endMs, this.#lateMs, this.#stepMs);
    if (this.#held !== undefined) atMs = Math.min(atMs, this.#hooks.now() + LIMITS.heldCheckMs);
    this.#hooks.deadlines.set(this, atMs);
  }

  /** Queries the next server; if all have been queried, retries one that has not answered. */
  #next(now: number): void {
    const isTryingTcp = this.#plan.isStream && this.#tryTcp(now);
    const next = this.#queryNext("no reply within the usual time of the servers before", now);
    if (next !== undefined) return this.#askAgain(next, now);
    if (isTryingTcp) {
      this.#stepMs = now + LIMITS.retransmitMs;
      return;
    }
    this.#retryMs *= 2;
    this.#stepMs = now + this.#retryMs;
    // A reply that is being fetched over TCP is not requested over UDP again.
    const again = this.#truncated === undefined ? leastTried(this.#candidates) : undefined;
    if (again !== undefined) this.#query(again, "retry, no reply yet", now);
  }

  /** Asks each silent server over TCP, too: its UDP port may be filtered. Returns whether there was one. */
  #tryTcp(now: number): boolean {
    let isTrying = false;
    for (const candidate of this.#candidates) {
      if (candidate.state !== "pending" || candidate.tcpMs !== undefined) continue;
      isTrying = true;
      candidate.nameserver.silentTo.udp.recordSilence();
      this.#queryTcp(candidate, "no reply over udp, and the client came over tcp", now, false);
    }
    return isTrying;
  }

  /** Queries the next server that has not been tried; returns it, if there was one. */
  #queryNext(why: string, now: number): UpstreamCandidate | undefined {
    const next = firstUntried(this.#candidates, this.#held?.candidate.rank);
    if (next === undefined || (this.#held !== undefined && this.#isDown(next.nameserver, now))) return undefined;
    const delayMs = hedgeDelayMs(this.#plan, this.#candidates, next);
    const mayTryTcp = this.#plan.isStream && !this.#plan.usesTcp;
    this.#stepMs = now + (mayTryTcp ? Math.min(delayMs, next.nameserver.health.hedgeDelayMs) : delayMs);
    this.#query(next, why, now);
    return next;
  }

  /** Repeats the query to the servers before: they may only have lost a packet, and the reply of the next one waits for them. */
  #askAgain(next: UpstreamCandidate, now: number): void {
    if (this.#plan.policy.order !== "adaptive" || this.#plan.usesTcp) return;
    for (const candidate of this.#candidates) {
      if (candidate === next || candidate.state !== "pending" || candidate.isAskedAgain || candidate.isTcpOnly)
        continue;
      candidate.isAskedAgain = true;
      if (!this.#isDown(candidate.nameserver, now)) this.#query(candidate, "again, its packet may be lost", now, true);
    }
  }

  #isDown({ health }: UpstreamCandidate["nameserver"], now: number): boolean {
    return now >= this.#noneUpUntilMs && health.checkIsDown(now, this.#plan.clientNumber);
  }

  /** Sends the query to a server, or has it wait while the server has enough queries of the container. */
  #query(candidate: UpstreamCandidate, why: string, now: number, isRepeat = false): void {
    // Over TLS no network on the way can drop a query for what it contains.
    if (candidate.state === "pending" && candidate.nameserver.tls === undefined) {
      candidate.silentTo |= leftAfterSilence(this.#plan, candidate, now);
      candidate.omitted |= candidate.silentTo;
    }
    const queue = (candidate.queue ??= this.#plan.queueTo(candidate.nameserver));
    if (candidate.state !== "untried" || queue.tryEnter(candidate, now))
      return this.#send(candidate, why, now, isRepeat);
    candidate.state = "waiting";
    candidate.reason = WAITS_IN_QUEUE;
    this.#journal?.note(now, candidate.nameserver.server, `waits: ${WAITS_IN_QUEUE}`);
    queue.wait(candidate, () => {
      if (this.#isDone) queue.leave(candidate);
      else this.#guarded(() => this.#send(candidate, why, this.#hooks.now()));
    });
  }

  /** `isRepeat`: the query is repeated as part of the last try, which is no further sign of silence. */
  #send(candidate: UpstreamCandidate, why: string, now: number, isRepeat = false): void {
    candidate.state = "pending";
    candidate.reason = TIMED_OUT;
    if (!isRepeat) candidate.tries++;
    const { nameserver } = candidate;
    if (this.#plan.usesTcp || nameserver.tls !== undefined) return this.#queryTcp(candidate, why, now);
    if (this.#truncated !== undefined) return this.#queryTcp(candidate, `${why}; a reply was truncated`, now);
    if (nameserver.silentTo.udp.isKnown(now))
      return this.#queryTcp(candidate, `${why}; it does not answer over udp`, now);
    this.#journal?.note(now, nameserver.server, `sent over udp: ${why}${formText(this.#plan, candidate)}`);
    let socket;
    try {
      socket = nameserver.sockets.draw(now, () => this.#plan.dial(nameserver.server, "udp"));
    } catch (error) {
      this.#meterFailure(candidate, "dial_error", now);
      this.#giveUpOn(candidate, reasonOf(error));
      return;
    }
    if (isRepeat) nameserver.health.recordRepeat();
    else this.#recordQuery(candidate, now);
    const attempt = this.#attempt(candidate, now, false);
    socket.send(attempt, now);
    this.#plan.tap?.sent(nameserver.server, attempt.message, false);
  }

  #recordQuery({ nameserver, tries }: UpstreamCandidate, now: number): void {
    const { clientNumber, nameHash } = this.#plan;
    nameserver.health.recordQuery(now, clientNumber, nameHash + tries);
  }

  #attempt(candidate: UpstreamCandidate, now: number, isStream: boolean): Attempt<UpstreamCandidate> {
    const { questionEnd, clientNumber } = this.#plan;
    const message = messageFor(this.#plan, candidate, now);
    return new Attempt({ message, questionEnd, clientNumber }, this, candidate, now, isStream);
  }

  #queryTcp(candidate: UpstreamCandidate, why: string, now: number, isTcpOnly = true): void {
    const { nameserver } = candidate;
    const { isTransfer, streamsTo } = this.#plan;
    const transport = nameserver.tls === undefined ? "tcp" : "tls";
    this.#journal?.note(now, nameserver.server, `sent over ${transport}: ${why}${formText(this.#plan, candidate)}`);
    candidate.tcpMs = now;
    candidate.isTcpOnly = isTcpOnly;
    try {
      if (isTransfer) this.#queryDedicated(candidate, now);
      else {
        const attempt = this.#attempt(candidate, now, true);
        streamsTo(nameserver).send(attempt);
        this.#plan.tap?.sent(nameserver.server, attempt.message, true);
      }
      this.#recordQuery(candidate, now);
    } catch (error) {
      this.#meterFailure(candidate, "dial_error", now, true);
      if (isTcpOnly) this.#giveUpOn(candidate, reasonOf(error), true);
      else this.#journal?.note(now, nameserver.server, `not over tcp: ${reasonOf(error)}`);
    }
  }

  /** Uses a connection that is closed with the query. */
  #queryDedicated(candidate: UpstreamCandidate, now: number): void {
    const { fd, tls, onClosed } = this.#plan.streamsTo(candidate.nameserver).openDedicated();
    const query = Buffer.from(messageFor(this.#plan, candidate, now));
    setU16(query, ID_AT, this.#hooks.random());
    this.#plan.tap?.sent(candidate.nameserver.server, query, true);
    this.#connections ??= [];
    const onEnd = (outcome: AttemptResult): void => {
      onClosed();
      this.#onTcpOutcome(candidate, query, now, outcome);
    };
    this.#connections.push(queryTcp(fd, query, this.#endMs - now, onEnd, tls));
  }

  #onTcpOutcome(candidate: UpstreamCandidate, query: Buffer, sentMs: number, outcome: AttemptResult): void {
    if (outcome.kind === "failed") {
      if (!this.#isDone) this.#meterFailure(candidate, "error", sentMs, true);
      this.#fail(candidate, outcome.reason);
    } else if (isReplyTo(outcome.reply.message, { message: query, questionEnd: this.#plan.questionEnd })) {
      this.#judge(candidate, outcome.reply, sentMs, true, query);
    } else {
      this.#fail(candidate, "the reply is to another question");
    }
  }

  onReply(candidate: UpstreamCandidate, message: Buffer, sentMs: number, isStream: boolean, sent: Buffer): void {
    this.#guarded(() => this.#onReply(candidate, message, sentMs, isStream, sent));
  }

  #onReply(candidate: UpstreamCandidate, message: Buffer, sentMs: number, isStream: boolean, sent: Buffer): void {
    const reply = readReply(message, this.#plan.checksReplies);
    if (reply === undefined) {
      candidate.nameserver.health.recordFailure(this.#hooks.now(), undefined);
      this.#meterFailure(candidate, "error", sentMs, isStream);
      this.#fail(candidate, "the reply cannot be parsed");
    } else {
      this.#judge(candidate, reply, sentMs, isStream, sent);
    }
  }

  #judge(candidate: UpstreamCandidate, reply: UpstreamReply, sentMs: number, isStream: boolean, sent: Buffer): void {
    const { nameserver } = candidate;
    const { clientNumber, checksReplies, fetchesWhole } = this.#plan;
    const now = this.#hooks.now();
    const isFailure = REFUSALS.has(reply.rcode);
    const extras = extrasOf(this.#plan, sent, nameserver);
    const isRejected = rejectsExtras(extras, reply, nameserver, now);
    if (isRejected) learnFromRejection(extras, candidate, now);
    else this.#learn(candidate, extras, isStream, now);
    this.#hooks.meter?.recordReply(nameserver.server, isStream, reply.rcode, now - sentMs);
    this.#plan.tap?.replied(nameserver.server, reply.message, isStream, sentMs);
    const tookMs = isStream && nameserver.tls === undefined ? undefined : now - sentMs;
    candidate.queue?.recordAnswer(candidate, now);
    if (!isFailure) nameserver.health.recordAnswer(now, tookMs);
    else nameserver.health.recordFailure(now, tookMs);
    // A reply after the end affects only what is known of the server.
    if (this.#isDone) {
      if (now >= this.#endMs) this.#noteFailure(candidate, "late", now - sentMs);
      return;
    }
    const isDeclined = isFailure || NOT_UNDERSTOOD.has(reply.rcode);
    // The server was queried twice, and this is its second reply.
    if (candidate.state === "held" || (isDeclined && candidate.state === "failed")) return;
    if (isRejected) return this.#askWithoutExtras(candidate, extras, reply.rcode, now);
    const rejected = candidate.omitted & ~candidate.silentTo;
    // The server declines the question and not the AD bit in it, so it does answer such queries.
    if (isDeclined && (rejected & AUTHENTIC) !== 0) nameserver.silentTo.ad.recordAnswer(now);
    if (isFailure) {
      this.#noteFailure(candidate, rcodeName(reply.rcode));
      candidate.hasRefused = reply.rcode === RCODE.REFUSED;
      this.#extendedError ??= readFreshReply(reply.message)?.extendedError;
      return this.#fail(candidate, rcodeName(reply.rcode));
    }
    if (isDeclined) return this.#keepNotUnderstood(candidate, reply);
    // Only remembered once a query without EDNS works: an authoritative server may reply anything.
    if (rejected !== 0) nameserver.markWithoutEdns(now, clientNumber);
    if (checksReplies && !concernsClient(this.#plan, reply)) return this.#fail(candidate, rcodeName(reply.rcode));
    const message = checksReplies ? scrub(reply.message) : reply.message;
    if (typeof message === "string") return this.#fail(candidate, message);
    const isCut = isTruncated(message);
    if (isCut && !isStream && fetchesWhole) {
      const { rcode } = reply;
      this.#truncated ??= { rcode, message: Buffer.from(message), isWhole: false, server: nameserver.server };
      return this.#fetchWhole(candidate, now);
    }
    const text = `answered ${rcodeName(reply.rcode)} after ${(now - sentMs).toFixed(1)} ms${isCut ? ", truncated" : ""}`;
    const answer = {
      candidate,
      message,
      rcode: reply.rcode,
      isWhole: !isCut,
      lacksExtras: lacksExtras(this.#plan, extras, nameserver, now),
    };
    const awaited = this.#awaitedBefore(candidate.rank, now);
    if (awaited !== undefined) return this.#hold(answer, awaited, text);
    const held = this.#held?.candidate;
    if (held !== undefined && held.rank < candidate.rank) {
      this.#noteLower(candidate, held, text, now);
      this.#useHeld(now);
      return;
    }
    this.#journal?.replied(now, nameserver.server, `${text}${this.#whyLower(candidate.rank, now)}`);
    this.#use(answer);
  }

  #noteLower({ nameserver }: UpstreamCandidate, before: UpstreamCandidate, text: string, now: number): void {
    const what = `${text}: not needed, ${serverText(before.nameserver.server)} comes first`;
    this.#journal?.note(now, nameserver.server, what);
  }

  /** Repeats the query without what the server rejected. */
  #askWithoutExtras(candidate: UpstreamCandidate, extras: number, rcode: number, now: number): void {
    // A query without these extras has been sent already.
    if ((extras & ~candidate.omitted) === 0) return;
    candidate.omitted |= extras;
    this.#send(candidate, `it replied ${rcodeName(rcode)}`, now);
  }

  /** Records what the server answers, and what it was silent to. */
  #learn(candidate: UpstreamCandidate, extras: number, isStream: boolean, now: number): void {
    const { nameserver } = candidate;
    const { udp } = nameserver.silentTo;
    const silentTo = learnFrom(extras, candidate, now);
    if (silentTo !== 0)
      this.#journal?.note(now, nameserver.server, `does not answer queries with ${extrasText(silentTo)}`);
    if (!isStream) return udp.recordAnswer(now);
    this.#noteTcp(candidate, true, now);
    candidate.tcpMs = undefined;
    if (!candidate.isTcpOnly && udp.recordOther(now))
      this.#journal?.note(now, nameserver.server, "does not answer over udp");
  }

  /** Fetches a truncated reply from this server over TCP; where TCP is filtered, from the next server. */
  #fetchWhole(candidate: UpstreamCandidate, now: number): void {
    const { isStream, streamsTo } = this.#plan;
    const isBlocked = streamsTo(candidate.nameserver).isBlocked(now);
    if (isBlocked && isStream && firstUntried(this.#candidates) !== undefined)
      return this.#fail(candidate, TCP_BLOCKED);
    if (!isStream) {
      const isAwaiting = this.#awaitedBefore(candidate.rank, now) !== undefined;
      // If TCP is blocked, the truncated reply must do: a client over UDP asks again over TCP.
      if (isBlocked) return isAwaiting ? this.#fail(candidate, TCP_BLOCKED) : this.#endUnanswered();
      if (!isAwaiting) this.#endMs = Math.min(this.#endMs, now + LIMITS.tcpFallbackMs);
    }
    this.#stepMs = now + LIMITS.hedgeMsFirst;
    // The query over TCP may have been sent already.
    if (!isBlocked && candidate.tcpMs !== undefined) {
      candidate.isTcpOnly = true;
      return;
    }
    this.#queryTcp(candidate, "the reply was truncated", now);
  }

  /** Another server may understand the query. */
  #keepNotUnderstood(candidate: UpstreamCandidate, { rcode, message }: UpstreamReply): void {
    const { checksReplies } = this.#plan;
    const { server } = candidate.nameserver;
    const kept = checksReplies ? scrub(message) : message;
    if (typeof kept !== "string") this.#notUnderstood ??= { rcode, message: Buffer.from(kept), isWhole: true, server };
    this.#fail(candidate, rcodeName(rcode));
  }

  #noteTcp({ nameserver }: UpstreamCandidate, hasReplied: boolean, now: number): void {
    if (nameserver.tls !== undefined) return;
    nameserver.noteTcp(now, hasReplied);
    this.#plan.streamsTo(nameserver).note(now, hasReplied);
  }

  /** The server before this rank that may still answer, and whose reply would count instead. */
  #awaitedBefore(rank: number, now: number): UpstreamCandidate | undefined {
    if (rank === 0) return undefined;
    const { policy } = this.#plan;
    // In sequential order servers are asked one after the other, so only a reply to another client's query can be early.
    const mayBeEarly = policy.order === "adaptive" || (policy.order === "sequential" && this.#held?.isEarlier === true);
    const isOrdered = mayBeEarly && !policy.rotates;
    if (!isOrdered || now >= this.#plan.endMs - LIMITS.heldUntilMs) return undefined;
    return awaitedBefore(this.#candidates, rank, (nameserver) => this.#isDown(nameserver, now));
  }

  #hold(answer: GoodReply, awaited: UpstreamCandidate, text: string): void {
    const { candidate, message } = answer;
    const { server } = candidate.nameserver;
    const now = this.#hooks.now();
    const before = this.#held?.candidate;
    if (before !== undefined && before.rank < candidate.rank) {
      this.#noteLower(candidate, before, text, now);
      candidate.state = "held";
      return;
    }
    this.#release();
    if (!this.#plan.share.take(message.length)) return this.#fail(candidate, NO_ROOM);
    this.#journal?.note(now, server, `${text}: held until ${serverText(awaited.nameserver.server)} has answered`);
    candidate.state = "held";
    this.#held = { ...answer, message: Buffer.from(message) };
    this.#arm();
  }

  #holdEarlier(now: number): void {
    const { earlier, share } = this.#plan;
    if (earlier === undefined) return;
    const candidate = this.#candidates.find(({ nameserver }) => nameserver.server === earlier.server);
    if (candidate === undefined || !share.take(earlier.message.length)) return;
    candidate.state = "held";
    this.#held = { ...earlier, candidate, isWhole: true, isEarlier: true };
    this.#journal?.note(now, earlier.server, "has answered before: used if no server before it answers");
  }

  /** Uses the reply that is held, unless a server before it may still answer; returns whether it was used. */
  #useHeld(now: number): boolean {
    const held = this.#held;
    if (held === undefined || this.#awaitedBefore(held.candidate.rank, now) !== undefined) return false;
    const { nameserver, rank } = held.candidate;
    this.#journal?.replied(now, nameserver.server, `its ${rcodeName(held.rcode)} is used${this.#whyLower(rank, now)}`);
    this.#use(held);
    return true;
  }

  /** Why no server before this rank has answered instead. */
  #whyLower(rank: number, now: number): string {
    if (!isRanked(this.#plan.policy)) return "";
    return whyLower(this.#candidates, rank, (nameserver) => this.#isDown(nameserver, now));
  }

  #use({ candidate, message, rcode, isWhole, lacksExtras: lacks, isEarlier }: GoodReply): void {
    const { policy, clientNumber } = this.#plan;
    const { nameserver, rank } = candidate;
    const isLower = rank > 0 && isRanked(policy);
    const isClientLimit =
      isEarlier === true ||
      (isLower && (this.#isClientLimit || isSkippedForOne(this.#candidates, rank, this.#hooks.now(), clientNumber)));
    this.#end();
    this.#hooks.onResult(this, {
      kind: "reply",
      message,
      rcode,
      isWhole,
      server: nameserver.server,
      lacksExtras: lacks,
      isClientLimit,
      passedOver: passedOver(this.#candidates, candidate, isLower)?.nameserver.server,
    });
  }

  #release(): void {
    if (this.#held === undefined) return;
    this.#plan.share.give(this.#held.message.length);
    this.#held = undefined;
  }

  #noteFailure({ nameserver }: UpstreamCandidate, what: string, tookMs?: number): void {
    const failure = { what, atMs: this.#hooks.now(), ...(tookMs !== undefined && { tookMs }) };
    nameserver.noteFailure(zoneOf(this.#plan.message), failure);
  }

  onUnreachable(candidate: UpstreamCandidate, reason: string, sentMs: number, isStream: boolean): void {
    this.#guarded(() => this.#onUnreachable(candidate, reason, sentMs, isStream));
  }

  #onUnreachable(candidate: UpstreamCandidate, reason: string, sentMs: number, isStream: boolean): void {
    if (!isStream || !this.#isDone) this.#meterFailure(candidate, "error", sentMs, isStream);
    if (isStream && !this.#isDone) this.#noteTcp(candidate, false, this.#hooks.now());
    // The reply over UDP may still come.
    if (isStream && !candidate.isTcpOnly) {
      if (!this.#isDone) this.#journal?.note(this.#hooks.now(), candidate.nameserver.server, `not over tcp: ${reason}`);
      return;
    }
    // A server that answers over UDP is up, and only unavailable over TCP.
    if (isStream && !this.#plan.usesTcp && candidate.nameserver.tls === undefined) return this.#fail(candidate, reason);
    if (isStream) return this.#giveUpOn(candidate, reason, true);
    candidate.socketErrors++;
    // A single error may be forged, for the port of that socket.
    const isConfirmed = candidate.socketErrors >= LIMITS.downAfterSocketErrors;
    if (candidate.state === "held") return;
    if (isConfirmed) this.#markUnreachable(candidate, reason);
    else if (!this.#isDone) this.#send(candidate, `retry on another port: ${reason}`, this.#hooks.now());
  }

  /**
   * The server cannot be reached. The error shows whether the cause is the server, or our lack of descriptors or memory.
   */
  #giveUpOn(candidate: UpstreamCandidate, reason: string, isStream = false): void {
    // A container may use TCP at will; a failure affects the server's health only if all queries use TCP.
    const isRelevant = !isStream || this.#plan.policy.usesTcp || candidate.nameserver.tls !== undefined;
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
    if (this.#isDone || candidate.state === "held") return;
    candidate.state = "failed";
    candidate.reason = reason;
    this.#isClientLimit ||= CLIENT_LIMIT.test(reason);
    const now = this.#hooks.now();
    this.#journal?.note(now, candidate.nameserver.server, `failed: ${reason}`);
    // All servers have been tried and none may still answer: stop waiting.
    const isNextAsked = this.#queryNext("the server before failed", now) !== undefined;
    if (!isNextAsked && !this.#useHeld(now) && !isAnyOpen(this.#candidates)) this.#giveUp();
    if (!this.#isDone && !this.#isStarting) this.#arm();
  }

  #meterFailure({ nameserver }: UpstreamCandidate, failure: UpstreamFailure, sinceMs: number, isStream = false): void {
    this.#hooks.meter?.recordFailure(nameserver.server, isStream, failure, this.#hooks.now() - sinceMs);
  }

  /** The servers that may still answer have had their time. */
  #giveUp(why?: string): void {
    for (const candidate of this.#candidates) {
      if (candidate.state !== "pending") continue;
      this.#meterFailure(candidate, "timeout", this.startMs, candidate.isTcpOnly);
      if (candidate.isTcpOnly && candidate.nameserver.tls === undefined)
        this.#noteTcp(candidate, false, this.#hooks.now());
      else if (why === undefined) this.#noteFailure(candidate, "silent");
    }
    this.#endUnanswered(why);
  }

  #endUnanswered(why?: string): void {
    this.#isClientLimit ||= isAny(this.#candidates, "waiting");
    const lesser = why === undefined ? (this.#truncated ?? this.#notUnderstood) : undefined;
    const what = lesser === undefined ? "gave up" : `using the ${lesser.isWhole ? "error" : "truncated"} reply`;
    this.#journal?.note(this.#hooks.now(), undefined, what);
    this.#end();
    const result: UpstreamResult =
      lesser === undefined
        ? {
            kind: "failed",
            failures: why === undefined ? failuresOf(this.#plan, this.#candidates) : [{ server: "dns11", reason: why }],
            wasSilent: this.#candidates.some(({ state, isUnreachable }) => state === "pending" || isUnreachable),
            extendedError: this.#extendedError,
            isClientLimit: this.#isClientLimit || why !== undefined,
          }
        : { kind: "reply", lacksExtras: false, isClientLimit: this.#isClientLimit, passedOver: undefined, ...lesser };
    // Deferred: the caller must not be called back before its own call has returned.
    if (this.#isStarting) guard.defer(this.#plan.clientNumber, () => this.#hooks.onResult(this, result));
    else this.#hooks.onResult(this, result);
  }

  #end(): void {
    this.#isDone = true;
    this.#release();
    this.#hooks.deadlines.clear(this);
    for (const candidate of this.#candidates) {
      if (candidate.state === "waiting") candidate.queue?.cancel(candidate);
      else if (candidate.isTcpOnly && candidate.state === "pending") this.#noteSlowTcp(candidate);
    }
    for (const connection of this.#connections ?? []) connection.destroy();
  }

  /**
   * Another server was sooner. One that sent a truncated reply knows the answer, so if it is still silent over TCP, its TCP is filtered.
   */
  #noteSlowTcp(candidate: UpstreamCandidate): void {
    const now = this.#hooks.now();
    const isSilent = now - (candidate.tcpMs ?? now) >= LIMITS.hedgeMsFirst;
    if (isSilent && this.#truncated?.server === candidate.nameserver.server) this.#noteTcp(candidate, false, now);
  }
}
