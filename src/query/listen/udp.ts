/**
 * UdpListener: a UDP socket: that of one namespace, or one that several clients send to. Node reports that it is readable
 * and delivers one packet; that callback receives all other waiting packets, answers them in place and sends the replies,
 * in three system calls. While more keep coming, those of the next turns of the event loop are received without Node.
 *
 * The object owns the descriptor and the handle. It is marked closed before the handle is closed, and checked after
 * every reply: the number of a closed descriptor may already belong to another container's socket.
 */
import { isIPv6 } from "node:net";
import { LIMITS } from "../../base/limits.ts";
import { closeQuietly, lostPackets, sendTo, waitingBytes, threadMs } from "../../kernel/libc.ts";
import type { MessageBlock } from "../../kernel/message-block.ts";
import type { PacketBatch, PacketSender } from "../../kernel/packet-batch.ts";
import { UdpWatch } from "../../kernel/udp-watch.ts";
import { guard } from "../../base/lib/guard.ts";
import { type AddressKey, addressBytes, socketAddress } from "../../base/model/address.ts";
import type { Client } from "../client/client.ts";
import { type SyncAnswerer, DEFERRED, DROPPED, type DeferredQuery, type Forward, type QueryMeter } from "../ports.ts";

/** Shared by the listeners of all namespaces; the writable fields change with the settings. */
export interface UdpParts {
  readonly block: MessageBlock;
  readonly batch: PacketBatch;
  answerer: SyncAnswerer;
  forward: Forward;
  /** Longer queries are cut to this. */
  queryBytesMax: number;
  /** Limits the time for one batch; the rest of the batch waits for the next turn of the event loop. */
  readonly slice: TimeSlice;
  readonly meter?: QueryMeter | undefined;
}

/** Whose packets a socket receives. */
export interface PacketOwners {
  /** The client of all of them; undefined if several share the socket. */
  readonly only: Client | undefined;
  /** The client that a packet is from, by its source address; undefined if the address belongs to no client. */
  of(source: AddressKey): Client | undefined;
}

export function packetOwnersOf(only: Client): PacketOwners {
  return { only, of: () => only };
}

export interface PacketSource {
  readonly address: string;
  readonly port: number;
}

/** A packet that waits for the next turn of the event loop. */
interface KeptPacket {
  readonly message: Buffer;
  readonly sender: Buffer;
}

/** Offset in a sockaddr. */
const PORT_AT = 2;
/** The number of packets for which the clock is read once. */
const SLOTS_BETWEEN_CLOCKS = 2;
const NO_SENDER = Buffer.alloc(0);

export class UdpListener implements PacketSender<Client> {
  #fd: number;
  /** Undefined while another process reads the packets. */
  #watch: UdpWatch | undefined;
  readonly #packetOwners: PacketOwners;
  readonly #parts: UdpParts;
  readonly #isIPv6: boolean;
  #isClosed = false;
  #batchMax: number = LIMITS.udpBatch;
  /** The rest of the last batch, which took too long. */
  #kept: readonly KeptPacket[] = [];
  #lastSender = "";
  #lastSenderAddress: Buffer = Buffer.alloc(16);

  /** Takes ownership of a bound socket. */
  constructor(fd: number, address: string, packetOwners: PacketOwners, parts: UdpParts) {
    this.#fd = fd;
    this.#packetOwners = packetOwners;
    this.#parts = parts;
    this.#isIPv6 = isIPv6(address);
    this.#watch = this.#open(fd);
  }

