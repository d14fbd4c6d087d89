/**
 * Quarantines: which containers may end dns11 again, for all who have to know: what is attached last, what is not attached
 * at all, and what to tell of it. It begins with the last words of the process before.
 */
import { reasonOf } from "../../base/lib/fault.ts";
import type { Log } from "../../base/log/log.ts";
import { BlackBox, type LastWords } from "./black-box.ts";
import { Deaths } from "./deaths.ts";

/** setTimeout takes no more. */
const TIMER_MS_MAX = 2 ** 31 - 1;

export class Quarantines {
  readonly #folder: string | undefined;
  readonly #log: Log | undefined;
  readonly #deaths: Deaths;
  #box = BlackBox.unmapped();
  #timer: NodeJS.Timeout | undefined;

  private constructor(deaths: Deaths, folder?: string, log?: Log) {
    this.#deaths = deaths;
    this.#folder = folder;
    this.#log = log;
  }

  /** What was decided before. Where its files cannot be written, deaths are not remembered, and that is told. */
  static open(folder: string, log: Log): Quarantines {
    const deaths = new Deaths(folder, (error) =>
      log.warn({ reason: reasonOf(error) }, "how dns11 died before cannot be written down"),
    );
    return new Quarantines(deaths, folder, log);
  }

  /** For a look at what would be done: nothing is read or written. */
  static none(): Quarantines {
    return new Quarantines(new Deaths("/nonexistent", () => undefined));
  }

  /** Where it is written down what is being done, once `enter` was called. */
  get box(): BlackBox {
    return this.#box;
  }

  /** Reads the last words of the process before, and begins its own. Only whoever holds the lock may. */
  enter(): void {
    if (this.#folder === undefined || this.#log === undefined) return;
    this.#box = opened(this.#folder, this.#log);
    const { before } = this.#box;
    this.#deaths.note(before);
    if (before !== undefined) tellOf(before, this.#deaths, this.#log);
  }

  readonly isSuspect = (containerId: string): boolean => this.#deaths.isSuspect(containerId);

  /** Why a container is left to Docker's resolver, as a sentence; undefined where it is not. */
  readonly reasonFor = (containerId: string): string | undefined => {
    const found = this.#deaths.of(containerId);
    if (found === undefined) return undefined;
    const until = new Date(found.untilMs).toISOString();
    return `dns11 died again and again while it was ${found.doing} it; it is in quarantine until ${until}`;
  };

  /** Has it told when a quarantine ends. */
  watch(onEnd: () => void): void {
    clearTimeout(this.#timer);
    const endMs = this.#deaths.nextEndMs;
    if (endMs === undefined) return;
    this.#timer = setTimeout(
      () => {
        onEnd();
        this.watch(onEnd);
      },
      Math.min(TIMER_MS_MAX, Math.max(0, endMs - Date.now()) + 1),
    );
    this.#timer.unref();
  }

  /** Somebody takes the risk; whether it was in quarantine. */
  release(containerId: string): boolean {
    return this.#deaths.release(containerId);
  }

  /** The process ends by itself. */
  close(): void {
    clearTimeout(this.#timer);
    this.box.close();
  }
}

function opened(folder: string, log: Log): BlackBox {
  try {
    return BlackBox.open(folder);
  } catch (error) {
    log.warn({ reason: reasonOf(error) }, "whose work ends dns11 would not be known: its state folder cannot be used");
    return BlackBox.unmapped();
  }
}

function tellOf(words: LastWords | null, deaths: Deaths, log: Log): void {
  if (words === null) {
    log.warn("dns11 was killed, or died, while it was idle");
    return;
  }
  const { doing, containerId } = words;
  const container = containerId.slice(0, 12);
  const what = deaths.of(containerId) !== undefined ? "is left to Docker's resolver" : "is attached last and alone";
  const follows = deaths.of(containerId) !== undefined || deaths.isSuspect(containerId) ? `; it ${what}` : "";
  log.warn({ container, doing }, `dns11 was killed, or died, while it was at work for a container${follows}`);
}
