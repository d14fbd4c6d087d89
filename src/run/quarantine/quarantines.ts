/**
 * Quarantines: the containers that may crash dns11 again, or make it wait. Decides which are attached last, and which are not
 * attached at all. Starts from what the previous process was doing when it crashed.
 */
import { LIMITS } from "../../base/limits.ts";
import { reasonOf } from "../../base/lib/fault.ts";
import type { Log } from "../../base/log/log.ts";
import { CrashRecorder, type CrashContext } from "./crash-recorder.ts";
import { CrashHistory } from "./crash-history.ts";

/** The longest delay that setTimeout accepts. */
const TIMER_MS_MAX = 2 ** 31 - 1;

export class Quarantines {
  readonly #folder: string | undefined;
  readonly #log: Log | undefined;
  readonly #history: CrashHistory;
  /** The times at which each container held a lock for too long. */
  readonly #lateMs = new Map<string, readonly number[]>();
  #recorder = CrashRecorder.unmapped();
  #onEnd: () => void = () => undefined;
  #timer: NodeJS.Timeout | undefined;

  private constructor(history: CrashHistory, folder?: string, log?: Log) {
    this.#history = history;
    this.#folder = folder;
    this.#log = log;
  }

  /** Loads earlier decisions. Logs where the crash history cannot be written. */
  static open(folder: string, log: Log): Quarantines {
    const history = new CrashHistory(folder, (error) =>
      log.warn({ reason: reasonOf(error) }, "cannot write the crash history"),
    );
    return new Quarantines(history, folder, log);
  }

  /** For a preview: nothing is read or written. */
  static none(): Quarantines {
    return new Quarantines(new CrashHistory("/nonexistent", () => undefined));
  }

  /** Records what dns11 is doing, once `begin` was called. */
  get recorder(): CrashRecorder {
    return this.#recorder;
  }

  /**
   * Reads the record of the previous process and starts our own. Only the holder of the instance lock may call this.
   */
  begin(): void {
    if (this.#folder === undefined || this.#log === undefined) return;
    this.#recorder = openRecorder(this.#folder, this.#log);
    const { previous } = this.#recorder;
    this.#history.recordEnd(previous);
    if (previous !== undefined) logCrash(previous, this.#history, this.#log);
  }

  readonly isSuspect = (containerId: string): boolean => this.#history.isSuspect(containerId);

  /** Why a container is quarantined, as a sentence; undefined where it is not. */
  readonly reasonFor = (containerId: string): string | undefined => {
    const found = this.#history.quarantineOf(containerId);
    if (found === undefined) return undefined;
    const until = new Date(found.untilMs).toISOString();
    const why =
      found.doing === "waiting"
        ? `dns11 had to wait ${LIMITS.lateUntilQuarantine} times for the lock of its rules (nf_tables), which its processes held for seconds`
        : `dns11 crashed repeatedly while ${found.doing} it`;
    return `${why}; quarantined until ${until}`;
  };

  /** Why a container is not even inspected. */
  readonly inspectionBarredBy = (containerId: string): string | undefined =>
    this.#history.quarantineOf(containerId)?.doing === "inspecting" ? this.reasonFor(containerId) : undefined;

  /** Charges a container whose processes hold a lock for too long. Returns whether it is quarantined from now on. */
  chargeLock(containerId: string): boolean {
    const nowMs = performance.now();
    const recent = (this.#lateMs.get(containerId) ?? []).filter((atMs) => nowMs - atMs < LIMITS.lateWindowMs);
    // The latest last; the oldest is forgotten.
    this.#lateMs.delete(containerId);
    this.#lateMs.set(containerId, [...recent, nowMs]);
    const [oldest] = this.#lateMs.keys();
    if (this.#lateMs.size > LIMITS.quarantinesKept && oldest !== undefined) this.#lateMs.delete(oldest);
    if (recent.length + 1 < LIMITS.lateUntilQuarantine) return false;
    this.#lateMs.delete(containerId);
    this.#history.quarantine(containerId, "waiting");
    this.watch(this.#onEnd);
    return true;
  }

  /** Calls `onEnd` whenever a quarantine ends. */
  watch(onEnd: () => void): void {
    this.#onEnd = onEnd;
    clearTimeout(this.#timer);
    const endMs = this.#history.nextEndMs;
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

  /** Ends a quarantine by hand; returns whether there was one. */
  release(containerId: string): boolean {
    return this.#history.release(containerId);
  }

  /** The process exits normally. */
  close(): void {
    clearTimeout(this.#timer);
    this.recorder.close();
  }
}

function openRecorder(folder: string, log: Log): CrashRecorder {
  try {
    return CrashRecorder.open(folder);
  } catch (error) {
    log.warn({ reason: reasonOf(error) }, "cannot record crashes, the state directory is unusable");
    return CrashRecorder.unmapped();
  }
}

function logCrash(context: CrashContext | null, history: CrashHistory, log: Log): void {
  if (context === null) {
    log.warn("previous run crashed or was killed while idle");
    return;
  }
  const { doing, containerId } = context;
  const container = containerId.slice(0, 12);
  const isQuarantined = history.quarantineOf(containerId) !== undefined;
  const action = isQuarantined ? "is quarantined" : "is attached last, on its own";
  const consequence = isQuarantined || history.isSuspect(containerId) ? `; this container ${action}` : "";
  log.warn({ container, doing }, `previous run crashed or was killed while serving a container${consequence}`);
}