  /**
   * Leaves new packets in the socket for another process to read; replies to earlier queries are still sent. Stopping
   * the watch closes its descriptor, so the socket goes on with `kept`, another one for it. Returns the descriptor.
   */
  pause(kept: number): number {
    if (this.#isClosed || this.#watch === undefined) {
      closeQuietly(kept);
      return this.#fd;
    }
    while (this.#kept.length > 0) this.#readOn();
    this.#watch.close();
    this.#watch = undefined;
    this.#fd = kept;
    return kept;
  }

  /** Answers a packet that another socket has received. */
  receive(message: Buffer, source: PacketSource): void {
    this.#onPacket(message, source);
  }

  /** Queries that found the socket's buffer full. */
  get lost(): number {
    return this.#isClosed ? 0 : lostPackets(this.#fd);
  }

  get isBehind(): boolean {
    return !this.#isClosed && (this.#kept.length > 0 || waitingBytes(this.#fd) > 0);
  }

  /** Reads again. */
  resume(): void {
    if (!this.#isClosed) this.#watch ??= this.#open(this.#fd);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#parts.batch.flush();
    this.#isClosed = true;
    if (this.#watch === undefined) closeQuietly(this.#fd);
    else this.#watch.close();
  }

  get fd(): number {
    return this.#fd;
  }

  /** 0 if several clients share the socket. */
  get #clientNumber(): number {
    return this.#packetOwners.only?.number ?? 0;
  }

  #open(fd: number): UdpWatch {
    const onPacket = this.#onPacket.bind(this);
    const onError = (error: Error): void => guard.report(error, "udp", this.#clientNumber);
    return new UdpWatch(fd, this.#isIPv6 ? 6 : 4, onPacket, onError, this.#readOn.bind(this));
  }

  #onPacket(message: Buffer, sender: PacketSource): void {
    if (this.#isClosed) return;
    const isDone = guard.run("udp", this.#clientNumber, () => this.#work(message, sender));
    if (!isDone) this.#parts.block.discard();
  }

  #work(message: Buffer, sender: PacketSource): void {
    const { block, queryBytesMax, meter } = this.#parts;
    meter?.begin(this.#isIPv6);
    block.put(0, message, Math.min(message.length, queryBytesMax), this.#senderAddress(sender.address, sender.port));
    this.#answerFirst(1 + this.#receiveMore());
  }

  /** Answers the packets kept from the last turn of the event loop, or receives those that have come since, without Node. */
  #readOn(): boolean {
    const { block, queryBytesMax, meter } = this.#parts;
    meter?.begin(this.#isIPv6);
    const kept = this.#kept;
    this.#kept = [];
    for (const [slot, { message, sender }] of kept.entries()) block.put(slot, message, message.length, sender);
    const count = kept.length > 0 ? kept.length : block.receive(this.#fd, 0, queryBytesMax, this.#batchMax);
    if (count === 0) return false;
    const isDone = guard.run("udp", this.#clientNumber, () => this.#answerFirst(count));
    if (!isDone) block.discard();
    return true;
  }

  #answerFirst(count: number): void {
    const { block, meter, slice } = this.#parts;
    let deferred = 0;
    const { only } = this.#packetOwners;
    only?.history.tick();
    slice.begin();
    for (let slot = 0; slot < count; slot++) {
      if (slot > 0 && slot % SLOTS_BETWEEN_CLOCKS === 0 && slice.isOver) {
        this.#keep(slot, count);
        break;
      }
      const result = only === undefined ? this.#answerAny(slot) : this.#answer(only, slot);
      if (result === DEFERRED) deferred++;
      if (this.#isClosed) {
        block.discard();
        return;
      }
    }
    this.#batchMax = deferred * 2 > count ? LIMITS.udpBatchDeferred : LIMITS.udpBatch;
    const unsent = block.flush(this.#fd);
    if (only !== undefined) only.counters.unsent += unsent;
    meter?.end();
  }

  /** Receives the packets that wait behind the one from Node; for a single packet this costs one system call. */
  #receiveMore(): number {
    const { block, queryBytesMax } = this.#parts;
    if (this.#watch?.isResting !== false) return 0;
    const count = block.receive(this.#fd, 1, queryBytesMax, this.#batchMax - 1);
    if (count > 0) this.#watch.rest();
    return count;
  }

  /**
   * Keeps the rest of a batch for the next turn of the event loop. Some names cost a millisecond, those of a store with many records; they
   * must not delay other containers.
   */
  #keep(first: number, count: number): void {
    const { block } = this.#parts;
    const kept: KeptPacket[] = [];
    for (let slot = first; slot < count; slot++) {
      const at = block.offsetOf(slot);
      const message = Buffer.from(block.data.subarray(at, at + block.lengthOf(slot)));
      kept.push({ message, sender: block.senderOf(slot, NO_SENDER) });
    }
    this.#kept = kept;
    this.#watch?.rest();
  }

  /** An internal error is reported for the client that sent the packet. */
  #answerAny(slot: number): number {
    const client = this.#packetOwners.of(this.#parts.block.senderKey(slot));
    if (client === undefined) return DROPPED;
    let result = DROPPED;
    guard.run("udp", client.number, () => {
      client.history.tick();
      result = this.#answer(client, slot);
    });
    return result;
  }

  #answer(client: Client, slot: number): number {
    const { block, answerer, meter } = this.#parts;
    const port = block.senderPort(slot);
    // A packet from port 0 cannot be answered.
    if (port === 0) {
      client.counters.ignored++;
      return DROPPED;
    }
    const isOwn = client.ownQueries.areExpected && client.ownQueries.take(false, port);
    try {
      const result = answerer.answer(client, block.data, block.offsetOf(slot), block.lengthOf(slot), false, isOwn);
      meter?.record(answerer.outcome);
      if (result > 0) {
        block.reply(slot, result);
      } else if (result === DEFERRED) {
        this.#forward(client, answerer.takeDeferred(block.data), slot);
      }
      return result;
    } catch (error) {
      client.counters.failed++;
      guard.report(error, "udp", client.number);
      return DROPPED;
    }
  }

  #forward(client: Client, deferred: DeferredQuery, slot: number): void {
    const { block, meter } = this.#parts;
    const port = block.senderPort(slot);
    const sender = block.senderOf(slot, this.#lastSenderAddress);
    this.#parts.forward(client, deferred, "udp", (reply, outcome) => {
      meter?.record(outcome);
      this.#send(client, reply, sender, port);
    });
  }

  #send(client: Client, reply: Uint8Array, to: Buffer, port: number): void {
    if (this.#isClosed) return;
    to.writeUInt16BE(port, PORT_AT);
    if (!this.#parts.batch.add(this, reply, to, client) && sendTo(this.#fd, reply, to) < 0) this.onUnsent(client);
  }

  onUnsent(client: Client): void {
    client.counters.unsent++;
  }

  /** Almost all queries of a namespace come from one address, so its bytes are cached. */
  #senderAddress(address: string, port: number): Buffer {
    if (address !== this.#lastSender) {
      this.#lastSender = address;
      this.#lastSenderAddress = socketAddress(addressBytes(address) ?? new Uint8Array(4), port);
    }
    this.#lastSenderAddress.writeUInt16BE(port, PORT_AT);
    return this.#lastSenderAddress;
  }
}

interface SliceClocks {
  readonly wallMs: () => number;
  /** The CPU time of this thread. */
  readonly ranMs: () => number;
}

const CLOCKS: SliceClocks = { wallMs: () => performance.now(), ranMs: threadMs };

/**
 * TimeSlice: how long one socket's packets are answered before those of the others. The wall clock is cheap, but on a busy machine the
 * kernel runs other programs meanwhile. So when the wall clock says that the slice is over, the thread gets as much time again, of its own
 * CPU time: otherwise a slice would end after two packets, and packets would arrive faster than they are answered.
 */
export class TimeSlice {
  readonly #lengthMs: number;
  readonly #clocks: SliceClocks;
  #startMs = 0;
  /** Undefined until the wall clock has said that it is over. */
  #ranMs: number | undefined;

  constructor(lengthMs: number, clocks = CLOCKS) {
    this.#lengthMs = lengthMs;
    this.#clocks = clocks;
  }

  begin(): void {
    this.#startMs = this.#clocks.wallMs();
    this.#ranMs = undefined;
  }

  get isOver(): boolean {
    if (this.#clocks.wallMs() - this.#startMs <= this.#lengthMs) return false;
    const ranMs = this.#clocks.ranMs();
    this.#ranMs ??= ranMs;
    return ranMs - this.#ranMs > this.#lengthMs;
  }
}
