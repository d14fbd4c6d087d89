/**
 * What the parts of a query's way hand each other: whoever listens needs somebody who answers at once and somebody who
 * asks upstream, and what goes from the one to the other is a deferred query.
 */
import { MESSAGE_BYTES_MAX } from "../base/dns/sizes.ts";
import type { Route } from "../base/model/view.ts";
import type { Client } from "./client/client.ts";
import type { Outcome } from "./record/outcome.ts";
import type { Trace } from "./trace.ts";

/** Nothing is to be sent. */
export const DROPPED = 0;
/** Somebody upstream has to be asked: `takeDeferred` has what is needed for that. */
export const DEFERRED = -1;

/** More than any message, the name that is written out in it, and our own OPT. */
export const SLOT_BYTES = MESSAGE_BYTES_MAX + 512;

/** Where in a query its signature begins. */
export interface Signature {
  readonly at: number;
  readonly isTsig: boolean;
}

/** A query that goes upstream, on its own: the block it came in is used again at once. */
export interface DeferredQuery {
  /** The query as it is sent on: unusual forms made usual, trailing bytes cut off. */
  readonly query: Buffer;
  /** Where its question ends. */
  readonly questionEnd: number;
  readonly hasOpt: boolean;
  /** What the client takes by UDP, as announced in its OPT; 0 without one. */
  readonly udpSize: number;
  /** A name that we hold, asked for a type that we do not: upstream's NXDOMAIN would deny what is there. */
  readonly isLocalName: boolean;
  /** Who is to be asked. */
  readonly route: Route;
  readonly type: number;
  /** DO and CD, where the question has one answer for all who ask; NOT_SHAREABLE otherwise. */
  readonly bits: number;
  /** The name in lower case, without its end, a character a byte; and its hash. */
  readonly name: string;
  readonly nameHash: number;
  readonly isDnssecOk: boolean;
  /** Its last record, where that is a signature of the query itself. */
  readonly signature: Signature | undefined;
  /** Whom to tell what becomes of it; only where somebody has it explained. */
  readonly trace?: Trace;
}

export interface SyncAnswerer {
  /** What became of the query that was answered last; good until the next one. */
  readonly outcome: Outcome;
  answer(client: Client, block: Buffer, offset: number, length: number, isStream: boolean): number;
  takeDeferred(block: Buffer): DeferredQuery;
}

/** Told when packets begin to be worked on, what becomes of them, and when their answers have been sent. */
export interface QueryMeter {
  begin(isIPv6: boolean): void;
  record(outcome: Outcome): void;
  end(): void;
}

export type Transport = "udp" | "tcp";

/** Takes a reply's bytes and what became of the query, both valid until it returns. */
export type Respond = (reply: Uint8Array, outcome: Outcome) => void;

/** Asks upstream and calls back once with the reply, never before it returned. */
export type Forward = (client: Client, deferred: DeferredQuery, transport: Transport, respond: Respond) => void;
