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
import { LIMITS } from "../../config/limits.ts";
import { reasonOf } from "../../lib/fault.ts";
import { rcodeName } from "../../model/rcode.ts";
import { serverText } from "../../model/server-text.ts";
import type { AskPolicy } from "../../model/upstream-policy.ts";
import type { Server } from "../../model/view.ts";
import type { Dial } from "../asker.ts";
import type { Meter, UpstreamFailure } from "../meter.ts";
import type { Nameserver } from "../upstream/nameserver.ts";
import { isReplyTo } from "../upstream/udp-socket.ts";
import { RCODE } from "../wire/reply.ts";
import { scrub } from "../wire/scrub.ts";
import { freshReply } from "../wire/shared-reply.ts";
import { type UpstreamReply, readReply } from "../wire/upstream-reply.ts";
import { FlightJournal } from "../trace.ts";
import { type Outcome, type Sender, UdpAttempt, askTcp } from "./attempt.ts";
import type { Deadlines, Due } from "./deadlines.ts";
import { type Candidate, isAnyAsked, isAnyUp, isLastUnasked, lineUp, tellLine } from "./line-up.ts";

export type Landing =
  | {
      readonly kind: "reply";
      readonly message: Buffer;
      readonly rcode: number;
      readonly isWhole: boolean;
      readonly server: Server;
    }
  | {
      readonly kind: "failed";
      readonly failures: readonly Failure[];
      readonly wasSilent: boolean;
      /** What a server itself said of why, as an option. */
      readonly told: Buffer | undefined;
    };

/** What one server did instead of answering. */
interface Failure {
  readonly server: string;
  readonly reason: string;
}

export interface FlightPlan {
  readonly nameservers: readonly Nameserver[];
  readonly policy: AskPolicy;
  readonly hedges: boolean;
  readonly fetchesWhole: boolean;
  /** Replies are read strictly, and scrubbed. */
  readonly checksReplies: boolean;
  readonly usesTcp: boolean;
  /** When whoever asked first has waited long enough. */
  readonly endMs: number;
  readonly dial: Dial;
  /** The query; the flight writes ids into it. */
  readonly message: Buffer;
  readonly questionEnd: number;
  /** The EDNS in it is ours, and may be left out for a server that takes none. */
  readonly isOptOurs: boolean;
  /** With which of the servers to begin, where they take turns. */
  readonly turn: number;
}

/** The same for all flights: there may be thousands in the air, and each is no more than what is its own. */
export interface FlightHooks {
  readonly now: () => number;
  readonly random: () => number;
  readonly deadlines: Deadlines;
  /** How many connections to servers all flights together have. */
  readonly connections: { open: number };
  readonly meter?: Pick<Meter, "replied" | "failed"> | undefined;
  readonly onLanded: (flight: Flight, landing: Landing) => void;
  /** It takes so long that an old reply would do. */
  readonly onLate: (flight: Flight) => void;
}

const ON_TRIAL = "it is down, and asked on trial beside another one";
const OPT_BYTES = 11;
const ADDITIONALS_AT = 10;
const RCODE_NAMES = new Map<number, string>([
  [RCODE.SERVFAIL, "SERVFAIL"],
  [RCODE.REFUSED, "REFUSED"],
]);

export class Flight implements Due, Sender<Candidate> {
  step: number | undefined;
  readonly startMs: number;
  readonly #plan: FlightPlan;
  readonly #hooks: FlightHooks;
  readonly #line: readonly Candidate[];
  /** When it is over, whatever has come until then. */
  #endMs: number;
  #lateMs: number;
  #stepMs = Number.POSITIVE_INFINITY;
  #againMs: number = LIMITS.askAgainMs;
  #connections: { destroy(): void }[] | undefined;
  #truncated: (UpstreamReply & { readonly server: Server }) | undefined;
  #told: Buffer | undefined;
  #isStarting = true;
  #isOver = false;
  #journal: FlightJournal | undefined;

