/**
 * Guard: wraps every entry point from the event loop: a packet, a reply, a timer, an engine event, a request. An
 * internal error behind it costs the one piece of work that hit it, and is reported; it never ends the process. The
 * guard also tracks the client being served, in one word of memory that may outlive the process.
 * |
 * There is one per process, as there is one event loop.
 */
export type Entrance = "udp" | "tcp" | "upstream" | "timer" | "netlink" | "engine" | "attach" | "control" | "elsewhere";

/** Called for each internal error; `client` is 0 for none. */
type OnDefect = (error: unknown, entrance: Entrance, who: number) => void;

/** Without a handler, as in a test, an internal error ends the program. */
const END_BY_IT: OnDefect = (error) => {
  throw error;
};

class Guard {
  /** The number of the client being served, or 0. */
  #inWork: Uint32Array = new Uint32Array(1);
  #onDefect = END_BY_IT;

  /** Sets the handler, and where the number of the current client is kept. */
  install(onDefect: OnDefect, inWork: Uint32Array = new Uint32Array(1)): void {
    this.#onDefect = onDefect;
    this.#inWork = inWork;
  }

  /** Removes the handler. */
  uninstall(): void {
    this.install(END_BY_IT);
  }

  /** Runs a piece of work; returns whether it completed. */
  run(entrance: Entrance, who: number, work: () => void): boolean {
    const word = this.#inWork;
    const before = word[0] as number;
    word[0] = who;
    try {
      work();
      return true;
    } catch (error) {
      this.#onDefect(error, entrance, who);
      return false;
    } finally {
      word[0] = before;
    }
  }

  /** Runs it after the current piece of work. */
  defer(who: number, work: () => void): void {
    queueMicrotask(() => this.run("timer", who, work));
  }

  /** Reports an internal error that was caught elsewhere. */
  report(error: unknown, entrance: Entrance, who = 0): void {
    this.#onDefect(error, entrance, who);
  }
}

export const guard = new Guard();
