import type { Server } from "../base/model/view.ts";

/**
 * Sees the messages of a client as they are, on both sides of dns11. For a client without one, each message costs a look at an empty field.
 * The buffers are reused, so copy what is needed.
 */
export interface QueryTap {
  /** A packet has come that may be a query; its answer is an outcome. `isOwn`: dns11 itself has sent it. */
  asked(block: Uint8Array, offset: number, length: number, isStream: boolean, isOwn: boolean): void;
  /** A query was sent to a server. */
  sent(server: Server, message: Uint8Array, isStream: boolean): void;
  /** The server has replied to what was sent to it at that time, on the clock of `performance.now`. */
  replied(server: Server, message: Uint8Array, isStream: boolean, sentMs: number): void;
}

/** Decides what servers are told about the client. For a client without one, each list of servers costs a look at an empty field. */
export interface Disclosure {
  /** An EDNS option; empty if the server is to be told and nothing is known. Undefined if the server gets what every server gets. */
  optionFor(server: Server): Uint8Array | undefined;
}
