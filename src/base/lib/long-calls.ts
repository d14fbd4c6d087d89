/**
 * LongCalls: whoever is about to keep the event loop waiting for longer than a moment, for a program that it has started,
 * says so first, lest it be taken for hung. There is one for the process, as there is one event loop.
 */
class LongCalls {
  #onAnnounced: (ms: number) => void = () => undefined;

  /** The next call takes this long at most. */
  announce(ms: number): void {
    this.#onAnnounced(ms);
  }

  /** Who is told, from now on. */
  listen(onAnnounced: (ms: number) => void): void {
    this.#onAnnounced = onAnnounced;
  }
}

export const longCalls = new LongCalls();
