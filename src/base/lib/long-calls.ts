/**
 * LongCalls: announces that the event loop will be blocked for longer than a moment, by a program that was started, so
 * that the process is not taken for hung. There is one per process, as there is one event loop.
 */
class LongCalls {
  #onAnnounced: (ms: number) => void = () => undefined;

  /** The next call takes at most this long. */
  announce(ms: number): void {
    this.#onAnnounced(ms);
  }

  /** Sets the listener. */
  listen(onAnnounced: (ms: number) => void): void {
    this.#onAnnounced = onAnnounced;
  }
}

export const longCalls = new LongCalls();
