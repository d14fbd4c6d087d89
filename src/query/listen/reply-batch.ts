/**
 * ReplyBatch: replies to forwarded queries that are ready in one callback, when an upstream's socket is read, and leave by one
 * socket. A single system call sends them, and their asker is woken once: under load a callback has several, most of them for one container.
 *
 * A reply waits for nothing but the others: the batch is sent as soon as the callback returns, before any other work.
 */
import { LIMITS } from "../../base/limits.ts";
import { guard } from "../../base/lib/guard.ts";
import { MessageBlock } from "../../kernel/message-block.ts";
import type { Client } from "../client/client.ts";

/** Larger replies are rare, and are sent by themselves. */
const REPLY_BYTES_MAX = 4096;

/** A listener's socket, which may get another descriptor. */
export interface ReplySocket {
  readonly fd: number;
}

export class ReplyBatch {
  readonly #block = new MessageBlock(LIMITS.upstreamBatch, REPLY_BYTES_MAX);
  /** The clients whose replies they are, in the order of the replies. */
  #clients: Client[] = [];
  #socket: ReplySocket | undefined;
  #isArmed = false;

  /** Takes a copy of the reply and of the address. Returns whether it is sent with others; the caller sends it if not. */
  add(socket: ReplySocket, client: Client, reply: Uint8Array, to: Uint8Array): boolean {
    if (reply.length > REPLY_BYTES_MAX) return false;
    if (this.#socket !== socket || this.#clients.length >= this.#block.slots) this.flush();
    this.#socket = socket;
    const slot = this.#clients.length;
    this.#block.place(slot, reply, reply.length, to);
    this.#block.reply(slot, reply.length);
    this.#clients.push(client);
    this.#arm();
    return true;
  }

  /** Sends what waits. */
  flush(): void {
    if (this.#socket === undefined) return;
    const { fd } = this.#socket;
    const clients = this.#clients;
    this.#socket = undefined;
    this.#clients = [];
    this.#block.flush(fd, (index) => {
      const client = clients[index];
      if (client !== undefined) client.counters.unsent++;
    });
  }

  /** Has the rest sent when the current callback returns. */
  #arm(): void {
    if (this.#isArmed) return;
    this.#isArmed = true;
    process.nextTick(() => {
      this.#isArmed = false;
      guard.run("udp", 0, () => this.flush());
    });
  }
}
