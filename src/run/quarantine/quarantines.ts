/**
 * Quarantines: which containers may end dns11 again, for all who have to know: what is attached last, what is not attached
 * at all, and what to tell of it. It begins with the last words of the process before.
 */
import { reasonOf } from "../../base/lib/fault.ts";
import type { Log } from "../../base/log/log.ts";
import { CrashRecorder, type CrashContext } from "./crash-recorder.ts";
import { CrashHistory } from "./crash-history.ts";

/** setTimeout takes no more. */
const TIMER_MS_MAX = 2 ** 31 - 1;

export class Quarantines {
  readonly #folder: string | undefined;
  readonly #log: Log | undefined;
  readonly #deaths: CrashHistory;
  #box = CrashRecorder.unmapped();
  #timer: NodeJS.Timeout | undefined;

  private constructor(deaths: CrashHistory, folder?: string, log?: Log) {
    this.#deaths = deaths;
    this.#folder = folder;
    this.#log = log;
  }

  /** What was decided before. Where its files cannot be written, deaths are not remembered, and that is told. */
  static open(folder: string, log: Log): Quarantines {
    const deaths = new CrashHistory(folder, (error) =>
      log.warn({ reason: reasonOf(error) }, "how dns11 died before cannot be written down"),
    );
    return new Quarantines(deaths, folder, log);
  }

  /** For a look at what would be done: nothing is read or written. */
  static none(): Quarantines {
    return new Quarantines(new CrashHistory("/nonexistent", () => undefined));
  }

  /** Where it is written down what is being done, once `enter` was called. */
  get recorder(): CrashRecorder {
    return this.#box;
  }

  /** Reads the last words of the process before, and begins its own. Only whoever holds the lock may. */
  begin(): void {
    if (this.#folder === undefined || this.#log === undefined) return;
    this.#box = opened(this.#folder, this.#log);
    const { previous: before } = this.#box;
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
    this.recorder.close();
  }
}

function opened(folder: string, log: Log): CrashRecorder {
  try {
    return CrashRecorder.open(folder);
  } catch (error) {
    log.warn({ reason: reasonOf(error) }, "whose work ends dns11 would not be known: its state folder cannot be used");
    return CrashRecorder.unmapped();
  }
}

function tellOf(words: CrashContext | null, deaths: CrashHistory, log: Log): void {
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
