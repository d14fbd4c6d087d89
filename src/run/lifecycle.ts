/**
 * Lifecycle: the phase of a run (starting, ready, stopping), reported to API clients and to the supervisor that started
 * it. Ready means that every container was attached and verified once, or refused. Containers that start later do not
 * make a run unready, nor does an engine that goes away.
 */
import { LIMITS } from "../base/limits.ts";
import { reasonWithRemedy } from "../base/lib/fault.ts";
import type { Log } from "../base/log/log.ts";
import type { LifecycleReport } from "../api/status.ts";
import type { ContainerState } from "../control/reports/container-status.ts";
import { byName } from "../base/lib/text.ts";
import { AF_UNIX, SOCK_DGRAM, closeQuietly, sendTo, socket, alarm } from "../kernel/libc.ts";
import { unixAddress } from "../kernel/unix-listener.ts";

/** What a run reports about itself. */
export interface LifecycleSource {
  readonly isSynced: boolean;
  readonly isSettled: boolean;
  readonly containers: () => readonly ContainerState[];
  /** The engine follower's last sign of life, on the clock of `performance.now`. */
  readonly lastActivityMs: () => number;
}

interface Environment {
  readonly NOTIFY_SOCKET?: string | undefined;
  readonly WATCHDOG_USEC?: string | undefined;
  readonly WATCHDOG_PID?: string | undefined;
}

const STARTUP_EVERY_MS = 250;
const STATUS_EVERY_MS = 5_000;
const USEC_PER_MS = 1_000;

export class Lifecycle {
  readonly #supervisor: NotifySocket | undefined;
  readonly #watchdogMs: number | undefined;
  readonly #nowMs: () => number;
  #phase: LifecycleReport["phase"] = "starting";
  #waitingFor = "dns11 has just started";
  #source: (() => LifecycleSource) | undefined;
  #isReadySent = false;
  #lastStatus = "";
  #timer: NodeJS.Timeout | undefined;
  #watchdog: NodeJS.Timeout | undefined;
  #lastSentMs = -Infinity;

  /** `nowMs` is the time since the start of the process. */
  constructor(environment: Environment, log: Log, nowMs = (): number => performance.now()) {
    this.#nowMs = nowMs;
    const name = environment.NOTIFY_SOCKET ?? "";
    if (name !== "") {
      try {
        this.#supervisor = new NotifySocket(name);
      } catch (error) {
        log.warn({ reason: reasonWithRemedy(error) }, "cannot notify the supervisor (NOTIFY_SOCKET)");
      }
    }
    this.#watchdogMs = watchdogMs(environment);
  }

