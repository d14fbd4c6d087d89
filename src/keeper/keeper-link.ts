/**
 * KeeperLink: the main process's connection to its keeper. It starts the keeper, sends it the held descriptors and
 * heartbeats, and watches it in turn: a keeper that exits or no longer answers is replaced, and the new one gets
 * everything again. Pending messages are stored as a state, not as a queue: a slow keeper causes no backlog, and
 * receives the current state.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import { KEEPER_LIMITS } from "./limits.ts";
import { Channel, channelPair, connectAt, listenAt, waitReadable } from "../kernel/channel.ts";
import { POOL_VARIABLE } from "../base/limits.ts";
import { closeInPool } from "../kernel/in-pool.ts";
import { closedFirst } from "../kernel/descriptors.ts";
import { closeQuietly } from "../kernel/libc.ts";
import { mainThreadState, procText } from "../kernel/process.ts";
import { backoffMs } from "../base/lib/retry.ts";
import { Fault, codeOf, reasonOf } from "../base/lib/fault.ts";
import type { Hold, ServedNamespace } from "../base/model/held-namespace.ts";
import type { KeeperReport } from "../base/model/keeper-report.ts";
import { Heartbeat } from "./peer-process.ts";
import { ABSENT, whyNotTaker } from "./predecessor.ts";
import { type FromKeeper, PROTOCOL_VERSION, type ToKeeper, decodeFromKeeper, encode } from "./protocol.ts";

/** Started with the channel and the listener as descriptors 3 and 4. */
const PROGRAM = fileURLToPath(new URL("./keeper-main.js", import.meta.url));
/** The keeper works sequentially and does little: three threads instead of eleven. */
const NODE_FLAGS = ["--max-semi-space-size=1", "--single-threaded", "--v8-pool-size=0"];

export interface KeeperLinkParts {
  /** New processes connect there. */
  readonly socketPath: string;
  readonly onEvent: (about: Readonly<Record<string, unknown>>, text: string) => void;
  /** A new process requests a takeover: pause, then call `yield`. */
  readonly onHandoverRequested: () => void;
  /** The takeover failed. `onKeeperLost`: the keeper exited, and the outcome is unknown. */
  readonly onHandoverCancelled: () => void;
  readonly onKeeperLost: () => void;
  /** Another process serves now: its pid, or 0 where unknown. */
  readonly onHandoverCompleted: (successor: number) => void;
}

export class KeeperLink {
  readonly #parts: KeeperLinkParts;
  readonly #held = new Map<number, ServedNamespace>();
  /** Keys that the keeper has not been sent yet. */
  readonly #pending = new Set<number>();
  /** What the keeper is to be told after all of these. */
  #pendingStep: "taken" | "yield" | "end" | undefined;
  /** Keys of which the keeper has the gate. */
  readonly #gated = new Set<number>();
  #keys = 0;
  #channel: Channel | undefined;
  #child: ChildProcess | undefined;
  #pid: number | null = null;
  #isResponding = false;
  #restarts = 0;
  #attempts = 0;
  #lastReceivedMs = 0;
  /** Undefined where the keeper cannot be seen. */
  #heartbeat: Heartbeat | undefined;
  /** A new process has requested a takeover. */
  #isWanted = false;
  #beatTimer: NodeJS.Timeout | undefined;
  #startTimer: NodeJS.Timeout | undefined;
  #flushTimer: NodeJS.Timeout | undefined;
  #isEnded = false;
  /** Whether the socket path is ours to remove. */
  #isListening = false;

  constructor(parts: KeeperLinkParts) {
    this.#parts = parts;
  }

