/**
 * Delivery: one who waits for a reply from upstream, and how it is handed to it: under its own id, in its letter case, as
 * long as it can take, with what it wants to know.
 */
import { setU16 } from "../../base/dns/bytes.ts";
import { ANSWERS_AT, HEADER_BYTES, ID_AT, clearRcode, idOf, rcodeOf, setTruncated } from "../../base/dns/header.ts";
import { RCODE } from "../../base/dns/rcode.ts";
import { MESSAGE_BYTES_MAX } from "../../base/dns/sizes.ts";
import { copyBytes } from "../../base/lib/bytes.ts";
import type { QueryResult } from "../../base/model/query-record.ts";
import type { Server } from "../../base/model/view.ts";
import type { Client } from "../client/client.ts";
import { asksForAuthentic } from "../cache/shareable.ts";
import { type DeferredQuery, type Respond, SLOT_BYTES, type Transport } from "../ports.ts";
import { Outcome } from "../record/outcome.ts";
import { type ReplyAge, type RelayOptions, relay, relayFailure } from "../wire/relay.ts";
import { sizeLimit } from "../wire/reply.ts";
import type { SharedReply } from "../wire/shared-reply.ts";

/** Replies are sent before the next one is made, so one place serves all. */
const scratch = Buffer.allocUnsafeSlow(SLOT_BYTES);
const outcome = new Outcome();

export interface WaiterParts {
  readonly client: Client;
  readonly deferred: DeferredQuery;
  readonly transport: Transport;
  readonly arrivedMs: number;
  /** What is too large for it is truncated. */
  readonly fits: boolean;
  /** Of its container's share. */
  readonly heldBytes: number;
  readonly respond: Respond;
  /** The same for all: told of each that is about to have its answer; tells the time. */
  readonly onDone: (delivery: Waiter) => number;
}

export class Waiter {
  readonly #parts: WaiterParts;
  #isDone = false;
  #hasSlot = true;
  /** It was waiting for what somebody else asked, and asks for itself now. */
  isRequeued = false;

  constructor(parts: WaiterParts) {
    this.#parts = parts;
  }

  get client(): Client {
    return this.#parts.client;
  }

  get deferred(): DeferredQuery {
    return this.#parts.deferred;
  }

  get transport(): Transport {
    return this.#parts.transport;
  }

  get arrivedMs(): number {
    return this.#parts.arrivedMs;
  }

  get heldBytes(): number {
    return this.#parts.heldBytes;
  }

  /** It has had its answer. */
  get isDone(): boolean {
    return this.#isDone;
  }

  /** Its slot is free for the next query; once. */
  releaseSlot(): void {
    if (!this.#hasSlot) return;
    this.#hasSlot = false;
    this.client.slots.release();
  }

  /** A reply that many may have: a server's, or else one that was kept and is over. */
  sendShared(reply: SharedReply, age: ReplyAge, server: Server | undefined, why?: Uint8Array): void {
    this.#place();
    const how = server === undefined ? "stale" : "forwarded";
    this.#finish(relay(scratch, 0, this.#asked(), reply, age, why), how, server);
  }

  /** A reply to this very query, as it came. */
  sendRaw(message: Buffer, server: Server): void {
    const { query, questionEnd, isLocalName: isKnown } = this.deferred;
    const reply = Buffer.from(message);
    setU16(reply, ID_AT, idOf(query));
    if (isKnown && rcodeOf(reply) === RCODE.NXDOMAIN) clearRcode(reply);
    if (reply.length <= this.#limit()) {
      this.#done(reply, "forwarded", server);
      return;
    }
    // Header and question alone, truncated: it may ask again by TCP.
    setTruncated(reply);
    reply.fill(0, ANSWERS_AT, HEADER_BYTES);
    this.#done(reply.subarray(0, questionEnd), "forwarded", server);
  }

  fail(rcode: number, why?: Uint8Array): void {
    this.#place();
    const how = rcode === RCODE.REFUSED ? "refused" : "failed";
    this.#finish(relayFailure(scratch, 0, this.deferred.questionEnd, this.#asked(), rcode, why), how, undefined);
  }

  #place(): void {
    const { query, questionEnd } = this.deferred;
    copyBytes(query, 0, questionEnd, scratch, 0);
  }

  #finish(length: number, how: QueryResult, server: Server | undefined): void {
    this.#done(scratch.subarray(0, length), how, server);
  }

  #done(reply: Uint8Array, how: QueryResult, server: Server | undefined): void {
    this.#isDone = true;
    const { client, deferred, transport, arrivedMs } = this.#parts;
    outcome.deliver(deferred, reply, how, server);
    outcome.isExplained = deferred.trace !== undefined;
    outcome.setTimes(transport === "tcp", arrivedMs, this.#parts.onDone(this));
    client.record(outcome);
    this.#parts.respond(reply, outcome);
  }

  #limit(): number {
    return this.#parts.fits ? sizeLimit(this.deferred.udpSize, this.transport === "tcp") : MESSAGE_BYTES_MAX;
  }

  #asked(): RelayOptions {
    const { query, hasOpt, isDnssecOk, isLocalName: isKnown } = this.deferred;
    return {
      limit: this.#limit(),
      hasOpt,
      isDnssecOk,
      wantsAuthentic: isDnssecOk || asksForAuthentic(query, 0),
      isLocalName: isKnown,
    };
  }
}
