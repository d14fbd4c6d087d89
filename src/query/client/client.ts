/**
 * Client: one network namespace that sends queries. A query does not name its sender; the socket that received it does.
 * A client has the view of its namespace, its limits, its query history and its failing names.
 */
import { RCODE } from "../../base/dns/rcode.ts";
import { sentProbes } from "../../base/model/probe-message.ts";
import { QUERY_RESULT } from "../../base/model/query-record.ts";
import type { Server, View } from "../../base/model/view.ts";
import { LIMITS } from "../../base/limits.ts";
import { FailureTable } from "../failures/failure-table.ts";
import { QueryHistory } from "../history/query-history.ts";
import { type Outcome, STAGE } from "../record/outcome.ts";
import type { QueryPolicy } from "../query-policy.ts";
import type { Repeater } from "../repeater.ts";
import type { QueryTap, Disclosure } from "../tap.ts";
import type { QueryJudge, AnswerFilter } from "../verdict.ts";
import { DockerAnswerMemory } from "./docker-answer-memory.ts";
import { RecentCounts } from "./recent-counts.ts";
import { Slots, type Shares, sharePools } from "./slots.ts";
import { StreamBudget } from "./stream-budget.ts";

/** Distinguishes the ports of the two transports. */
const STREAM = 0x10000;

/** Opens a socket to a server from the namespace that the server is reached from; throws on failure. */
export type Dial = (server: Server, type: "udp" | "tcp") => number;

/** What an observer notes of one client. */
export interface OutcomeNote {
  /** The object is reused, so copy what is needed. This runs for every query, so it must not allocate. */
  note(outcome: Outcome): void;
}

let clientsCreated = 0;

export class Client {
  readonly number = ++clientsCreated;
  /** Replaced as a whole when the container registry changes; a query sees one view from start to end. */
  view: View;
  readonly dial: Dial;
  /** The longest reply over UDP, whatever the client announces: a source address may be forged. */
  udpBytesMax = Number.POSITIVE_INFINITY;
  /** Its limit of concurrent upstream queries. */
  readonly slots: Slots;
  /** Its share of the resources that all containers use. */
  readonly shares: Shares;
  /** What its TCP connections may still cost in this turn of the event loop. */
  readonly streamBudget = new StreamBudget(this.number);
  readonly history: QueryHistory;
  readonly failures: FailureTable;
  notes: readonly OutcomeNote[] = [];
  /** What Docker's resolver answered it. */
  readonly dockerAnswers = new DockerAnswerMemory();
  /** Queries of dns11's own that will come from its namespace. */
  readonly ownQueries = new OwnQueries(undefined, (ports) => this.repeater?.leave(ports));
  /** Repeats answers without the process; undefined where the process answers every query. */
  repeater: Repeater | undefined;
  /** Decides some of its queries; undefined without a judge. */
  judge: QueryJudge | undefined;
  /** Sees its messages; undefined while nobody records them. */
  tap: QueryTap | undefined;
  /** What some servers learn about it, in an EDNS option; undefined where no server learns anything. */
  disclosure: Disclosure | undefined;
  /** Takes records out of its answers; undefined where it gets all of them. */
  filter: AnswerFilter | undefined;
  /** Decides what it may ask and be answered; undefined where all is allowed. */
  policy: QueryPolicy | undefined;
  readonly #bringUpToDate = (): void => this.collect();
  isClosed = false;
  readonly #closeCallbacks: (() => void)[] = [];
  /** The nonce that a verification expects to arrive, as hexadecimal text. */
  probeNonce: string | undefined;
  readonly probeSeen = { udp: false, tcp: false };
  readonly counters = {
    queries: 0,
    local: 0,
    /** Answered from cached upstream replies. */
    cached: 0,
    /** Queries among `local` and `cached` that the kernel answered; then those among `cached` alone. */
    kernel: 0,
    kernelCached: 0,
    forwarded: 0,
    malformed: 0,
    ignored: 0,
    /** Replies that the kernel refused to send. */
    unsent: 0,
    /** Forwarded queries that were refused because too many were waiting. */
    refused: 0,
    failed: 0,
    /** Answered, or left without a reply, by the judge. */
    ruled: 0,
    /** Refused by a policy. */
    denied: 0,
    /** Answers with these response codes: NXDOMAIN, and any other than NOERROR. */
    nxdomain: 0,
    errors: 0,
  };
  /** What these counters have counted in the last minute. */
  readonly recent = new RecentCounts(this.counters, () => this.collect());

  constructor(
    view: View,
    dial: Dial,
    slots: Slots = new Slots(),
    history: QueryHistory = new QueryHistory(),
    shares: Shares = sharePools(Number.POSITIVE_INFINITY).open(),
    failures: FailureTable = new FailureTable(),
  ) {
    this.view = view;
    this.dial = dial;
    this.slots = slots;
    this.history = history;
    this.shares = shares;
    this.failures = failures;
    failures.bringUpToDate = this.#bringUpToDate;
  }

