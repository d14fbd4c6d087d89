/**
 * Guard: stands at every entrance from the event loop: a packet, a reply, a timer, an event of the engine's, a request. A
 * defect behind it costs the one piece of work that laid it bare, and is told; it never ends the process. The guard also
 * knows whose work is being done, in one word that may lie in memory which outlives the process.
 *
 * There is one for the process, as there is one event loop.
 */
export type Entrance = "udp" | "tcp" | "upstream" | "timer" | "netlink" | "engine" | "attach" | "control" | "elsewhere";

/** Told of each defect; `who` is the number of an client, 0 for nobody. */
type OnDefect = (error: unknown, entrance: Entrance, who: number) => void;

/** A program without anybody to tell, as a test is, ends by its defects. */
const END_BY_IT: OnDefect = (error) => {
  throw error;
};

class Guard {
  /** Whose work is being done: the number of an client, or 0. */
  #inWork: Uint32Array = new Uint32Array(1);
  #onDefect = END_BY_IT;

  /** Has defects told to `onDefect` from now on, and keeps whose work is being done in `inWork`. */
  install(onDefect: OnDefect, inWork: Uint32Array = new Uint32Array(1)): void {
    this.#onDefect = onDefect;
    this.#inWork = inWork;
  }

  /** Nobody is told any more. */
  uninstall(): void {
    this.install(END_BY_IT);
  }

  /** Does a piece of work; whether it came to its end. */
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

  /** Does it when what is being done now has returned. */
  defer(who: number, work: () => void): void {
    queueMicrotask(() => this.run("timer", who, work));
  }

  /** A defect that was caught on the way. */
  report(error: unknown, entrance: Entrance, who = 0): void {
    this.#onDefect(error, entrance, who);
  }
}

export const guard = new Guard();
