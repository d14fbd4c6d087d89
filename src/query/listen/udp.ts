/**
 * The UDP socket of one namespace. Node tells that it is readable and hands over one packet; from that callback all that
 * wait with it are received, answered in place and sent in three system calls.
 *
 * The object owns descriptor and handle. It is marked closed before the handle is closed, and looks after every answer:
 * once closed, the number of the descriptor may already belong to another container's socket.
 */
import { type Socket, createSocket } from "node:dgram";
import { isIPv6 } from "node:net";

import { LIMITS } from "../../config/limits.ts";
import { keepAddress, sendTo } from "../../kernel/libc.ts";
import type { MessageBlock } from "../../kernel/message-block.ts";
import { addressBytes, socketAddress } from "../../model/address.ts";
import { DEFERRED } from "../answer.ts";
import type { Asker } from "../asker.ts";
import type { AnswersAtOnce, Forward, OnDefect } from "./ports.ts";
import type { Turn } from "./turn.ts";

/** Shared by the listeners of all namespaces; what can be written is exchanged when settings change. */
export interface UdpParts {
  readonly block: MessageBlock;
  readonly turn: Turn;
  answerer: AnswersAtOnce;
  forward: Forward;
  readonly onDefect: OnDefect;
  /** A longer query is cut to this. */
  queryBytesMax: number;
  /** Without batches every packet is answered by itself; for comparison. */
  readonly isBatching: boolean;
}

export class UdpListener {
  readonly #fd: number;
  readonly #socket: Socket;
  readonly #asker: Asker;
  readonly #parts: UdpParts;
  #isClosed = false;
  #turn = -1;
  #leftInTurn = 0;
  #lastSender = "";
  #lastSenderAddress: Buffer = Buffer.alloc(16);

  /** Takes over a socket that is bound to an address. */
  constructor(fd: number, address: string, asker: Asker, parts: UdpParts) {
    this.#fd = fd;
    this.#asker = asker;
    this.#parts = parts;
    this.#socket = createSocket(isIPv6(address) ? "udp6" : "udp4");
    this.#socket.on("message", (message, sender) => this.#onMessage(message, sender));
    this.#socket.on("error", parts.onDefect);
    this.#socket.bind({ fd });
    // libuv allows others to share the address, and then the newest of them gets the packets.
    keepAddress(fd);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#socket.close();
  }

  #onMessage(message: Buffer, sender: { readonly address: string; readonly port: number }): void {
    if (this.#isClosed) return;
    const { block, queryBytesMax } = this.#parts;
    block.place(0, message, Math.min(message.length, queryBytesMax), this.#senderAddress(sender.address, sender.port));
    const count = 1 + this.#receiveMore();
    for (let slot = 0; slot < count; slot++) {
      this.#answer(slot);
      if (this.#isClosed) {
        block.discard();
        return;
      }
    }
    this.#asker.counters.unsent += block.flush(this.#fd);
  }

  /**
   * What waits behind the packet that libuv brought. Under load more comes while this is answered, and libuv calls back
   * for it in the same round, at the price of an object a packet; so that is taken in batches as well, up to a bound.
   */
  #receiveMore(): number {
    const { block, turn, queryBytesMax, isBatching } = this.#parts;
    if (!isBatching) return 0;
    const now = turn.now;
    if (this.#turn !== now) {
      this.#turn = now;
      this.#leftInTurn = LIMITS.udpTurnPackets;
    }
    if (this.#leftInTurn <= 0) return 0;
    const count = block.receive(this.#fd, 1, queryBytesMax, this.#leftInTurn);
    this.#leftInTurn -= count;
    return count;
  }

  #answer(slot: number): void {
    const { block, answerer, forward, onDefect } = this.#parts;
    // Port 0 can be asked from but not be answered to.
    if (block.senderPort(slot) === 0) {
      this.#asker.counters.ignored++;
      return;
    }
    try {
      const result = answerer.answer(this.#asker, block.data, block.offsetOf(slot), block.lengthOf(slot), false);
      if (result > 0) {
        block.reply(slot, result);
      } else if (result === DEFERRED) {
        const sender = block.senderOf(slot);
        forward(this.#asker, answerer.takeDeferred(block.data), "udp", (reply) => this.#send(reply, sender));
      }
    } catch (error) {
      this.#asker.counters.failed++;
      onDefect(error);
    }
  }

  #send(reply: Uint8Array, to: Uint8Array): void {
    if (this.#isClosed) return;
    if (sendTo(this.#fd, reply, to) < 0) this.#asker.counters.unsent++;
  }

  /** Almost all queries of a namespace come from one address; its bytes are made once. */
  #senderAddress(address: string, port: number): Buffer {
    if (address !== this.#lastSender) {
      this.#lastSender = address;
      this.#lastSenderAddress = socketAddress(addressBytes(address) ?? new Uint8Array(4), port);
    }
    this.#lastSenderAddress.writeUInt16BE(port, 2);
    return this.#lastSenderAddress;
  }
}