  get report(): KeeperReport {
    const isThere = this.#channel !== undefined;
    const state = this.#isEnded ? "off" : !isThere ? "away" : this.#isResponding ? "watching" : "starting";
    return { state, pid: this.#pid, namespaces: this.#held.size, restarts: this.#restarts };
  }

  /** Starts a keeper. Serving does not wait for it and does not need it. */
  start(): void {
    if (this.#isEnded || this.#channel !== undefined) return;
    const [ours, theirs] = channelPair();
    let listener = -1;
    try {
      // A folder of its own, so that whoever can open the control socket cannot name it.
      mkdirSync(dirname(this.#parts.socketPath), { recursive: true, mode: 0o700 });
      if (!this.#isListening) checkUnanswered(this.#parts.socketPath);
      rmSync(this.#parts.socketPath, { force: true });
      listener = listenAt(this.#parts.socketPath);
      this.#isListening = true;
      // The path says in a list of processes whose keeper it is.
      this.#child = spawn(process.execPath, [...NODE_FLAGS, PROGRAM, this.#parts.socketPath], {
        stdio: ["ignore", "ignore", "inherit", theirs, listener],
        // Keeps signals of the terminal away from it.
        detached: true,
        env: {
          [POOL_VARIABLE]: String(KEEPER_LIMITS.poolThreads),
          JOURNAL_STREAM: process.env["JOURNAL_STREAM"],
        },
      });
      const child = this.#child;
      child.unref();
      child.on("error", (error) => this.#handleLoss(child, reasonOf(error)));
      child.on("exit", (code, signal) => this.#handleLoss(child, `it exited with ${signal ?? code}`));
      this.#connect(new Channel(ours), child.pid ?? null);
    } catch (error) {
      if (this.#channel === undefined) closeQuietly(ours);
      else {
        this.#kill();
        this.#reset();
      }
      this.#restartLater(reasonOf(error));
    } finally {
      for (const fd of [theirs, listener]) if (fd >= 0) closeQuietly(fd);
    }
  }

  /** Goes on with a keeper that another main process started. It watches us from now on. */
  adopt(channel: Channel, pid: number): void {
    this.#connect(channel, pid > 0 ? pid : null);
    this.#isResponding = true;
    this.#isListening = true;
  }

  /** We serve now with what the keeper held, and it holds everything that we serve with. */
  confirmTakeover(): void {
    this.#tellLast("taken");
  }

  hold(namespace: ServedNamespace): Hold {
    const key = ++this.#keys;
    const renew = (now: ServedNamespace): void => {
      this.#held.set(key, now);
      this.#markPending(key);
    };
    renew(namespace);
    return {
      update: (now) => {
        if (this.#held.has(key)) renew(now);
      },
      release: () => {
        this.#gated.delete(key);
        if (this.#held.delete(key)) this.#markPending(key);
      },
    };
  }

  /** We are paused. */
  yield(): void {
    this.#tellLast("yield");
  }

  /** After a takeover the descriptors belong to the new process, and so does the keeper. */
  detach(): void {
    this.#isEnded = true;
    this.#reset();
  }

  /**
   * Nothing is served any more. The keeper may exit, or goes on for what it is to refuse, and is found there by the next
   * process.
   */
  end(): void {
    if (this.#isEnded) return;
    const isRefusing = [...this.#held.values()].some(({ alone }) => alone !== "hand-back");
    if (!isRefusing) this.#pendingStep = "end";
    const untilMs = performance.now() + KEEPER_LIMITS.tellMs;
    // Otherwise it would go on with what is released, or what it is to refuse would go back to Docker's resolver.
    while (!this.flush() && performance.now() < untilMs) {
      waitReadable([], 1);
      this.#receiveAll();
    }
    if (this.#isEnded) return;
    this.detach();
    if (this.#isListening && !isRefusing) rmSync(this.#parts.socketPath, { force: true });
  }

  /** Resolves to whether the keeper is there and has been told everything. */
  async isTold(waitMs: number = KEEPER_LIMITS.tellMs): Promise<boolean> {
    const untilMs = performance.now() + waitMs;
    for (;;) {
      this.flush();
      if (this.#channel !== undefined && this.#isResponding && this.#pending.size === 0) return true;
      if (performance.now() > untilMs || this.#isEnded) return false;
      await sleep(KEEPER_LIMITS.batchMs);
      this.#receiveAll();
    }
  }

  #connect(channel: Channel, pid: number | null): void {
    // Otherwise it would hear of our end only when everything else of ours is closed, while nobody reads the queries.
    channel.move(closedFirst());
    this.#channel = channel;
    this.#pid = pid;
    this.#isResponding = false;
    this.#lastReceivedMs = performance.now();
    const isSeen = pid !== null && (this.#child !== undefined || isKeeper(pid));
    this.#heartbeat = isSeen ? new Heartbeat(this.#lastReceivedMs, () => mainThreadState(pid)) : undefined;
    this.#send({ is: "hello", version: PROTOCOL_VERSION });
    this.#gated.clear();
    for (const key of this.#held.keys()) this.#pending.add(key);
    this.flush();
    this.#beatTimer = setInterval(() => this.#sendBeat(), KEEPER_LIMITS.beatMs);
    this.#beatTimer.unref();
  }

  #sendBeat(): void {
    this.#receiveAll();
    if (this.#channel === undefined) return;
    this.#send({ is: "beat" });
    this.flush();
    if (!this.#isSilent(performance.now())) return;
    this.#kill();
    this.#handleLoss(this.#child, "it did not respond and was killed");
  }

  /** Time counts as it does for us. While it passes everything on, it may have to wait for the new process. */
  #isSilent(nowMs: number): boolean {
    const isTooLong = this.#heartbeat?.check(nowMs);
    const passedMs = nowMs - this.#lastReceivedMs;
    if (!this.#isResponding) return passedMs > KEEPER_LIMITS.startMs;
    if (isTooLong === undefined || this.#isWanted) return passedMs > KEEPER_LIMITS.unresponsiveMs;
    return isTooLong;
  }

  /** Otherwise it would take our connection's end for our own when it goes on, and remove the rules that we serve with. */
  #kill(): void {
    if (this.#child !== undefined) this.#child.kill("SIGKILL");
    else if (this.#pid !== null && isKeeper(this.#pid)) process.kill(this.#pid, "SIGKILL");
  }

  /** Reads what the keeper has sent since the last check. */
  #receiveAll(): void {
    for (;;) {
      const packet = this.#channel?.receive() ?? "nothing";
      if (packet === "nothing") return;
      if (packet === "end") return this.#handleLoss(this.#child, "its connection was closed");
      const message = decodeFromKeeper(packet);
      for (const fd of packet.descriptors) closeQuietly(fd);
      this.#lastReceivedMs = performance.now();
      this.#heartbeat?.beat(this.#lastReceivedMs);
      if (message !== undefined) this.#handle(message);
    }
  }

  #handle(message: FromKeeper): void {
    switch (message.is) {
      case "hello":
        if (message.version === PROTOCOL_VERSION) return;
        // The program was replaced on disk: what it starts is another version.
        this.#parts.onEvent(
          { version: message.version, ours: PROTOCOL_VERSION },
          "keeper has another protocol version",
        );
        return this.detach();
      case "alive":
        this.#isResponding = true;
        this.#attempts = 0;
        return;
      case "wanted": {
        const reason = whyNotTaker(message.successor);
        this.#isWanted = reason === undefined;
        if (reason === undefined) return this.#parts.onHandoverRequested();
        this.#send({ is: "refuse", reason });
        return;
      }
      case "back":
        this.#isWanted = false;
        // It is of no use any more, and would count as the answer to the next request.
        if (this.#pendingStep === "yield") this.#pendingStep = undefined;
        return this.#parts.onHandoverCancelled();
      case "gone":
        // This comes before anything else: the socket path belongs to the new process now.
        this.detach();
        return this.#parts.onHandoverCompleted(message.successor);
      default:
        return;
    }
  }

  /** Batched: attaching many containers neither wakes the keeper for each of them nor waits for it to run. */
  #markPending(key: number): void {
    this.#pending.add(key);
    this.#flushSoon();
  }

  #flushSoon(): void {
    this.#flushTimer ??= setTimeout(() => {
      this.#flushTimer = undefined;
      this.flush();
    }, KEEPER_LIMITS.batchMs).unref();
  }

  /** A keeper that is started later knows nothing of a takeover. */
  #tellLast(step: "taken" | "yield"): void {
    if (this.#channel !== undefined) this.#pendingStep = step;
    this.flush();
  }

  /** Sends what is pending, as far as the channel takes it. Returns whether nothing is left for a keeper that is there. */
  flush(): boolean {
    if (this.#channel === undefined) return true;
    for (const key of this.#pending) {
      const namespace = this.#held.get(key);
      if (!(namespace === undefined ? this.#send({ is: "release", key }) : this.#sendHold(key, namespace))) {
        this.#flushSoon();
        return false;
      }
      this.#pending.delete(key);
    }
    if (this.#pendingStep === undefined) return true;
    if (this.#send({ is: this.#pendingStep })) this.#pendingStep = undefined;
    else this.#flushSoon();
    return this.#pendingStep === undefined;
  }

  /** The first time with a gate, whose copy on its way to the keeper is the only one from then on. */
  #sendHold(key: number, { openGate, ...served }: ServedNamespace): boolean {
    const gate = this.#gated.has(key) ? undefined : openGate();
    const isSent = this.#send({ is: "hold", key, namespace: { ...served, gate } });
    if (gate === undefined) return isSent;
    if (isSent) {
      this.#gated.add(key);
      closeQuietly(gate);
    } else void closeInPool(gate);
    return isSent;
  }

  #send(message: ToKeeper): boolean {
    const { bytes, descriptors } = encode(message);
    return this.#channel?.send(bytes, descriptors) ?? false;
  }

  /** `child` is the keeper at the time of the event: another one may have been started since. */
  #handleLoss(child: ChildProcess | undefined, reason: string): void {
    if (child !== this.#child || this.#isEnded || this.#channel === undefined) return;
    this.#reset();
    this.#restarts++;
    this.#restartLater(reason);
    this.#parts.onKeeperLost();
  }

  #reset(): void {
    this.#channel?.close();
    this.#channel = undefined;
    this.#child = undefined;
    this.#pid = null;
    this.#pending.clear();
    this.#pendingStep = undefined;
    this.#heartbeat = undefined;
    this.#isWanted = false;
    clearInterval(this.#beatTimer);
    clearTimeout(this.#flushTimer);
    clearTimeout(this.#startTimer);
    this.#flushTimer = undefined;
  }

  #restartLater(reason: string): void {
    const waitMs = backoffMs(this.#attempts++, KEEPER_LIMITS.retryFirstMs, KEEPER_LIMITS.retryLastMs, Math.random());
    this.#parts.onEvent({ reason, waitMs }, "keeper is gone, restarting it");
    this.#startTimer = setTimeout(() => this.start(), waitMs).unref();
  }
}

/** The socket of a keeper that refuses alone is the only way to it. Throws if something listens there. */
function checkUnanswered(socketPath: string): void {
  try {
    connectAt(socketPath).close();
  } catch (error) {
    if (ABSENT.has(codeOf(error))) return;
    throw error;
  }
  throw new Fault("KEEPER_ANSWERS", `Another keeper answers at "${socketPath}"`, {
    remedy: "It may refuse the queries of containers with an enforced policy. Restart dns11, which takes over from it.",
  });
}

/** Whether the process is a keeper: one that was adopted told its PID itself, which may belong to another PID namespace. */
export function isKeeper(pid: number): boolean {
  return procText(`/proc/${pid}/cmdline`)?.includes("/keeper-main.js\0") === true;
}