  /** Starts reporting. Extends the supervisor's start timeout until the run is ready. */
  begin(): void {
    if (this.#supervisor === undefined) return;
    this.#schedule();
    if (this.#watchdogMs === undefined) return;
    this.#watchdog = setInterval(() => this.#sendWatchdog(), this.#watchdogMs / 2);
    this.#watchdog.unref();
    this.#sendWatchdog();
  }

  /** There is nothing to serve yet, for this reason. */
  setWaitingFor(what: string): void {
    this.#waitingFor = what;
  }

  /** Serving has begun. */
  setServing(source: () => LifecycleSource): void {
    this.#source = source;
  }

  reloading(): void {
    if (this.#phase !== "ready") return;
    const usec = process.hrtime.bigint() / 1000n;
    this.#notify(`RELOADING=1\nMONOTONIC_USEC=${usec}\nSTATUS=Reloading settings`);
  }

  reloaded(): void {
    if (this.#phase !== "ready") return;
    this.#lastStatus = this.#statusText();
    this.#notify(`READY=1\nSTATUS=${this.#lastStatus}`);
  }

  stopping(): void {
    if (this.#phase === "stopping") return;
    this.#phase = "stopping";
    this.#waitingFor = "dns11 is stopping and hands containers back to Docker's resolver";
    this.#notify("STOPPING=1\nSTATUS=Handing back to Docker's resolver");
  }

  /** Another process serves now, so the supervisor must watch that one. */
  handOverTo(successor: number): void {
    this.#phase = "stopping";
    clearInterval(this.#watchdog);
    if (successor > 0) this.#notify(`MAINPID=${successor}`);
  }

  end(): void {
    clearTimeout(this.#timer);
    clearInterval(this.#watchdog);
    this.#supervisor?.close();
  }

  get isReady(): boolean {
    this.#advance();
    return this.#phase === "ready";
  }

  report(): LifecycleReport {
    const missing = this.#advance();
    const containers = this.#source?.().containers().toSorted(byName) ?? [];
    return {
      ready: this.#phase === "ready",
      phase: this.#phase,
      missing,
      attached: containers.filter(({ state }) => state === "attached").length,
      refused: containers
        .filter(({ state }) => state === "failed" || state === "quarantined")
        .map(({ name, code = "", reason = "" }) => ({ container: name, code, reason })),
    };
  }

  /** The run is ready once nothing is missing; returns what is. */
  #advance(): string[] {
    const missing = this.#phase === "ready" ? [] : this.#missing(this.#source?.());
    if (this.#phase === "starting" && missing.length === 0) this.#phase = "ready";
    return missing;
  }

  #missing(source: LifecycleSource | undefined): string[] {
    if (source === undefined || this.#phase === "stopping") return [this.#waitingFor];
    if (!source.isSynced) return ["the list of running containers is not complete yet"];
    if (source.isSettled) return [];
    const pending = source
      .containers()
      .filter(({ state }) => state === "opening" || state === "verifying")
      .toSorted(byName);
    return pending.length === 0
      ? ["containers are being attached"]
      : pending.map(
          ({ name, state }) =>
            `container "${name}" is ${state === "opening" ? "waiting to be attached" : "being verified"}`,
        );
  }

  #schedule(): void {
    const everyMs = this.#phase === "starting" ? STARTUP_EVERY_MS : STATUS_EVERY_MS;
    this.#timer = setTimeout(() => {
      try {
        this.#update();
      } catch {
        // A report may fail for want of a descriptor. Serving goes on.
      }
      this.#schedule();
    }, everyMs);
    this.#timer.unref();
  }

  #update(): void {
    if (this.#phase === "stopping") return;
    const isNew = !this.#isReadySent;
    const ready = this.isReady;
    const sentence = this.#statusText();
    if (ready && isNew) {
      this.#isReadySent = this.#notify(`READY=1\nSTATUS=${sentence}`);
    } else if (!ready && isNew && this.#source === undefined && this.#nowMs() > LIMITS.engineStartWaitMs) {
      // A supervisor that waits for us to start, as during boot, must not wait for an engine that may never come.
      this.#isReadySent = this.#notify(`READY=1\nSTATUS=${sentence}`);
    } else if (!ready && isNew) {
      // An engine may take longer to start than the supervisor's timeout.
      const isDue = performance.now() - this.#lastSentMs >= LIMITS.startExtendMs / 3;
      const extension = `EXTEND_TIMEOUT_USEC=${LIMITS.startExtendMs * USEC_PER_MS}`;
      if (isDue || sentence !== this.#lastStatus) this.#notify(`${extension}\nSTATUS=${sentence}`);
    } else if (sentence !== this.#lastStatus) {
      this.#notify(`STATUS=${sentence}`);
    }
    this.#lastStatus = sentence;
  }

  #statusText(): string {
    const source = this.#source?.();
    if (source === undefined || !source.isSynced) return `Starting: ${this.#waitingFor}`;
    const wanted = source.containers().filter(({ state }) => state !== "skipped");
    const attached = wanted.filter(({ state }) => state === "attached").length;
    return `${attached} of ${wanted.length} containers attached`;
  }

  /** That the timer fires shows that the event loop is alive. The follower is checked here. */
  #sendWatchdog(): void {
    const source = this.#source?.();
    const isAlive = source === undefined || performance.now() - source.lastActivityMs() < LIMITS.followerSilentMs;
    if (isAlive) this.#notify("WATCHDOG=1");
  }

  #notify(text: string): boolean {
    this.#lastSentMs = performance.now();
    return this.#supervisor?.send(text) ?? false;
  }
}

function watchdogMs({ WATCHDOG_USEC: usec, WATCHDOG_PID: pid }: Environment): number | undefined {
  const isOurs = pid === undefined || pid === "" || pid === String(process.pid);
  if (!isOurs || usec === undefined || !/^[1-9]\d*$/.test(usec)) return undefined;
  return Number(usec) / USEC_PER_MS;
}

/**
 * Reports the service state to its supervisor (sd_notify): datagrams to a unix socket, which Node does
 * not support. A message that cannot be sent matters only to the supervisor.
 */
class NotifySocket {
  readonly #fd: number;
  readonly #address: Buffer;

  /** A path, or an abstract name that begins with "@". Throws if it is neither. */
  constructor(name: string) {
    this.#address = unixAddress(name);
    this.#fd = socket(AF_UNIX, SOCK_DGRAM);
  }

  /** Returns whether it was sent. */
  send(text: string): boolean {
    return sendTo(this.#fd, Buffer.from(text), this.#address) >= 0;
  }

  close(): void {
    closeQuietly(this.#fd);
  }
}

/**
 * The time between a stop signal and the shutdown, in which queries are still answered while health checks
 * already fail.
 * A signal that follows `signal` after as many milliseconds as `onStop` returns.
 */
export function afterLameDuck(signal: AbortSignal, onStop: () => number): AbortSignal {
  const over = new AbortController();
  const stop = (): void => {
    const ms = onStop();
    if (ms === 0) over.abort();
    else setTimeout(() => over.abort(), ms);
  };
  if (signal.aborted) stop();
  else signal.addEventListener("abort", stop, { once: true });
  return over.signal;
}

const REARM_MS = 1_000;

interface HangGuardParts {
  /** Whether a keeper watches this process. */
  readonly isWatched: () => boolean;
  /** Requests the end of this process in so many seconds, in place of the last request. */
  readonly arm?: (seconds: number) => void;
}

/**
 * Ends a process that hangs, because only its death hands the namespaces back. It re-arms a kernel alarm
 * every second. An event loop that no longer gets to re-arming it is killed by SIGALRM, and the owned tables go with
 * the process.
 *
 * The alarm counts all time, including time in which a busy machine gives the process no processor. A keeper does better, so beside one
 * the alarm is for the case that the keeper is lost at the same time.
 */
export class HangGuard {
  readonly #isWatched: () => boolean;
  readonly #arm: (seconds: number) => void;
  readonly #timer: NodeJS.Timeout;

  constructor({ isWatched, arm = alarm }: HangGuardParts) {
    this.#isWatched = isWatched;
    this.#arm = arm;
    this.#rearm();
    this.#timer = setInterval(() => this.#rearm(), REARM_MS);
    this.#timer.unref();
  }

  /** The alarm stays armed: shutdown has to finish as well, even where nothing reads the log. */
  stop(): void {
    clearInterval(this.#timer);
    this.#rearm();
  }

  #rearm(): void {
    this.#arm(this.#isWatched() ? LIMITS.watchedHangSeconds : LIMITS.hangSeconds);
  }
}
