/**
 * MessageBlock: the memory in which packets are received, answered, and sent. One block receives for every UDP socket of the
 * process, because a batch is received, answered and sent within one turn of the event loop; another sends what does not
 * leave with its batch. The kernel's arrays of struct mmsghdr are laid out once; per packet only lengths change.
 */
import type { AddressKey } from "../base/model/address.ts";
import { addressOf, lastErrno, receiveMany, sendMany } from "./libc.ts";

/**
 * struct mmsghdr on a 64-bit machine: name, its length, iovec, their count, control, its length, flags, message length.
 */
const HEADER_BYTES = 64;
const HEADER_WORDS = HEADER_BYTES / 4;
const NAME_LENGTH_WORD = 2;
const IOVEC_WORD = 4;
const IOVEC_COUNT_WORD = 6;
const MESSAGE_LENGTH_WORD = 14;
const IOVEC_BYTES = 16;
const IOVEC_WORDS = IOVEC_BYTES / 4;
const ADDRESS_BYTES = 28;
/** Where the address begins in a sockaddr of either family. */
const BEHIND_PORT = 4;
/** The length of a sockaddr_in, and where the address is in a sockaddr_in6. */
const IPV4_SOCKET_ADDRESS_BYTES = 16;
const IPV6_ADDRESS_AT = 8;
const IPV6_BYTES = 16;
const EINTR = 4;
const EAGAIN = 11;

export class MessageBlock {
  readonly data: Buffer;
  readonly slots: number;
  readonly #stride: number;
  readonly #addresses: Buffer;
  readonly #receiveHeaders: Uint32Array;
  readonly #receiveAddress: number;
  readonly #sendHeaders: Uint32Array;
  readonly #sendIovecs: Uint32Array;
  readonly #sendAddress: number;
  readonly #receiveIovecs: Uint32Array;
  readonly #dataAddress: number;
  readonly #namesAddress: number;
  #replies = 0;
  /** The errno of the last receive; 0 if the socket was just empty. A connected socket reports refusals this way. */
  receiveErrno = 0;

