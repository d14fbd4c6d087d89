/** Stream: lines as they come. One that ends or breaks is opened again, after a pause that grows while that fails. */
import type { Api } from "./api.ts";

const PAUSE_MS = 1_000;
const PAUSE_MS_MAX = 5_000;

export interface StreamEvents<T> {
  readonly onOpen: () => void;
  readonly onLine: (line: T) => void;
}

export class Stream<T> {
  readonly #api: Api;
  readonly #events: StreamEvents<T>;
  #closed = new AbortController();

  constructor(api: Api, events: StreamEvents<T>) {
    this.#api = api;
    this.#events = events;
    this.#closed.abort();
  }

  open(path: string): void {
    this.close();
    this.#closed = new AbortController();
    void this.#follow(path, this.#closed.signal);
  }

  close(): void {
    this.#closed.abort();
  }

  async #follow(path: string, signal: AbortSignal): Promise<void> {
    for (let pauseMs = PAUSE_MS; !signal.aborted; pauseMs = Math.min(pauseMs * 2, PAUSE_MS_MAX)) {
      try {
        const { onOpen } = this.#events;
        for await (const line of this.#api.lines<T>(path, signal, { onOpen })) {
          pauseMs = PAUSE_MS;
          this.#events.onLine(line);
        }
      } catch {
        // Whether dns11 runs is shown by the polls.
      }
      if (signal.aborted) return;
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }
}
