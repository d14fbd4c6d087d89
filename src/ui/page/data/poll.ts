/**
 * Poll: one value of the run, requested again and again. Requests do not overlap, and a response that is the same as the last one
 * changes nothing, so nothing is drawn.
 */
import { type Api, type ApiError, parse } from "./api.ts";
import type { Cell } from "./cell.ts";

/** Called after each request. */
export type OnPolled = (error: ApiError | undefined) => void;

const PUT_OFF_MS_MAX = 5_000;

export class Poll<T> {
  readonly #api: Api;
  readonly #path: string;
  readonly #cell: Cell<T | null>;
  readonly #everyMs: number;
  readonly #onPolled: OnPolled;
  #last = "";
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isBusy = false;
  /** Requested again while a request was under way. */
  #isWanted = false;
  /** Repeated calls of `soon` delay the request no longer than until then. */
  #untilMs: number | undefined;

  constructor(api: Api, path: string, cell: Cell<T | null>, everyMs: number, onPolled: OnPolled = () => {}) {
    this.#api = api;
    this.#path = path;
    this.#cell = cell;
    this.#everyMs = everyMs;
    this.#onPolled = onPolled;
  }

  start(): void {
    this.stop();
    this.soon(0);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Earlier than its turn; what asks for it often is answered once. */
  soon(afterMs: number): void {
    if (this.#isBusy) this.#isWanted = true;
    const nowMs = performance.now();
    this.#untilMs ??= nowMs + PUT_OFF_MS_MAX;
    this.#after(Math.max(0, Math.min(afterMs, this.#untilMs - nowMs)));
  }

  /** The value is not to be shown any more. */
  forget(): void {
    this.#last = "";
    this.#cell.set(null);
  }

  #after(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#request(), ms);
  }

  async #request(): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    this.#untilMs = undefined;
    let error: ApiError | undefined;
    try {
      const text = await this.#api.text(this.#path);
      if (text !== this.#last) {
        this.#last = text;
        this.#cell.set(parse(text) as T);
      }
    } catch (thrown) {
      error = thrown as ApiError;
    }
    this.#isBusy = false;
    this.#onPolled(error);
    if (this.#timer === undefined) return;
    const next = this.#isWanted ? 0 : this.#everyMs;
    this.#isWanted = false;
    this.#after(next);
  }
}
