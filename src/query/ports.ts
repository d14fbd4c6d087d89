/**
 * Ports between the parts of the query path: a listener needs a SyncAnswerer and a Forward, and a DeferredQuery is what
 * the first passes to the second.
 */
import { MESSAGE_BYTES_MAX } from "../base/dns/header.ts";
import type { DockerQuestion } from "../base/model/visible-names.ts";
import type { Route } from "../base/model/view.ts";
import type { Client } from "./client/client.ts";
import type { AskedQuery, HeldAnswer, Transport } from "./query-policy.ts";
import type { Outcome } from "./record/outcome.ts";

/** No reply is sent. */
export const DROPPED = 0;
/** The query must go upstream: `takeDeferred` returns what is needed for that. */
export const DEFERRED = -1;
/** This step has no answer: the next one decides. */
export const UNDECIDED = -2;

/** Larger than any message plus its name written out in full plus our own OPT. */
export const SLOT_BYTES = MESSAGE_BYTES_MAX + 512;

/** Where the signature begins in a query. */
interface Signature {
  readonly at: number;
  readonly isTsig: boolean;
}

/** A query to forward. */
export interface DeferredQuery extends AskedQuery {
  /** A local name, queried for a type that we do not have: an upstream NXDOMAIN would deny a name that exists. */
  readonly isLocalName: boolean;
  /** The servers to use. */
  readonly route: Route;
  /** DO and CD if clients may share the answer; NOT_SHAREABLE otherwise. */
  readonly bits: number;
  /** The hash of the name. */
  readonly nameHash: number;
  /** The last record, if it signs the query (TSIG or SIG(0)). */
  readonly signature: Signature | undefined;
  /** Set if Docker's resolver must be asked first; the query is then as it came, and has no route yet. */
  readonly dockerQuestion?: DockerQuestion | undefined;
  /** Set if a judge delays it: the time until it is answered. */
  readonly delayMs?: number | undefined;
  /** The rule that delayed it, as text for people. */
  readonly rule?: string | undefined;
  /** Set if it has its answer, which waits. */
  readonly held?: HeldAnswer | undefined;
}

export interface SyncAnswerer {
  /** The outcome of the last query, valid until the next one. */
  readonly outcome: Outcome;
  answer(client: Client, block: Buffer, offset: number, length: number, isStream: boolean, isOwn?: boolean): number;
  takeDeferred(block: Buffer): DeferredQuery;
}

/**
 * Notified when work on a batch of packets begins, of the outcome of each query, and when the replies have been sent.
 */
export interface QueryMeter {
  begin(isIPv6: boolean): void;
  record(outcome: Outcome): void;
  end(): void;
}

export type { Transport } from "./query-policy.ts";

/** Receives the reply's bytes and the query's outcome; both are valid until it returns. */
export type Respond = (reply: Uint8Array, outcome: Outcome) => void;

/** Forwards a query and calls back exactly once, never before it has returned. */
export type Forward = (client: Client, deferred: DeferredQuery, transport: Transport, respond: Respond) => void;
