/**
 * What the listeners need from the rest of a query's way: somebody who answers at once, and somebody who asks upstream.
 */
import type { How } from "../../model/asked-query.ts";
import type { Server } from "../../model/view.ts";
import type { Deferred } from "../answer.ts";
import type { Asker } from "../asker.ts";

export interface AnswersAtOnce {
  answer(asker: Asker, block: Buffer, offset: number, length: number, isStream: boolean): number;
  takeDeferred(block: Buffer): Deferred;
}

/** Told when packets begin to be worked on, and when their answers have been sent. */
export interface QueryTimer {
  begin(isIPv6: boolean): void;
  end(): void;
}

export type Transport = "udp" | "tcp";

/** Takes a reply's bytes, valid until it returns; and which server answered, or how else it came about. */
export type Respond = (reply: Uint8Array, how?: How, server?: Server) => void;

/** Asks upstream and calls back once with the reply, never before it returned. */
export type Forward = (asker: Asker, deferred: Deferred, transport: Transport, respond: Respond) => void;
