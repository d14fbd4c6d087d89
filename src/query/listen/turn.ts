/**
 * Turn: how long one socket's packets are answered before those of the others. The wall clock is cheap, but on a busy machine the
 * kernel gives the processor to other programs meanwhile. So when it says that the turn is over, the thread gets as much time
 * again, of its own: otherwise a turn would end after two packets, and the packets would come faster than they are answered.
 */
import { threadMs } from "../../kernel/thread-time.ts";

export interface TurnClocks {
  readonly wallMs: () => number;
  /** For how long this thread has had a processor. */
  readonly ranMs: () => number;
}

const CLOCKS: TurnClocks = { wallMs: () => performance.now(), ranMs: threadMs };

export class Turn {
  readonly #lengthMs: number;
  readonly #clocks: TurnClocks;
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
