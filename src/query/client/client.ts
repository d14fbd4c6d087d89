/**
 * Client: one network namespace as the query's way sees it. Queries bring no name of who asks; the socket they came in
 * on does. It holds what that namespace may know now, and what it has asked so far.
 */
import { QUERY_RESULT } from "../../base/model/query-record.ts";
import type { Server, View } from "../../base/model/view.ts";
import { Slots } from "./slots.ts";
import { QueryHistory } from "../history/query-history.ts";
import { type Outcome, STAGE } from "../record/outcome.ts";
import { type Shares, sharePools } from "./shares.ts";

/** Opens a socket to a server, from the namespace that the server is dialled from; throws where that cannot be. */
export type Dial = (server: Server, type: "udp" | "tcp") => number;

let clientsMade = 0;

export class Client {
  /** Another number for each. */
  readonly number = ++clientsMade;
  /** Replaced whole when the registry says so; a query sees one of them from begin to end. */
  view: View;
  readonly dial: Dial;
  /** Its share of what may be asked upstream at once. */
  readonly slots: Slots;
  /** Its share of what all containers have together. */
  readonly shares: Shares;
  /** What it asked lately. */
  readonly history: QueryHistory;
  isClosed = false;
  readonly #closers: (() => void)[] = [];
  /** The nonce that a verification is waiting to see arrive, as hexadecimal text. */
  nonce: string | undefined;
  readonly seenNonce = { udp: false, tcp: false };
  readonly counters = {
    queries: 0,
    local: 0,
    /** Answered from replies of servers that were kept. */
    cached: 0,
    forwarded: 0,
    malformed: 0,
    ignored: 0,
    /** Replies that the kernel would not send. */
    unsent: 0,
    /** Forwarded queries that were refused because too many were waiting already. */
    refused: 0,
    failed: 0,
  };

  constructor(
    view: View,
    dial: Dial,
    slots: Slots = new Slots(),
    history: QueryHistory = new QueryHistory(),
    shares: Shares = sharePools(Number.POSITIVE_INFINITY).open(),
  ) {
    this.view = view;
    this.dial = dial;
    this.slots = slots;
    this.history = history;
    this.shares = shares;
  }

  /** Keeps what became of one of its queries. */
  record(outcome: Outcome): void {
    const { stage, result: how } = outcome;
    this.#count(stage, how);
    const isAnswered = stage !== STAGE.ignored && stage !== STAGE.deferred && stage !== STAGE.ours;
    if (isAnswered && !outcome.isExplained) this.history.note(outcome);
  }

  #count(stage: number, how: number): void {
    const { counters } = this;
    if (stage === STAGE.ours) return;
    if (stage === STAGE.delivered) {
      if (how === QUERY_RESULT.refused) counters.refused++;
      if (how === QUERY_RESULT.refused || how === QUERY_RESULT.failed) counters.failed++;
      return;
    }
    counters.queries++;
    if (stage === STAGE.here) counters.local++;
    else if (stage === STAGE.cache) counters.cached++;
    else if (stage === STAGE.deferred) counters.forwarded++;
    else if (stage === STAGE.unreadable) counters.malformed++;
    else if (stage === STAGE.ignored) counters.ignored++;
  }

  /** Has something done when nobody asks here any more. */
  atClose(act: () => void): void {
    this.#closers.push(act);
  }

  close(): void {
    this.isClosed = true;
    for (const act of this.#closers) act();
  }
}
