/**
 * Flight: one question on its way through a list of servers, within one budget of time. It ends exactly once, with a reply
 * or with what each server did instead; who waits for it is not its concern.
 *
 *   ask the first --(its patience is over)--> ask the next as well --(nobody left)--> ask again, less and less often
 *        |  it fails, refuses, says SERVFAIL or REFUSED: the next at once; nobody left: over
 *        |  it truncates: the same server by TCP
 *        v
 *      the first good reply ends it; so does the end of the budget
 */
import { setU16, u16 } from "../../base/dns/bytes.ts";
import { ADDITIONALS_AT, ID_AT, isTruncated } from "../../base/dns/header.ts";
import { DO, OPT_BYTES, OPT_FLAGS_AT } from "../../base/dns/opt.ts";
import { RCODE, rcodeName } from "../../base/dns/rcode.ts";
import { LIMITS } from "../../base/limits.ts";
import { reasonOf } from "../../base/lib/fault.ts";
import { guard } from "../../base/lib/guard.ts";
import { serverText } from "../../base/model/server-text.ts";
import type { Server } from "../../base/model/view.ts";
import type { UpstreamFailure } from "../record/meter.ts";
import { isReplyTo } from "../upstream/udp-socket.ts";
import { scrub } from "../wire/scrub.ts";
import { readFreshReply } from "../wire/shared-reply.ts";
import { type UpstreamReply, readReply } from "../wire/upstream-reply.ts";
import { UpstreamJournal } from "../trace.ts";
import type { ServerFailure, UpstreamQueryHooks, UpstreamQueryPlan, UpstreamResult } from "./upstream-query-plan.ts";
import { Attempt, type AttemptResult, type AttemptListener, askTcp } from "./attempt.ts";
import type { DeadlineTarget } from "./deadlines.ts";
import {
  type UpstreamCandidate,
  FORWARDING_LOOP,
  isAnyPending,
  isAnyUp,
  isLastUntried,
  orderServers,
  noteOrder,
} from "./server-order.ts";

/** What the kernel says of a server that is not there, or not to be reached. Everything else is no news of it. */
const UNREACHABLE = /\b(ECONNREFUSED|ECONNRESET|EHOSTUNREACH|EHOSTDOWN|ENETUNREACH|ENETDOWN|ETIMEDOUT)\b/;
/** What is wanting is the client's: its share, or its namespace. Whoever has joined has theirs. */
const CLIENT_LIMIT = /too many|not needed any more|not served any more/;
/** From the end of the question to the flags of the OPT behind it. */
const FLAGS_BEHIND_QUESTION = 1 + OPT_FLAGS_AT;
const INTERNAL_ERROR = "a defect of its own";
const ON_TRIAL = "it is down, and asked on trial beside another one";
/** What a server says that would rather not answer. */
const REFUSALS = new Set<number>([RCODE.SERVFAIL, RCODE.REFUSED]);

export class UpstreamQuery implements DeadlineTarget, AttemptListener<UpstreamCandidate> {
  step: number | undefined;
  readonly startMs: number;
  readonly #plan: UpstreamQueryPlan;
  readonly #hooks: UpstreamQueryHooks;
  readonly #line: readonly UpstreamCandidate[];
  /** When it is over, whatever has come until then. */
  #endMs: number;
  #lateMs: number;
  #stepMs = Number.POSITIVE_INFINITY;
  #againMs: number = LIMITS.retransmitMs;
  #connections: { destroy(): void }[] | undefined;
  #truncated: (Pick<UpstreamReply, "message" | "rcode"> & { readonly server: Server }) | undefined;
  #told: Buffer | undefined;
  #isOwnWant = false;
  #isStarting = true;
  #isOver = false;
  #journal: UpstreamJournal | undefined;

  constructor(plan: UpstreamQueryPlan, hooks: UpstreamQueryHooks) {
    this.#plan = plan;
    this.#hooks = hooks;
    this.startMs = hooks.now();
    this.#endMs = plan.endMs;
    this.#lateMs = plan.arrivedMs + LIMITS.staleAfterMs;
    this.#line = orderServers(plan, this.startMs);
  }

