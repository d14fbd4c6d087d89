/**
 * CrashHistory: counts consecutive crashes of dns11 while it worked for one container. After two crashes within a
 * minute, the container is attached last and alone. After one more it stays with Docker's resolver for an hour, and
 * twice as long each further time; so does one that holds its locks too long. Stored on disk, because the process that
 * decides is not the one that crashed.
 */
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { LIMITS } from "../../base/limits.ts";
import type { CrashContext } from "./crash-recorder.ts";

export interface Quarantine {
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