  constructor(plan: FlightPlan, hooks: FlightHooks) {
    this.#plan = plan;
    this.#hooks = hooks;
    this.startMs = hooks.now();
    this.#endMs = plan.endMs;
    this.#lateMs = this.startMs + LIMITS.staleAfterMs;
    this.#line = lineUp(plan, this.startMs);
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Kept from now on, for whoever has it explained. */
  get journal(): FlightJournal {
    if (this.#journal !== undefined) return this.#journal;
    this.#journal = new FlightJournal();
    tellLine(this.#plan, this.#line, this.#journal, this.#hooks.now());
    return this.#journal;
  }

  start(): void {
    const { policy } = this.#plan;
    const now = this.startMs;
    const isSomeoneUp = isAnyUp(this.#line, now);
    if (policy.order === "race" || (!isSomeoneUp && policy.order === "adaptive")) {
      // Where nobody is known to answer there is no order to keep, and an old reply is as good as any.
      if (!isSomeoneUp) this.#lateMs = now;
      this.#stepMs = now + LIMITS.askAgainMs;
      const why = policy.order === "race" ? "all are asked at once" : "nobody is known to answer, so all are asked";
      for (const candidate of this.#line) if (this.#isEligible(candidate)) this.#ask(candidate, why);
    } else {
      for (const candidate of this.#line)
        if (candidate.nameserver.health.takeTrial(now)) this.#ask(candidate, ON_TRIAL);
      if (!this.#isOver) this.#askFresh("the first in line");
    }
    if (!this.#isOver && !isAnyAsked(this.#line)) this.#giveUp();
    this.#isStarting = false;
    if (!this.#isOver) this.#arm();
  }

  #firstFresh(): Candidate | undefined {
    for (const one of this.#line) if (one.state === "unasked" && this.#isEligible(one)) return one;
    return undefined;
  }

  /** A server was found to lead back to us. */
  leaveOut(nameserver: Nameserver): void {
    const candidate = this.#line.find((one) => one.nameserver === nameserver && one.state !== "bad");
    if (candidate !== undefined) this.#fail(candidate, "it leads back to dns11");
  }

  onDue(): void {
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
    const waiting = this.#line.filter(({ state, asks }) => state === "asked" && asks < LIMITS.upstreamAsksPerServer);
    const [again] = waiting.toSorted((a, b) => a.asks - b.asks);
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
  #isEligible({ nameserver }: Candidate): boolean {
    if (nameserver.server.isBackup !== true) return true;
    return this.#line.every((one) => one.nameserver.server.isBackup === true || one.isUnreachable);
  }

  #patienceMs({ nameserver }: Candidate): number {
    const { policy, hedges } = this.#plan;
    // Docker's own resolver asks several servers itself, one after the other, and loses nothing on the way.
    if (nameserver.server.from === "door") return policy.budgetMs;
    if (isLastUnasked(this.#line, nameserver)) return Math.max(LIMITS.askAgainMs, nameserver.health.patienceMs);
    if (policy.order === "strict" || !hedges) return policy.budgetMs / this.#line.length;
    return nameserver.health.patienceMs;
  }

  #ask(candidate: Candidate, why: string): void {
    candidate.state = "asked";
    candidate.asks++;
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
    nameserver.health.asked(now);
    socket.ask(new UdpAttempt(this.#messageFor(nameserver, now), this.#plan.questionEnd, this, candidate, now));
  }

  #messageFor(nameserver: Nameserver, now: number): Buffer {
    const { message, isOptOurs } = this.#plan;
    if (!isOptOurs || nameserver.speaksEdns(now)) return message;
    const plain = Buffer.from(message.subarray(0, message.length - OPT_BYTES));
    plain.writeUInt16BE(0, ADDITIONALS_AT);
    return plain;
  }

  #askTcp(candidate: Candidate, why: string): void {
    const { nameserver } = candidate;
    const { connections } = this.#hooks;
    const now = this.#hooks.now();
    this.#journal?.note(now, nameserver.server, `asked by tcp: ${why}`);
    if (connections.open >= LIMITS.upstreamConnections) return this.#fail(candidate, "too many connections are open");
    let fd;
    try {
      fd = this.#plan.dial(nameserver.server, "tcp");
    } catch (error) {
      this.#meterFailure(candidate, "dial_error", now, true);
      this.#giveUpOn(candidate, reasonOf(error));
      return;
    }
    const query = Buffer.from(this.#messageFor(nameserver, now));
    query.writeUInt16BE(this.#hooks.random(), 0);
    nameserver.health.asked(now);
    connections.open++;
    this.#connections ??= [];
    this.#connections.push(
      askTcp(fd, query, this.#endMs - now, (outcome) => {
        connections.open--;
        this.#onTcpOutcome(candidate, query, now, outcome);
      }),
    );
  }

  #onTcpOutcome(candidate: Candidate, query: Buffer, sentMs: number, outcome: Outcome): void {
    if (outcome.kind === "failed") {
      if (!this.#isOver) this.#meterFailure(candidate, "error", sentMs, true);
      if (this.#plan.usesTcp && !this.#isOver) this.#giveUpOn(candidate, outcome.reason);
      else this.#fail(candidate, outcome.reason);
    } else if (isReplyTo(outcome.reply.message, { message: query, questionEnd: this.#plan.questionEnd })) {
      this.#judge(candidate, outcome.reply, sentMs, true);
    } else {
      this.#fail(candidate, "it answered another question");
    }
  }

  onReply(candidate: Candidate, message: Buffer, sentMs: number): void {
    const reply = readReply(message, this.#plan.checksReplies);
    if (reply === undefined) {
      candidate.nameserver.health.answered(this.#hooks.now(), undefined, false);
      this.#meterFailure(candidate, "error", sentMs);
      this.#fail(candidate, "its answer cannot be parsed");
    } else {
      this.#judge(candidate, reply, sentMs, false);
    }
  }

  #judge(candidate: Candidate, reply: UpstreamReply, sentMs: number, isStream: boolean): void {
    const { nameserver } = candidate;
    const now = this.#hooks.now();
    const failure = RCODE_NAMES.get(reply.rcode);
    this.#hooks.meter?.replied(nameserver.server, isStream, reply.rcode, now - sentMs);
    nameserver.health.answered(now, isStream ? undefined : now - sentMs, failure === undefined);
    // What comes after the end tells how the server is, and nothing else.
    if (this.#isOver) return;
    if (failure !== undefined) {
      this.#told ??= freshReply(reply.message)?.extendedError;
      return this.#fail(candidate, failure);
    }
    if (this.#deniesEdns(reply) && nameserver.speaksEdns(now)) {
      nameserver.takesNoEdns(now);
      this.#ask(candidate, "without EDNS, which it could not read");
      return;
    }
    const scrubbed = this.#plan.checksReplies ? scrub(reply.message) : reply.message;
    if (typeof scrubbed === "string") return this.#fail(candidate, scrubbed);
    const isTruncated = ((scrubbed[2] as number) & 0x02) !== 0;
    if (isTruncated && !isStream && this.#plan.fetchesWhole) {
      this.#truncated ??= { rcode: reply.rcode, message: Buffer.from(scrubbed), server: nameserver.server };
      // Where connections are swallowed, what there is has to do.
      this.#endMs = Math.min(this.#endMs, now + LIMITS.wholeMs);
      this.#stepMs = Number.POSITIVE_INFINITY;
      this.#askTcp(candidate, "its reply was truncated");
      return;
    }
    this.#journal?.replied(now, nameserver.server, `answered ${repliedText(reply, now - sentMs, isTruncated)}`);
    this.#end();
    const { rcode } = reply;
    const { server } = nameserver;
    this.#hooks.onLanded(this, { kind: "reply", message: scrubbed, rcode, isWhole: !isTruncated, server });
  }

  /** A server that knows EDNS says so when it refuses a query that has it (RFC 6891, 7). */
  #deniesEdns({ message, rcode }: UpstreamReply): boolean {
    if (!this.#plan.isOptOurs) return false;
    const isRefusal = rcode === RCODE.FORMERR || rcode === RCODE.NOTIMP || rcode === RCODE.BADVERS;
    return isRefusal && (rcode === RCODE.BADVERS || message.readUInt16BE(ADDITIONALS_AT) === 0);
  }

  onUnreachable(candidate: Candidate, reason: string, sentMs: number): void {
    this.#meterFailure(candidate, "error", sentMs);
    this.#giveUpOn(candidate, reason);
  }

  /** It cannot be reached. */
  #giveUpOn(candidate: Candidate, reason: string): void {
    candidate.isUnreachable = true;
    candidate.nameserver.health.failed(this.#hooks.now(), reason);
    this.#fail(candidate, reason);
  }

  /** Somebody guesses at the id: over TCP they would have to guess at much more. */
  onForgery(candidate: Candidate): void {
    if (!this.#isOver) this.#askTcp(candidate, "somebody else sends replies");
  }

  #fail(candidate: Candidate, reason: string): void {
    if (this.#isOver) return;
    candidate.state = "bad";
    candidate.reason = reason;
    this.#journal?.note(this.#hooks.now(), candidate.nameserver.server, `failed: ${reason}`);
    // Nobody left to ask, and none of those asked may still answer: there is nothing to wait for.
    if (!this.#askFresh("the one before failed") && !isAnyAsked(this.#line)) this.#giveUp();
    if (!this.#isOver && !this.#isStarting) this.#arm();
  }

  #meterFailure({ nameserver }: Candidate, failure: UpstreamFailure, sinceMs: number, isStream = false): void {
    this.#hooks.meter?.failed(nameserver.server, isStream, failure, this.#hooks.now() - sinceMs);
  }

  #giveUp(): void {
    for (const one of this.#line) {
      if (one.state === "asked") this.#meterFailure(one, "timeout", this.startMs, this.#plan.usesTcp);
    }
    const truncated = this.#truncated;
    this.#journal?.note(
      this.#hooks.now(),
      undefined,
      truncated === undefined ? "given up" : "the truncated reply has to do",
    );
    this.#end();
    const landing: Landing =
      truncated === undefined
        ? {
            kind: "failed",
            failures: this.#line
              .filter(({ asks, state }) => asks > 0 || state === "bad")
              .map(({ nameserver, reason }) => ({ server: serverText(nameserver.server), reason })),
            wasSilent: this.#line.some(({ state, isUnreachable }) => state === "asked" || isUnreachable),
            told: this.#told,
          }
        : { kind: "reply", isWhole: false, ...truncated };
    // Nobody is called back before the call that started it has returned.
    if (this.#isStarting) queueMicrotask(() => this.#hooks.onLanded(this, landing));
    else this.#hooks.onLanded(this, landing);
  }

  #end(): void {
    this.#isOver = true;
    this.#hooks.deadlines.clear(this);
    for (const connection of this.#connections ?? []) connection.destroy();
  }
}

function repliedText({ rcode }: UpstreamReply, ms: number, isTruncated: boolean): string {
  return `${rcodeName(rcode)} after ${ms.toFixed(1)} ms${isTruncated ? ", truncated" : ""}`;
}
