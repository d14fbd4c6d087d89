/**
 * Guard: wraps every entry point from the event loop: a packet, a reply, a timer, an engine event, a request. An
 * internal error behind it costs the one piece of work that hit it, and is reported; it never ends the process. The
 * guard also tracks the client being served, in one word of memory that may outlive the process.
 *
 * There is one per process, as there is one event loop.
 */
export type EntryPoint =
  | "udp"
  | "tcp"
  | "upstream"
  | "timer"
  | "netlink"
  | "engine"
  | "attach"
  | "control"
  | "elsewhere";

/** Called for each internal error; `client` is 0 for none. */
type OnInternalError = (error: unknown, entryPoint: EntryPoint, client: number) => void;

/** Without a handler, as in a test, an internal error ends the program. */
const THROW: OnInternalError = (error) => {
  throw error;
};

class Guard {
  /** The number of the client being served, or 0. */
  #currentClient: Uint32Array = new Uint32Array(1);
  #onInternalError = THROW;

  /** Sets the handler, and where the number of the current client is kept. */
  install(onInternalError: OnInternalError, currentClient: Uint32Array = new Uint32Array(1)): void {
    this.#onInternalError = onInternalError;
    this.#currentClient = currentClient;
  }

  uninstall(): void {
    this.install(THROW);
  }

  /** Runs a piece of work; returns whether it completed. */
  run(entryPoint: EntryPoint, client: number, work: () => void): boolean {
    const word = this.#currentClient;
    const before = word[0] as number;
    word[0] = client;
    try {
      work();
      return true;
    } catch (error) {
      this.#onInternalError(error, entryPoint, client);
      return false;
    } finally {
      word[0] = before;
    }
  }

  /** Runs a piece of work after the current one. */
  defer(client: number, work: () => void): void {
    queueMicrotask(() => this.run("timer", client, work));
  }

  /** Reports an internal error that was caught elsewhere. */
  report(error: unknown, entryPoint: EntryPoint, client = 0): void {
    this.#onInternalError(error, entryPoint, client);
  }
}

export const guard = new Guard();

/** Work that is due after any of many changes, done once after all changes of a step, before the next step. */
export function oncePerStep(work: () => void): () => void {
  let isDue = false;
  return () => {
    if (isDue) return;
    isDue = true;
    guard.defer(0, () => {
      isDue = false;
      work();
    });
  };
}