  get isDone(): boolean {
    return this.#isOver;
  }

  /** Kept from now on, for whoever has it explained. */
  get journal(): UpstreamJournal {
    if (this.#journal !== undefined) return this.#journal;
    this.#journal = new UpstreamJournal();
    noteOrder(this.#plan, this.#line, this.#journal, this.#hooks.now());
    return this.#journal;
  }

  start(): void {
    this.#guarded(() => this.#start());
  }

  /** A defect on the way ends the flight, so that nobody waits for it for ever. */
  #guarded(work: () => void): void {
    if (guard.run("upstream", this.#plan.clientNumber, work) || this.#isOver) return;
    this.#isStarting = true;
    this.#giveUp(INTERNAL_ERROR);
  }

  #start(): void {
    const { policy } = this.#plan;
    const now = this.startMs;
    const isSomeoneUp = isAnyUp(this.#line, now, this.#plan.clientNumber);
    if (policy.order === "parallel" || (!isSomeoneUp && policy.order === "adaptive")) {
      // Where nobody is known to answer there is no order to keep, and an old reply is as good as any.
      if (!isSomeoneUp) this.#lateMs = now;
      this.#stepMs = now + LIMITS.retransmitMs;
      const why = policy.order === "parallel" ? "all are asked at once" : "nobody is known to answer, so all are asked";
      for (const candidate of this.#line) if (this.#isEligible(candidate)) this.#ask(candidate, why);
    } else {
      for (const candidate of this.#line)
        if (candidate.nameserver.health.takeTrial(now, this.#plan.clientNumber)) this.#ask(candidate, ON_TRIAL);
      if (!this.#isOver) this.#askFresh("the first in line");
    }
    if (!this.#isOver && !isAnyPending(this.#line)) this.#giveUp();
    this.#isStarting = false;
    if (!this.#isOver) this.#arm();
  }

  #firstFresh(): UpstreamCandidate | undefined {
    for (const one of this.#line) if (one.state === "unasked" && this.#isEligible(one)) return one;
    return undefined;
  }

  onDue(): void {
    this.#guarded(() => this.#onDue());
  }

  #onDue(): void {
    const now = this.#hooks.now();
    if (now >= this.#endMs) return this.#giveUp();
    if (now >= this.#lateMs) {
      this.#lateMs = Number.POSITIVE_INFINITY;
      this.#journal?.note(now, undefined, "late: a reply that is over would do, if one is kept");
      this.#hooks.onLate(this);
    }
    if (now >= this.#stepMs) this.#next();
    if (!this.#isOver) this.#arm();
  }

  #arm(): void {
    this.#hooks.deadlines.set(this, Math.min(this.#endMs, this.#lateMs, this.#stepMs));
  }

  /** Asks the next server; where all have been asked, one that has not answered yet once more. */
  #next(): void {
    if (this.#askFresh("those before have been silent for longer than they should")) return;
    this.#againMs *= 2;
    this.#stepMs = this.#hooks.now() + this.#againMs;
    const waiting = this.#line.filter(
      ({ state, tries: asks }) => state === "asked" && asks < LIMITS.upstreamAttemptsPerServer,
    );
    const [again] = waiting.toSorted((a, b) => a.tries - b.tries);
    if (again !== undefined) this.#ask(again, "it has not answered yet");
  }

  /** Asks one that has not been asked; whether there was one. */
  #askFresh(why: string): boolean {
    const fresh = this.#firstFresh();
    if (fresh === undefined) return false;
    this.#stepMs = this.#hooks.now() + this.#patienceMs(fresh);
    this.#ask(fresh, why);
    return true;
  }

  /** A stub resolver knows who is to be asked for what; those behind it do not, and serve only where it is not there. */
  #isEligible({ nameserver }: UpstreamCandidate): boolean {
    if (nameserver.server.isBackup !== true) return true;
    return this.#line.every((one) => one.nameserver.server.isBackup === true || one.isUnreachable);
  }

  #patienceMs({ nameserver }: UpstreamCandidate): number {
    const { policy, hedges } = this.#plan;
    // Docker's own resolver asks several servers itself, one after the other, and loses nothing on the way.
    if (nameserver.server.from === "docker") return policy.budgetMs;
    if (isLastUntried(this.#line, nameserver)) return Math.max(LIMITS.retransmitMs, nameserver.health.patienceMs);
    if (policy.order === "sequential" || !hedges) return policy.budgetMs / this.#line.length;
    return nameserver.health.patienceMs;
  }

  #ask(candidate: UpstreamCandidate, why: string): void {
    candidate.state = "asked";
    candidate.tries++;
    if (this.#plan.usesTcp) return this.#askTcp(candidate, why);
    const { nameserver } = candidate;
    const now = this.#hooks.now();
    this.#journal?.note(now, nameserver.server, `asked by udp: ${why}`);
    let socket;
    try {
      socket = nameserver.sockets.draw(() => this.#plan.dial(nameserver.server, "udp"));
    } catch (error) {
      this.#meterFailure(candidate, "dial_error", now);
      this.#giveUpOn(candidate, reasonOf(error));
      return;
    }
    nameserver.health.recordQuery(now, this.#plan.clientNumber);
    socket.ask(this.#attempt(candidate, now, false));
  }

  #messageFor({ nameserver, isWithoutEdns: isPlain }: UpstreamCandidate, now: number): Buffer {
    const { message, isOptOurs, questionEnd, clientNumber: by } = this.#plan;
    // What is known of a server is nothing that a question for records of DNSSEC should lose them by.
    const wantsDnssec = ((message[questionEnd + FLAGS_BEHIND_QUESTION] ?? 0) & DO) !== 0;
    const isKnownPlain = !wantsDnssec && !nameserver.speaksEdns(now, by);
    if (!isOptOurs || !(isPlain || isKnownPlain)) return message;
    const plain = Buffer.from(message.subarray(0, message.length - OPT_BYTES));
    setU16(plain, ADDITIONALS_AT, 0);
    return plain;
  }

  #attempt(candidate: UpstreamCandidate, now: number, isStream: boolean): Attempt<UpstreamCandidate> {
    const { questionEnd, clientNumber: by } = this.#plan;
    const message = this.#messageFor(candidate, now);
    return new Attempt({ message, questionEnd, clientNumber: by }, this, candidate, now, isStream);
  }

  #askTcp(candidate: UpstreamCandidate, why: string): void {
    const { nameserver } = candidate;
    const { isTransfer, streamsTo } = this.#plan;
    const now = this.#hooks.now();
    this.#journal?.note(now, nameserver.server, `asked by tcp: ${why}`);
    try {
      if (isTransfer) this.#askAlone(candidate, now);
      else streamsTo(nameserver).ask(this.#attempt(candidate, now, true));
      nameserver.health.recordQuery(now, this.#plan.clientNumber);
    } catch (error) {
      this.#meterFailure(candidate, "dial_error", now, true);
      this.#giveUpOn(candidate, reasonOf(error), true);
    }
  }

  /** On a connection that ends with the flight. */
  #askAlone(candidate: UpstreamCandidate, now: number): void {
    const { fd, onClosed } = this.#plan.streamsTo(candidate.nameserver).openDedicated();
    const query = Buffer.from(this.#messageFor(candidate, now));
    setU16(query, ID_AT, this.#hooks.random());
    this.#connections ??= [];
    this.#connections.push(
      askTcp(fd, query, this.#endMs - now, (outcome) => {
        onClosed();
        this.#onTcpOutcome(candidate, query, now, outcome);
      }),
    );
  }

  #onTcpOutcome(candidate: UpstreamCandidate, query: Buffer, sentMs: number, outcome: AttemptResult): void {
    if (outcome.kind === "failed") {
      if (!this.#isOver) this.#meterFailure(candidate, "error", sentMs, true);
      this.#fail(candidate, outcome.reason);
    } else if (isReplyTo(outcome.reply.message, { message: query, questionEnd: this.#plan.questionEnd })) {
      this.#judge(candidate, outcome.reply, sentMs, true);
    } else {
      this.#fail(candidate, "it answered another question");
    }
  }

  onReply(candidate: UpstreamCandidate, message: Buffer, sentMs: number, isStream: boolean): void {
    this.#guarded(() => this.#onReply(candidate, message, sentMs, isStream));
  }

  #onReply(candidate: UpstreamCandidate, message: Buffer, sentMs: number, isStream: boolean): void {
    const reply = readReply(message, this.#plan.checksReplies);
    if (reply === undefined) {
      candidate.nameserver.health.recordAnswer(this.#hooks.now(), undefined, false, this.#plan.clientNumber);
      this.#meterFailure(candidate, "error", sentMs, isStream);
      this.#fail(candidate, "its answer cannot be parsed");
    } else {
      this.#judge(candidate, reply, sentMs, isStream);
    }
  }

  #judge(candidate: UpstreamCandidate, reply: UpstreamReply, sentMs: number, isStream: boolean): void {
    const { nameserver } = candidate;
    const now = this.#hooks.now();
    const failure = REFUSALS.has(reply.rcode) ? rcodeName(reply.rcode) : undefined;
    this.#hooks.meter?.recordReply(nameserver.server, isStream, reply.rcode, now - sentMs);
    nameserver.health.recordAnswer(
      now,
      isStream ? undefined : now - sentMs,
      failure === undefined,
      this.#plan.clientNumber,
    );
    // What comes after the end tells how the server is, and nothing else.
    if (this.#isOver) return;
    if (failure !== undefined) {
      this.#told ??= readFreshReply(reply.message)?.extendedError;
      return this.#fail(candidate, failure);
    }
    if (this.#deniesEdns(reply) && nameserver.speaksEdns(now, this.#plan.clientNumber) && !candidate.isWithoutEdns) {
      candidate.isWithoutEdns = true;
      this.#ask(candidate, "without EDNS, which it could not read");
      return;
    }
    // Only what then works is remembered: a name's own servers may say anything.
    if (candidate.isWithoutEdns && !this.#deniesEdns(reply)) nameserver.markWithoutEdns(now, this.#plan.clientNumber);
    const scrubbed = this.#plan.checksReplies ? scrub(reply.message) : reply.message;
    if (typeof scrubbed === "string") return this.#fail(candidate, scrubbed);
    const isCut = isTruncated(scrubbed);
    if (isCut && !isStream && this.#plan.fetchesWhole) {
      this.#truncated ??= { rcode: reply.rcode, message: Buffer.from(scrubbed), server: nameserver.server };
      // Where connections are swallowed, what there is has to do.
      this.#endMs = Math.min(this.#endMs, now + LIMITS.tcpFallbackMs);
      this.#stepMs = Number.POSITIVE_INFINITY;
      this.#askTcp(candidate, "its reply was truncated");
      return;
    }
    this.#journal?.replied(now, nameserver.server, `answered ${repliedText(reply, now - sentMs, isCut)}`);
    this.#end();
    const { rcode } = reply;
    const { server } = nameserver;
    const { isWithoutEdns: isPlain } = candidate;
    const isWhole = !isCut;
    this.#hooks.onResult(this, { kind: "reply", message: scrubbed, rcode, isWhole, server, isPlain, isOwnWant: false });
  }

  /** A server that knows EDNS says so when it refuses a query that has it (RFC 6891, 7). */
  #deniesEdns({ message, rcode }: UpstreamReply): boolean {
    if (!this.#plan.isOptOurs) return false;
    const isRefusal = rcode === RCODE.FORMERR || rcode === RCODE.NOTIMP || rcode === RCODE.BADVERS;
    return isRefusal && (rcode === RCODE.BADVERS || u16(message, ADDITIONALS_AT) === 0);
  }

  onUnreachable(candidate: UpstreamCandidate, reason: string, sentMs: number, isStream: boolean): void {
    this.#guarded(() => this.#onUnreachable(candidate, reason, sentMs, isStream));
  }

  #onUnreachable(candidate: UpstreamCandidate, reason: string, sentMs: number, isStream: boolean): void {
    if (!isStream || !this.#isOver) this.#meterFailure(candidate, "error", sentMs, isStream);
    // Whoever answers by UDP is well, and only cannot be had by TCP.
    if (isStream && !this.#plan.usesTcp) this.#fail(candidate, reason);
    else this.#giveUpOn(candidate, reason, isStream);
  }

  /** It cannot be reached. Whether that is the server's, or ours for want of descriptors or memory, the kernel says. */
  #giveUpOn(candidate: UpstreamCandidate, reason: string, isStream = false): void {
    candidate.isUnreachable = true;
    // A container asks by TCP when it likes; that is news of the server only where all do.
    const isNews = !isStream || this.#plan.policy.usesTcp;
    if (isNews && UNREACHABLE.test(reason)) candidate.nameserver.health.recordUnreachable(this.#hooks.now(), reason);
    this.#fail(candidate, reason);
  }

  /** Somebody guesses at the id: over TCP they would have to guess at much more. */
  onForgery(candidate: UpstreamCandidate): void {
    this.#guarded(() => {
      if (!this.#isOver) this.#askTcp(candidate, "somebody else sends replies");
    });
  }

  #fail(candidate: UpstreamCandidate, reason: string): void {
    if (this.#isOver) return;
    candidate.state = "bad";
    candidate.reason = reason;
    this.#isOwnWant ||= CLIENT_LIMIT.test(reason);
    this.#journal?.note(this.#hooks.now(), candidate.nameserver.server, `failed: ${reason}`);
    // Nobody left to ask, and none of those asked may still answer: there is nothing to wait for.
    if (!this.#askFresh("the one before failed") && !isAnyPending(this.#line)) this.#giveUp();
    if (!this.#isOver && !this.#isStarting) this.#arm();
  }

  #meterFailure({ nameserver }: UpstreamCandidate, failure: UpstreamFailure, sinceMs: number, isStream = false): void {
    this.#hooks.meter?.recordFailure(nameserver.server, isStream, failure, this.#hooks.now() - sinceMs);
  }

  #giveUp(why?: string): void {
    for (const one of this.#line) {
      if (one.state === "asked") this.#meterFailure(one, "timeout", this.startMs, this.#plan.usesTcp);
    }
    const truncated = why === undefined ? this.#truncated : undefined;
    this.#journal?.note(
      this.#hooks.now(),
      undefined,
      truncated === undefined ? "given up" : "the truncated reply has to do",
    );
    this.#end();
    const landing: UpstreamResult =
      truncated === undefined
        ? {
            kind: "failed",
            failures: why === undefined ? this.#failures() : [{ server: "dns11", reason: why }],
            wasSilent: this.#line.some(({ state, isUnreachable }) => state === "asked" || isUnreachable),
            told: this.#told,
            isOwnWant: this.#isOwnWant || why !== undefined,
          }
        : { kind: "reply", isWhole: false, isPlain: false, isOwnWant: this.#isOwnWant, ...truncated };
    // Nobody is called back before the call that started it has returned.
    if (this.#isStarting) guard.defer(this.#plan.clientNumber, () => this.#hooks.onResult(this, landing));
    else this.#hooks.onResult(this, landing);
  }

  #failures(): ServerFailure[] {
    const tried = this.#line.filter(({ tries: asks, state }) => asks > 0 || state === "bad");
    return [
      ...tried.map(({ nameserver, reason }) => ({ server: serverText(nameserver.server), reason })),
      ...this.#plan.looping.map(({ server }) => ({ server: serverText(server), reason: FORWARDING_LOOP })),
    ];
  }

  #end(): void {
    this.#isOver = true;
    this.#hooks.deadlines.clear(this);
    for (const connection of this.#connections ?? []) connection.destroy();
  }
}

function repliedText({ rcode }: UpstreamReply, ms: number, isCut: boolean): string {
  return `${rcodeName(rcode)} after ${ms.toFixed(1)} ms${isCut ? ", truncated" : ""}`;
}