  constructor(slots: number, slotBytes: number) {
    this.slots = slots;
    // A stride that is not a multiple of a page puts the slots' first lines into different cache sets.
    this.#stride = Math.ceil(slotBytes / 64) * 64 + 64;
    // Only written pages take memory, so room for the largest message costs nothing until one arrives.
    this.data = Buffer.allocUnsafeSlow(slots * this.#stride);
    this.#addresses = Buffer.alloc(slots * ADDRESS_BYTES);
    this.#receiveHeaders = new Uint32Array(slots * HEADER_WORDS);
    this.#sendHeaders = new Uint32Array(slots * HEADER_WORDS);
    this.#receiveIovecs = new Uint32Array(slots * IOVEC_WORDS);
    this.#sendIovecs = new Uint32Array(slots * IOVEC_WORDS);
    this.#dataAddress = addressOf(this.data);
    this.#namesAddress = addressOf(this.#addresses);
    this.#receiveAddress = addressOf(bytesOf(this.#receiveHeaders));
    this.#sendAddress = addressOf(bytesOf(this.#sendHeaders));
    const receiveIovecs = addressOf(bytesOf(this.#receiveIovecs));
    const sendIovecs = addressOf(bytesOf(this.#sendIovecs));
    for (let slot = 0; slot < slots; slot++) {
      const header = slot * HEADER_WORDS;
      writePointer(this.#receiveHeaders, header, this.#namesAddress + slot * ADDRESS_BYTES);
      writePointer(this.#receiveHeaders, header + IOVEC_WORD, receiveIovecs + slot * IOVEC_BYTES);
      this.#receiveHeaders[header + IOVEC_COUNT_WORD] = 1;
      writePointer(this.#receiveIovecs, slot * IOVEC_WORDS, this.#dataAddress + slot * this.#stride);
      writePointer(this.#sendHeaders, header + IOVEC_WORD, sendIovecs + slot * IOVEC_BYTES);
      this.#sendHeaders[header + IOVEC_COUNT_WORD] = 1;
    }
  }

  /** Where a slot's message begins in `data`. */
  offsetOf(slot: number): number {
    return slot * this.#stride;
  }

  /** Length of the message received into a slot. */
  lengthOf(slot: number): number {
    return this.#receiveHeaders[slot * HEADER_WORDS + MESSAGE_LENGTH_WORD] as number;
  }

  /** Receives waiting messages into the slots from `first`, each truncated at `bytesMax`; returns their number. */
  receive(fd: number, first: number, bytesMax: number, most = this.slots): number {
    const count = Math.min(this.slots - first, most);
    for (let slot = first; slot < first + count; slot++) {
      this.#receiveHeaders[slot * HEADER_WORDS + NAME_LENGTH_WORD] = ADDRESS_BYTES;
      this.#receiveIovecs[slot * IOVEC_WORDS + 2] = bytesMax;
    }
    const received = receiveMany(fd, this.#receiveAddress + first * HEADER_BYTES, count);
    const errno = received < 0 ? lastErrno() : 0;
    this.receiveErrno = errno === EAGAIN || errno === EINTR ? 0 : errno;
    return Math.max(0, received);
  }

  /** Puts a message from elsewhere into a slot, as if it had been received into it. */
  put(slot: number, message: Uint8Array, length: number, sender: Uint8Array): void {
    this.data.set(length === message.length ? message : message.subarray(0, length), this.offsetOf(slot));
    this.#addresses.set(sender, slot * ADDRESS_BYTES);
    this.#receiveHeaders[slot * HEADER_WORDS + NAME_LENGTH_WORD] = sender.length;
    this.#receiveHeaders[slot * HEADER_WORDS + MESSAGE_LENGTH_WORD] = length;
  }

  /** The source port of a slot's message. */
  senderPort(slot: number): number {
    return this.#addresses.readUInt16BE(slot * ADDRESS_BYTES + 2);
  }

  /** The source address of a slot's message in a form for tables: a number for IPv4, its bytes as text for IPv6. */
  senderKey(slot: number): AddressKey {
    const start = slot * ADDRESS_BYTES;
    const isIpv4 = this.#receiveHeaders[slot * HEADER_WORDS + NAME_LENGTH_WORD] === IPV4_SOCKET_ADDRESS_BYTES;
    return isIpv4
      ? this.#addresses.readUInt32BE(start + BEHIND_PORT)
      : this.#addresses.toString("latin1", start + IPV6_ADDRESS_AT, start + IPV6_ADDRESS_AT + IPV6_BYTES);
  }

  /**
   * The source address of a slot's message, for a later answer: a copy, or `known` where that differs only in the port,
   * because almost all messages in a namespace come from one address.
   */
  senderOf(slot: number, known: Buffer): Buffer {
    const start = slot * ADDRESS_BYTES;
    const length = this.#receiveHeaders[slot * HEADER_WORDS + NAME_LENGTH_WORD] as number;
    return this.#hasAddress(start, length, known)
      ? known
      : Buffer.from(this.#addresses.subarray(start, start + length));
  }

  #hasAddress(start: number, length: number, known: Buffer): boolean {
    if (known.length !== length) return false;
    for (let at = BEHIND_PORT; at < length; at++) if (this.#addresses[start + at] !== known[at]) return false;
    return true;
  }

  /** Queues a slot's first `length` bytes as the reply to its message. */
  reply(slot: number, length: number): void {
    const header = this.#replies * HEADER_WORDS;
    const iovec = this.#replies * IOVEC_WORDS;
    writePointer(this.#sendHeaders, header, this.#namesAddress + slot * ADDRESS_BYTES);
    this.#sendHeaders[header + NAME_LENGTH_WORD] = this.#receiveHeaders[
      slot * HEADER_WORDS + NAME_LENGTH_WORD
    ] as number;
    writePointer(this.#sendIovecs, iovec, this.#dataAddress + slot * this.#stride);
    this.#sendIovecs[iovec + 2] = length;
    this.#replies++;
  }

  /**
   * Sends all replies. The kernel stops at the first that it cannot send. That one is skipped, so that an EPERM for one client never costs
   * another client its answer. Returns how many were skipped, and calls `onUnsent` with the index of each.
   */
  flush(fd: number, onUnsent?: (index: number, errno: number) => void): number {
    const total = this.#replies;
    this.#replies = 0;
    let unsent = 0;
    for (let at = 0; at < total;) {
      const sent = sendMany(fd, this.#sendAddress + at * HEADER_BYTES, total - at);
      if (sent > 0) {
        at += sent;
      } else {
        const errno = lastErrno();
        if (errno === EINTR) continue;
        onUnsent?.(at, errno);
        at++;
        unsent++;
      }
    }
    return unsent;
  }

  /** Drops replies whose socket is gone. */
  discard(): void {
    this.#replies = 0;
  }
}

function bytesOf(words: Uint32Array): Uint8Array {
  return new Uint8Array(words.buffer);
}

/** Writes a pointer, low half first. Addresses are below 2^53, so a number holds one. */
function writePointer(words: Uint32Array, word: number, address: number): void {
  words[word] = address >>> 0;
  words[word + 1] = Math.floor(address / 0x1_0000_0000);
}
