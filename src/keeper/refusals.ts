/**
 * Refusals: answers every query in namespaces that nobody serves and that are not to go back to Docker's resolver, which would
 * forward any name. The answer is SERVFAIL: it will be another one when dns11 is back, and no program takes it for a name that
 * does not exist.
 */
import {
  ANSWERS_AT,
  CODES_AT,
  FLAGS_AT,
  HEADER_BYTES,
  OPCODE_BITS,
  QR,
  QUESTIONS_AT,
  RA,
  RD,
} from "../base/dns/header.ts";
import { u16 } from "../base/dns/bytes.ts";
import { LABEL_BYTES_MAX } from "../base/dns/name.ts";
import { RCODE } from "../base/dns/rcode.ts";
import { QUESTION_FIXED_BYTES } from "../base/dns/record.ts";
import type { HeldNamespace } from "../base/model/held-namespace.ts";
import { MessageBlock } from "../kernel/message-block.ts";
import { KEEPER_LIMITS } from "./limits.ts";
import { RefusedConnections } from "./refused-connections.ts";

export class Refusals {
  readonly #block = new MessageBlock(KEEPER_LIMITS.refusedBatch, KEEPER_LIMITS.refusedBytes);
  readonly #connections = new RefusedConnections(refusalOf);
  #udp: readonly number[] = [];
  #tcp: readonly number[] = [];

  /** The namespaces to refuse from now on, instead of those before. */
  setNamespaces(namespaces: readonly HeldNamespace[]): void {
    const pairs = namespaces.flatMap((each) => each.pairs);
    this.#udp = pairs.map(({ udp }) => udp);
    this.#tcp = pairs.map(({ tcp }) => tcp);
    if (pairs.length === 0) this.#connections.closeAll();
  }

  /** To wait for. */
  get descriptors(): readonly number[] {
    return [...this.#udp, ...this.#tcp, ...this.#connections.descriptors];
  }

  /** `readable` says so of each of `descriptors`. A batch of each socket, so that none takes the time of the others. */
  answer(readable: readonly boolean[]): void {
    const connections = readable.slice(this.#udp.length + this.#tcp.length);
    this.#connections.answer(connections, performance.now());
    for (const [index, fd] of this.#udp.entries()) if (readable[index] === true) this.#answerUdp(fd);
    for (const [index, fd] of this.#tcp.entries())
      if (readable[this.#udp.length + index] === true) this.#connections.accept(fd, performance.now());
  }

  #answerUdp(fd: number): void {
    const block = this.#block;
    const count = block.receive(fd, 0, KEEPER_LIMITS.refusedBytes);
    for (let slot = 0; slot < count; slot++) {
      const start = block.offsetOf(slot);
      const length = refusalOf(block.data.subarray(start, start + block.lengthOf(slot)));
      if (length > 0 && block.senderPort(slot) !== 0) block.reply(slot, length);
    }
    block.flush(fd);
  }
}

/** Turns a query into its refusal, in place; returns its length, or 0 for what is no query. */
export function refusalOf(message: Uint8Array): number {
  if (message.length < HEADER_BYTES) return 0;
  const flags = message[FLAGS_AT] as number;
  const end = questionEnd(message);
  if ((flags & QR) !== 0 || u16(message, QUESTIONS_AT) !== 1 || end === undefined) return 0;
  message[FLAGS_AT] = QR | (flags & (OPCODE_BITS | RD));
  message[CODES_AT] = RA | RCODE.SERVFAIL;
  message.fill(0, ANSWERS_AT, HEADER_BYTES);
  return end;
}

/** A name in a question is not compressed. */
function questionEnd(message: Uint8Array): number | undefined {
  let at = HEADER_BYTES;
  for (;;) {
    const length = message[at];
    if (length === undefined || length > LABEL_BYTES_MAX) return undefined;
    at += length + 1;
    if (length === 0) break;
  }
  const end = at + QUESTION_FIXED_BYTES;
  return end <= message.length ? end : undefined;
}
