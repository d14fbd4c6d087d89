/**
 * WaitingRoom: the first queries of containers that have just started. They come by links that nobody is known to have yet, some
 * milliseconds before Docker has told whose they are; without the room they would be lost, and a C library asks again after
 * seconds. A query is answered when its address becomes a container's; the answer goes to that address, whoever has sent it.
 */
import { isIPv6 } from "node:net";

import { guard } from "../../base/lib/guard.ts";
import { LIMITS } from "../../base/limits.ts";
import { closeQuietly } from "../../kernel/libc.ts";
import { UdpWatch } from "../../kernel/udp-watch.ts";
import type { PacketSource } from "./udp.ts";

/** A bound UDP socket. */
export interface WaitingSocket {
  readonly udp: number;
  readonly listening: { readonly address: string };
}

interface WaitingRoomParts {
  /** Whether the address is a container's. */
  readonly isKnown: (address: string) => boolean;
  /** Answers a query; returns whether there is somebody to answer. */
  readonly deliver: (message: Buffer, source: PacketSource) => boolean;
}

interface Waiting {
  readonly message: Buffer;
  readonly source: PacketSource;
  readonly untilMs: number;
}

export class WaitingRoom {
  readonly #parts: WaitingRoomParts;
  readonly #watches: UdpWatch[] = [];
  #waiting: Waiting[] = [];
  /** Others read the queries now. */
  isPaused = false;

  constructor(parts: WaitingRoomParts) {
    this.#parts = parts;
  }

  /** Takes ownership of the sockets. If it cannot read one of them, closes all, and throws. */
  add(sockets: readonly WaitingSocket[]): void {
    const unused = new Set(sockets.map(({ udp }) => udp));
    const onMessage = (message: Buffer, source: PacketSource): void => this.#keep(message, source);
    const onError = (error: Error): void => guard.report(error, "udp");
    try {
      for (const { udp, listening } of sockets) {
        this.#watches.push(new UdpWatch(udp, isIPv6(listening.address) ? 6 : 4, onMessage, onError));
        unused.delete(udp);
      }
    } catch (error) {
      for (const fd of unused) closeQuietly(fd);
      this.close();
      throw error;
    }
  }

  /** Other containers have addresses now, or what they see is known. */
  release(): void {
    if (this.#waiting.length === 0 || this.isPaused) return;
    const nowMs = performance.now();
    this.#waiting = this.#waiting.filter(({ message, source, untilMs }) => {
      return untilMs > nowMs && !this.#parts.deliver(message, source);
    });
  }

  close(): void {
    for (const watch of this.#watches) watch.close();
    this.#waiting = [];
  }

  /** An address that is known already came by somebody else's link. */
  #keep(message: Buffer, source: PacketSource): void {
    if (this.isPaused || message.length > LIMITS.udpQueryBytes || this.#parts.isKnown(source.address)) return;
    const nowMs = performance.now();
    this.#waiting = this.#waiting.filter(({ untilMs }) => untilMs > nowMs);
    if (this.#waiting.length >= LIMITS.listenerWaiting) return;
    this.#waiting.push({ message, source, untilMs: nowMs + LIMITS.listenerWaitingMs });
  }
}
