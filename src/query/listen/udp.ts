/**
 * The UDP socket of one namespace. Node tells that it is readable and hands over one packet; from that callback all that
 * wait with it are received, answered in place and sent in three system calls.
 *
 * The object owns descriptor and handle. It is marked closed before the handle is closed, and looks after every answer:
 * once closed, the number of the descriptor may already belong to another container's socket.
 */
import { isIPv6 } from "node:net";

import { LIMITS } from "../../base/limits.ts";
import { closeQuietly, duplicate, sendTo } from "../../kernel/libc.ts";
import type { MessageBlock } from "../../kernel/message-block.ts";
import { UdpWatch } from "../../kernel/udp-watch.ts";
import { guard } from "../../base/lib/guard.ts";
import { addressBytes, socketAddress } from "../../base/model/address.ts";
import type { Client } from "../client/client.ts";
import { type SyncAnswerer, DEFERRED, DROPPED, type DeferredQuery, type Forward, type QueryMeter } from "../ports.ts";

/** Shared by the listeners of all namespaces; what can be written is exchanged when settings change. */
export interface UdpParts {
  readonly block: MessageBlock;
  answerer: SyncAnswerer;
  forward: Forward;
  /** A longer query is cut to this. */
  queryBytesMax: number;
  /** Without batches every packet is answered by itself; for comparison. */
  readonly isBatching: boolean;
  readonly meter?: QueryMeter | undefined;
}

/** Where a packet came from. */
interface PacketSource {
  readonly address: string;
  readonly port: number;
}

/** In a sockaddr. */
const PORT_AT = 2;

export class UdpListener {
  #fd: number;
  /** Nothing as long as somebody else reads what comes. */
  #watch: UdpWatch | undefined;
  readonly #client: Client;
  readonly #parts: UdpParts;
  readonly #isIPv6: boolean;
  #isClosed = false;
  #batchMax: number = LIMITS.udpBatch;
  #lastSender = "";
  #lastSenderAddress: Buffer = Buffer.alloc(16);

  /** Takes over a socket that is bound to an address. */
  constructor(fd: number, address: string, client: Client, parts: UdpParts) {
    this.#fd = fd;
    this.#client = client;
    this.#parts = parts;
    this.#isIPv6 = isIPv6(address);
    this.#watch = this.#open(fd);
  }

  /**
   * Leaves what comes in the socket, for somebody else to read; answers to what was read before still go out. To look at a
   * socket no more is to close it, so it has another number from here on, which is returned.
   */
  pause(): number {
    if (this.#isClosed || this.#watch === undefined) return this.#fd;
    const kept = duplicate(this.#fd);
    this.#watch.close();
    this.#watch = undefined;
    this.#fd = kept;
    return kept;
  }

  /** Reads again. */
  resume(): void {
    if (!this.#isClosed) this.#watch ??= this.#open(this.#fd);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (this.#watch === undefined) closeQuietly(this.#fd);
    else this.#watch.close();
  }

  #open(fd: number): UdpWatch {
    const onPacket = this.#onPacket.bind(this);
    return new UdpWatch(fd, this.#isIPv6 ? 6 : 4, onPacket, (error) => guard.report(error, "udp", this.#client.number));
  }

  #onPacket(message: Buffer, sender: PacketSource): void {
    if (this.#isClosed) return;
    const isWhole = guard.run("udp", this.#client.number, () => this.#work(message, sender));
    if (!isWhole) this.#parts.block.discard();
  }

  #work(message: Buffer, sender: PacketSource): void {
    const { block, queryBytesMax, meter } = this.#parts;
    meter?.begin(this.#isIPv6);
    block.place(0, message, Math.min(message.length, queryBytesMax), this.#senderAddress(sender.address, sender.port));
    const count = 1 + this.#receiveMore();
    let deferred = 0;
    this.#client.history.tick();
    for (let slot = 0; slot < count; slot++) {
      if (this.#answer(slot) === DEFERRED) deferred++;
      if (this.#isClosed) {
        block.discard();
        return;
      }
    }
    this.#batchMax = deferred * 2 > count ? LIMITS.udpBatchDeferred : LIMITS.udpBatch;
    this.#client.counters.unsent += block.flush(this.#fd);
    meter?.end();
  }

  /** What waits behind the packet that Node brought; a lone one costs no more than this look. */
  #receiveMore(): number {
    const { block, queryBytesMax, isBatching } = this.#parts;
    if (!isBatching || this.#watch?.isResting !== false) return 0;
    const count = block.receive(this.#fd, 1, queryBytesMax, this.#batchMax - 1);
    if (count > 0) this.#watch.rest();
    return count;
  }

  #answer(slot: number): number {
    const { block, answerer, meter } = this.#parts;
    // Port 0 can be asked from but not be answered to.
    if (block.senderPort(slot) === 0) {
      this.#client.counters.ignored++;
      return DROPPED;
    }
    try {
      const result = answerer.answer(this.#client, block.data, block.offsetOf(slot), block.lengthOf(slot), false);
      meter?.record(answerer.outcome);
      if (result > 0) {
        block.reply(slot, result);
      } else if (result === DEFERRED) {
        this.#forward(answerer.takeDeferred(block.data), slot);
      }
      return result;
    } catch (error) {
      this.#client.counters.failed++;
      guard.report(error, "udp", this.#client.number);
      return DROPPED;
    }
  }

  #forward(deferred: DeferredQuery, slot: number): void {
    const { block, meter } = this.#parts;
    const port = block.senderPort(slot);
    const sender = block.senderOf(slot, this.#lastSenderAddress);
    this.#parts.forward(this.#client, deferred, "udp", (reply, outcome) => {
      meter?.record(outcome);
      this.#send(reply, sender, port);
    });
  }

  #send(reply: Uint8Array, to: Buffer, port: number): void {
    if (this.#isClosed) return;
    to.writeUInt16BE(port, PORT_AT);
    if (sendTo(this.#fd, reply, to) < 0) this.#client.counters.unsent++;
  }

  /** Almost all queries of a namespace come from one address; its bytes are made once. */
  #senderAddress(address: string, port: number): Buffer {
    if (address !== this.#lastSender) {
      this.#lastSender = address;
      this.#lastSenderAddress = socketAddress(addressBytes(address) ?? new Uint8Array(4), port);
    }
    this.#lastSenderAddress.writeUInt16BE(port, PORT_AT);
    return this.#lastSenderAddress;
  }
}
