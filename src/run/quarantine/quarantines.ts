/**
 * Quarantines: the containers that may crash dns11 again, or make it wait. Decides which are attached last, and which are not
 * attached at all. Starts from what the previous process was doing when it crashed.
 */
import { LIMITS } from "../../base/limits.ts";
import { reasonOf } from "../../base/lib/fault.ts";
import type { Log } from "../../base/log/log.ts";
import { CrashRecorder, type CrashContext } from "./crash-recorder.ts";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** The longest delay that setTimeout accepts. */
const TIMER_MS_MAX = 2 ** 31 - 1;

export class Quarantines {
  readonly #folder: string | undefined;
  readonly #log: Log | undefined;
  readonly #history: CrashHistory;
  /** The times at which each container held a lock for too long. */
  readonly #lateMs = new Map<string, readonly number[]>();
  #recorder = CrashRecorder.unmapped();
  /** Those of the recorder that was closed. */
  #clients: Buffer | undefined;
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
   * Reads the record of the previous process and starts our own, or goes on with it after `close`. Only the holder of the instance lock
   * may call this.
   */
  begin(): void {
    if (this.#folder === undefined || this.#log === undefined) return;
    this.#recorder = openRecorder(this.#folder, this.#log, this.#clients);
    this.#clients = undefined;
    const { previous } = this.#recorder;
    this.#history.recordEnd(previous);
    if (previous !== undefined) logCrash(previous, this.#history, this.#log);
    this.watch(this.#onEnd);
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

  /** The process exits normally, or pauses for one that takes over. */
  close(): void {
    clearTimeout(this.#timer);
    this.#clients = this.recorder.close();
  }
}

function openRecorder(folder: string, log: Log, clients: Buffer | undefined): CrashRecorder {
  try {
    return CrashRecorder.open(folder, clients);
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

interface Quarantine {
  readonly untilMs: number;
  /** What dns11 was doing for the container when it crashed; or it had to wait for the container's locks. */
  readonly doing: CrashContext["doing"] | "waiting";
  /** How often it has been quarantined. */
  readonly times: number;
}

interface Crash {
  readonly atMs: number;
  /** null where dns11 was idle. */
  readonly words: CrashContext | null;
}

interface StoredHistory {
  readonly deaths: readonly Crash[];
  readonly quarantines: Readonly<{ [containerId: string]: Quarantine }>;
}

const FILE = "deaths.json";
const NOTHING: StoredHistory = { deaths: [], quarantines: {} };

/**
 * Counts consecutive crashes of dns11 while it worked for one container. After two crashes within a
 * minute, the container is attached last and alone. After one more it stays with Docker's resolver for an hour, and
 * twice as long each further time; so does one that holds its locks too long. Stored on disk, because the process that
 * decides is not the one that crashed.
 */
export class CrashHistory {
  readonly #path: string;
  readonly #nowMs: () => number;
  readonly #onWriteError: (error: unknown) => void;
  #stored: StoredHistory;

  /** `onWriteError` is called where the file cannot be written: decisions then last until this process ends. */
  constructor(folder: string, onWriteError: (error: unknown) => void, nowMs: () => number = Date.now) {
    this.#path = join(folder, FILE);
    this.#nowMs = nowMs;
    this.#onWriteError = onWriteError;
    this.#stored = read(this.#path);
  }

  /**
   * Records a crash of the previous process. undefined: it exited normally, which clears all suspects.
   */
  recordEnd(context: CrashContext | null | undefined): void {
    const now = this.#nowMs();
    const { deaths, quarantines } = this.#stored;
    if (context === undefined) {
      if (deaths.length > 0) this.#save({ deaths: [], quarantines });
      return;
    }
    const all = [...deaths, { atMs: now, words: context }].slice(-LIMITS.crashesKept);
    this.#save({ deaths: all, quarantines });
    if (context === null || this.#consecutive(context.containerId) < LIMITS.crashesUntilQuarantine) return;
    this.quarantine(context.containerId, context.doing);
    this.#save({ deaths: [], quarantines: this.#stored.quarantines });
  }

  /** It lasts from now on, for longer than the last time. */
  quarantine(containerId: string, doing: Quarantine["doing"]): void {
    // Newest last; the oldest are dropped.
    const { [containerId]: known, ...others } = this.#stored.quarantines;
    const times = (known?.times ?? 0) + 1;
    const added: Quarantine = { untilMs: this.#nowMs() + lengthMs(times), doing, times };
    const kept = Object.entries(others).slice(1 - LIMITS.quarantinesKept);
    const quarantines = { ...Object.fromEntries(kept), [containerId]: added };
    this.#save({ deaths: this.#stored.deaths, quarantines });
  }

  /** Whether to attach it last and alone. */
  isSuspect(containerId: string): boolean {
    return this.#consecutive(containerId) >= LIMITS.crashesUntilSuspect;
  }

  /** The active quarantine of a container. */
  quarantineOf(containerId: string): Quarantine | undefined {
    this.#clamp();
    const found = this.#stored.quarantines[containerId];
    return found !== undefined && this.#nowMs() < found.untilMs ? found : undefined;
  }

  /** When the next quarantine ends. */
  get nextEndMs(): number | undefined {
    this.#clamp();
    const ends = Object.values(this.#stored.quarantines).map(({ untilMs }) => untilMs);
    const next = Math.min(...ends.filter((untilMs) => untilMs > this.#nowMs()));
    return Number.isFinite(next) ? next : undefined;
  }

  /** Ends a quarantine by hand; returns whether there was one. */
  release(containerId: string): boolean {
    const isHeld = this.quarantineOf(containerId) !== undefined;
    const { [containerId]: _, ...quarantines } = this.#stored.quarantines;
    const deaths = this.#stored.deaths.filter(({ words }) => words?.containerId !== containerId);
    this.#save({ deaths, quarantines });
    return isHeld;
  }

  /** Counts the most recent crashes that were all of this container, each soon after the one before. */
  #consecutive(containerId: string): number {
    let count = 0;
    let laterMs = this.#nowMs();
    for (const { atMs, words } of this.#stored.deaths.toReversed()) {
      // One that seems to come from the future was before the clock was set back, nobody knows how long.
      if (words?.containerId !== containerId || Math.abs(laterMs - atMs) > LIMITS.crashWindowMs) break;
      laterMs = atMs;
      count++;
    }
    return count;
  }

  /** Where the clock was set back, a quarantine would last longer by as much: it ends after its own length at the latest. */
  #clamp(): void {
    const nowMs = this.#nowMs();
    const { deaths, quarantines } = this.#stored;
    const tooLong = Object.entries(quarantines).filter(([, { untilMs, times }]) => untilMs > nowMs + lengthMs(times));
    if (tooLong.length === 0) return;
    const clamped = tooLong.map(([id, each]) => [id, { ...each, untilMs: nowMs + lengthMs(each.times) }] as const);
    this.#save({ deaths, quarantines: { ...quarantines, ...Object.fromEntries(clamped) } });
  }

  #save(record: StoredHistory): void {
    this.#stored = record;
    try {
      const beside = `${this.#path}.new`;
      writeFileSync(beside, JSON.stringify(record), { mode: 0o600 });
      renameSync(beside, this.#path);
    } catch (error) {
      this.#onWriteError(error);
    }
  }
}

/** How long a quarantine lasts, the first, second ... one of a container. */
function lengthMs(times: number): number {
  return Math.min(LIMITS.quarantineMsMax, LIMITS.quarantineMs * 2 ** (times - 1));
}

/** A missing or damaged file means no crashes. */
function read(path: string): StoredHistory {
  try {
    const { deaths, quarantines } = JSON.parse(readFileSync(path, "utf8")) as Partial<StoredHistory>;
    if (!Array.isArray(deaths) || typeof quarantines !== "object" || quarantines === null) return NOTHING;
    const isDeath = ({ atMs, words }: Crash): boolean => Number.isFinite(atMs) && words !== undefined;
    const isSound = ([, { untilMs, times }]: [string, Quarantine]): boolean =>
      Number.isFinite(untilMs) && Number.isFinite(times);
    return {
      deaths: deaths.filter((each: Crash) => isDeath(each)),
      quarantines: Object.fromEntries(Object.entries(quarantines).filter((each) => isSound(each))),
    };
  } catch {
    return NOTHING;
  }
}
