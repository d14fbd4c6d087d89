/**
 * PacketBatch: packets that one callback of the event loop sends, each by itself: replies to forwarded queries, and queries to servers.
 * They leave when the callback returns, those of one socket by one system call, and the receiver is woken once: under load a callback has
 * several.
 *
 * A packet waits for nothing but the others: the batch is sent as soon as the callback returns, before any other work.
 */
import { LIMITS } from "../base/limits.ts";
import { guard } from "../base/lib/guard.ts";
import { MessageBlock } from "./message-block.ts";

/** Larger packets are rare, and are sent by themselves. */
const PACKET_BYTES_MAX = 4096;

/** The address of a packet that a connected socket sends. */
export const CONNECTED = new Uint8Array();

/** A sender of packets. It flushes the batch before its socket is closed. */
export interface PacketSender<Owner> {
  /** It may be another one when the packet leaves. */
  readonly fd: number;
  /** The kernel refused to send a packet. */
  onUnsent(owner: Owner, errno: number): void;
}

export class PacketBatch {
  readonly #block = new MessageBlock(LIMITS.packetBatch, PACKET_BYTES_MAX);
  /** By slot of the block; undefined for packets that have been sent. */
  readonly #senders: (PacketSender<unknown> | undefined)[] = [];
  readonly #owners: unknown[] = [];
  #isArmed = false;

  /** Takes a copy of the packet and of the address. Returns whether it is sent with others; the caller sends it if not. */
  add<Owner>(sender: PacketSender<Owner>, packet: Uint8Array, to: Uint8Array, owner: Owner): boolean {
    if (packet.length > PACKET_BYTES_MAX) return false;
    if (this.#senders.length >= this.#block.slots) this.flush();
    this.#block.put(this.#senders.length, packet, packet.length, to);
    this.#senders.push(sender);
    this.#owners.push(owner);
    this.#arm();
    return true;
  }

  /** Sends the packets that wait. */
  flush(): void {
    const senders = this.#senders;
    for (let first = 0; first < senders.length; first++) {
      const sender = senders[first];
      if (sender !== undefined) this.#send(sender, first);
    }
    senders.length = this.#owners.length = 0;
  }

  /** Sends the packets of one socket, the first of which is in this slot. */
  #send(sender: PacketSender<unknown>, first: number): void {
    const owners: unknown[] = [];
    for (let slot = first; slot < this.#senders.length; slot++) {
      if (this.#senders[slot] !== sender) continue;
      this.#senders[slot] = undefined;
      this.#block.reply(slot, this.#block.lengthOf(slot));
      owners.push(this.#owners[slot]);
    }
    this.#block.flush(sender.fd, (index, errno) => sender.onUnsent(owners[index], errno));
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