  /** A probe with this nonce is about to be sent. */
  expectProbe(nonce: string): void {
    this.probeNonce = nonce;
    this.probeSeen.udp = this.probeSeen.tcp = false;
    sentProbes.add(nonce);
  }

  /** Counts the outcome of a query and adds it to the history and, if it matters there, to the failures. */
  record(outcome: Outcome): void {
    const { stage, result } = outcome;
    if (outcome.isOwn) return;
    this.#count(stage, result);
    const isAnswered = stage !== STAGE.ignored && stage !== STAGE.deferred && stage !== STAGE.probe;
    if (!isAnswered || outcome.isHeld) return;
    this.history.note(outcome);
    for (const each of this.notes) each.note(outcome);
    this.judge?.note(outcome);
    // A failure that a test asked for is not recorded as one.
    if (outcome.rule !== undefined && result !== QUERY_RESULT.denied) return;
    const { rcode } = outcome;
    if (rcode !== RCODE.NOERROR) this.counters[rcode === RCODE.NXDOMAIN ? "nxdomain" : "errors"]++;
    else if (!outcome.lacksAddress && !this.failures.hasEntries) return;
    this.failures.note(outcome);
  }

  #count(stage: number, result: number): void {
    const { counters } = this;
    if (stage === STAGE.probe) return;
    if (stage === STAGE.completed) {
      if (result === QUERY_RESULT.denied) counters.denied++;
      if (result === QUERY_RESULT.refused) counters.refused++;
      if (result === QUERY_RESULT.refused || result === QUERY_RESULT.failed) counters.failed++;
      return;
    }
    counters.queries++;
    if (stage === STAGE.local) counters.local++;
    else if (stage === STAGE.cache) counters.cached++;
    else if (stage === STAGE.deferred) counters.forwarded++;
    else if (stage === STAGE.malformed) counters.malformed++;
    else if (stage === STAGE.ignored) counters.ignored++;
    else if (stage === STAGE.ruled) counters.ruled++;
    else if (stage === STAGE.denied) counters.denied++;
  }

  /** Counts what the kernel has answered since the last call. */
  collect(): void {
    this.repeater?.collect();
  }

  onClose(act: () => void): void {
    this.#closeCallbacks.push(act);
  }

  close(): void {
    this.isClosed = true;
    const { failures } = this;
    // The container may have another client by now, which has set its own callback.
    if (failures.bringUpToDate === this.#bringUpToDate) failures.bringUpToDate = undefined;
    for (const act of this.#closeCallbacks) act();
  }
}

/**
 * Queries that dns11 itself is about to send from inside a container's namespace: lookups and the doctor's tests.
 * They are announced by source port, and count nowhere as queries of the container. A port is announced by dns11 or over the
 * control socket, for one query and a few seconds; a container cannot announce any, and so cannot hide its queries.
 */
export class OwnQueries {
  /** When each announced port is forgotten. */
  readonly #untilMs = new Map<number, number>();
  /** Announced ports whose queries no rule of a test judges. */
  readonly #exempt = new Set<number>();
  /** Whether the query that was taken last is exempt from the rules of tests. */
  isExempt = false;
  readonly #now: () => number;
  readonly #onUdp: (ports: readonly number[]) => void;

  /** `onUdp` is called when the ports announced for UDP have changed. */
  constructor(
    now: () => number = () => performance.now(),
    onUdp: (ports: readonly number[]) => void = () => undefined,
  ) {
    this.#now = now;
    this.#onUdp = onUdp;
  }

  get udpPorts(): readonly number[] {
    return [...this.#untilMs.keys()].filter((key) => key < STREAM);
  }

  /** Whether any is announced, which is rare. */
  get areExpected(): boolean {
    return this.#untilMs.size > 0;
  }

  /** `isExempt`: the query is about dns11 and not about what the container gets, so no rule of a test judges it. */
  announce(isStream: boolean, port: number, isExempt = false): void {
    const now = this.#now();
    for (const [key, untilMs] of this.#untilMs) if (untilMs <= now) this.#forget(key);
    if (this.#untilMs.size < LIMITS.ownQueries) {
      const key = keyOf(isStream, port);
      this.#untilMs.set(key, now + LIMITS.ownQueryMs);
      if (isExempt) this.#exempt.add(key);
    }
    if (!isStream) this.#onUdp(this.udpPorts);
  }

  /** Whether a query from this port is an announced one; it is announced no more. */
  take(isStream: boolean, port: number): boolean {
    const key = keyOf(isStream, port);
    const untilMs = this.#untilMs.get(key);
    if (untilMs === undefined) return false;
    this.isExempt = this.#exempt.has(key);
    this.#forget(key);
    if (!isStream) this.#onUdp(this.udpPorts);
    return this.#now() < untilMs;
  }

  #forget(key: number): void {
    this.#untilMs.delete(key);
    this.#exempt.delete(key);
  }
}

function keyOf(isStream: boolean, port: number): number {
  return isStream ? STREAM + port : port;
}
