/**
 * StreamBudget: what the TCP connections of one container may cost in one turn of the event loop. A message may have 64 KB, and a container
 * many connections full of them; other containers would wait for all of it. What exceeds the budget goes on in the next turn of the event
 * loop, one connection after the other.
 */
import { LIMITS } from "../../base/limits.ts";
import { guard } from "../../base/lib/guard.ts";

const { bytes: WHOLE, read: READ } = LIMITS.streamBudget;

interface Readable {
  pause(): unknown;
  resume(): unknown;
}

export class StreamBudget {
  readonly #client: number;
  #left: number = WHOLE;
  #isArmed = false;
  readonly #waiting = new Set<() => void>();

  /** `client`: the container's number. */
  constructor(client: number) {
    this.#client = client;
  }

  /** Whether more may be done in this turn of the event loop. */
  get hasLeft(): boolean {
    return this.#left > 0;
  }

  spend(bytes: number): void {
    this.#left -= bytes;
    this.#arm();
  }

  /** Has the socket read on, or pauses it and calls `goOn` in a later turn of the event loop. */
  read(socket: Readable, goOn: () => void, isNow = this.hasLeft): void {
    if (isNow) {
      socket.resume();
      return;
    }
    socket.pause();
    this.#waiting.add(goOn);
    this.#arm();
  }

  #arm(): void {
    if (this.#isArmed) return;
    this.#isArmed = true;
    setImmediate(() => this.#next());
  }

  #next(): void {
    this.#isArmed = false;
    this.#left = WHOLE;
    for (const goOn of this.#waiting) {
      if (!this.hasLeft) break;
      this.#waiting.delete(goOn);
      // Charged in advance: most connections that go on read something, even if it completes no message.
      this.spend(READ);
      guard.run("tcp", this.#client, goOn);
    }
    if (this.#waiting.size > 0) this.#arm();
  }
}
