/**
 * KeeperLink: the main process's side. It starts the keeper, tells it what is held and that all is well, and watches it in
 * turn: a keeper that ends, or no longer answers, is replaced by another one that gets everything again. What is to be
 * told is kept as a state, not as a queue: however slow a keeper is, nothing piles up, and it learns what counts now.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { KEEPER_LIMITS } from "./limits.ts";
import { Channel, channelPair, listenAt } from "../kernel/channel.ts";
import { closeQuietly } from "../kernel/libc.ts";
import { backoffMs } from "../base/lib/backoff.ts";
import { reasonOf } from "../base/lib/fault.ts";
import type { HeldNamespace, Hold } from "../base/model/held-namespace.ts";
import type { KeeperReport } from "../base/model/keeper-report.ts";
import { type FromKeeper, PROTOCOL_VERSION, type ToKeeper, decodeFromKeeper, encode } from "./protocol.ts";

/** Of a child's descriptors, after the usual three. */
const PROGRAM = fileURLToPath(new URL("./keeper-main.js", import.meta.url));
/** It does one thing after the other, and little of it: three threads instead of eleven. */
const NODE_FLAGS = ["--max-semi-space-size=1", "--single-threaded", "--v8-pool-size=0"];

export interface KeeperLinkParts {
  /** Where successors ask for it. */
  readonly socketPath: string;
  readonly onEvent: (about: Readonly<Record<string, unknown>>, text: string) => void;
  /** Somebody wants to take over: stand still, and say so by `yield`. */
  readonly onHandoverRequested: () => void;
  /** It came to nothing; or nobody can say whether it did, because the keeper ended. */
  readonly onHandoverCancelled: () => void;
  readonly onKeeperLost: () => void;
  /** Somebody else serves now: this process, or 0. */
  readonly onHandoverCompleted: (successor: number) => void;
}

export class KeeperLink {
  readonly #parts: KeeperLinkParts;
  readonly #held = new Map<number, HeldNamespace>();
  /** What the keeper does not know yet. */
  readonly #untold = new Set<number>();
  #keys = 0;
  #channel: Channel | undefined;
  #child: ChildProcess | undefined;
  #pid: number | null = null;
  #isAnswering = false;
  #restarts = 0;
  #attempts = 0;
  #heardMs = 0;
  #beatTimer: NodeJS.Timeout | undefined;
  #startTimer: NodeJS.Timeout | undefined;
  #flushTimer: NodeJS.Timeout | undefined;
  #isEnded = false;
  /** Where successors connect is ours to take away. */
  #isListening = false;

  constructor(parts: KeeperLinkParts) {
    this.#parts = parts;
  }

  get report(): KeeperReport {
    const isThere = this.#channel !== undefined;
    const state = this.#isEnded ? "off" : !isThere ? "away" : this.#isAnswering ? "watching" : "starting";
    return { state, pid: this.#pid, namespaces: this.#held.size, restarts: this.#restarts };
  }

  /** Starts a keeper of its own. Serving does not wait for it, nor for its success. */
  start(): void {
    if (this.#isEnded || this.#channel !== undefined) return;
    const [ours, theirs] = channelPair();
    let listener = -1;
    try {
      rmSync(this.#parts.socketPath, { force: true });
      listener = listenAt(this.#parts.socketPath);
      this.#isListening = true;
      this.#child = spawn(process.execPath, [...NODE_FLAGS, PROGRAM], {
        stdio: ["ignore", "ignore", "inherit", theirs, listener],
        // A terminal's signals are for us.
        detached: true,
        env: {},
      });
      const child = this.#child;
      child.unref();
      child.on("error", (error) => this.#lose(child, reasonOf(error)));
      child.on("exit", (code, signal) => this.#lose(child, `it ended with ${signal ?? code}`));
      this.#begin(new Channel(ours), child.pid ?? null);
    } catch (error) {
      closeQuietly(ours);
      this.#restartLater(reasonOf(error));
    } finally {
      for (const fd of [theirs, listener]) if (fd >= 0) closeQuietly(fd);
    }
  }

  /** Goes on with a keeper that another main process started, and that watches us from now on. */
  adopt(channel: Channel, pid: number): void {
    this.#begin(channel, pid > 0 ? pid : null);
    this.#isAnswering = true;
    this.#isListening = true;
  }

  /** We serve now, by what the keeper held, and it holds everything that we serve by. */
  confirmTakeover(): void {
    this.#flush();
    this.#say({ is: "taken" });
  }

  hold(namespace: HeldNamespace): Hold {
    const key = ++this.#keys;
    const renew = (now: HeldNamespace): void => {
      this.#held.set(key, now);
      this.#tellOf(key);
    };
    renew(namespace);
    return {
      update: (now) => {
        if (this.#held.has(key)) renew(now);
      },
      release: () => {
        if (this.#held.delete(key)) this.#tellOf(key);
      },
    };
  }

  /** The next beat may be so late. */
  announceBusy(ms: number): void {
    this.#say({ is: "busy", ms });
  }

  /** We stand still now. */
  yield(): void {
    this.#flush();
    this.#say({ is: "yield" });
  }

  /** Whoever was replaced leaves what it served by to the other one, and has no keeper any more. */
  detach(): void {
    this.#isEnded = true;
    this.#drop();
  }

  /** Nothing is held any more, and the keeper may go. */
  end(): void {
    if (this.#isEnded) return;
    this.#flush();
    this.#say({ is: "end" });
    this.detach();
    if (this.#isListening) rmSync(this.#parts.socketPath, { force: true });
  }

  #begin(channel: Channel, pid: number | null): void {
    this.#channel = channel;
    this.#pid = pid;
    this.#isAnswering = false;
    this.#heardMs = performance.now();
    this.#say({ is: "hello", version: PROTOCOL_VERSION });
    for (const key of this.#held.keys()) this.#untold.add(key);
    this.#flush();
    this.#beatTimer = setInterval(() => this.#beat(), KEEPER_LIMITS.beatMs);
    this.#beatTimer.unref();
  }

  #beat(): void {
    this.#listen();
    if (this.#channel === undefined) return;
    this.#say({ is: "beat" });
    this.#flush();
    if (performance.now() - this.#heardMs <= KEEPER_LIMITS.deafMs) return;
    this.#child?.kill("SIGKILL");
    this.#lose(this.#child, "it did not answer any more and was ended");
  }

  /** What it has said since the last look. */
  #listen(): void {
    for (;;) {
      const packet = this.#channel?.receive() ?? "nothing";
      if (packet === "nothing") return;
      if (packet === "end") return this.#lose(this.#child, "it is gone");
      const message = decodeFromKeeper(packet);
      for (const fd of packet.descriptors) closeQuietly(fd);
      this.#heardMs = performance.now();
      if (message !== undefined) this.#obey(message);
    }
  }

  #obey(message: FromKeeper): void {
    switch (message.is) {
      case "hello":
        if (message.version === PROTOCOL_VERSION) return;
        // The program was replaced on disk: what is started from there is not ours any more.
        this.#parts.onEvent({ version: message.version, ours: PROTOCOL_VERSION }, "the keeper is of another version");
        return this.detach();
      case "alive":
        this.#isAnswering = true;
        this.#attempts = 0;
        return;
      case "wanted":
        return this.#parts.onHandoverRequested();
      case "back":
        return this.#parts.onHandoverCancelled();
      case "gone":
        // Before anything else is done: where successors connect is theirs now.
        this.detach();
        return this.#parts.onHandoverCompleted(message.successor);
      default:
        return;
    }
  }

  /** Soon: who attaches many does not wake the keeper for each, nor wait for a processor that it has. */
  #tellOf(key: number): void {
    this.#untold.add(key);
    this.#flushSoon();
  }

  #flushSoon(): void {
    this.#flushTimer ??= setTimeout(() => {
      this.#flushTimer = undefined;
      this.#flush();
    }, KEEPER_LIMITS.tellMs).unref();
  }

  /** Tells what is not told yet, as far as it is taken. */
  #flush(): void {
    if (this.#channel === undefined) return;
    for (const key of this.#untold) {
      const namespace = this.#held.get(key);
      if (!this.#say(namespace === undefined ? { is: "release", key } : { is: "hold", key, namespace })) {
        this.#flushSoon();
        return;
      }
      this.#untold.delete(key);
    }
  }

  #say(message: ToKeeper): boolean {
    const { bytes, descriptors } = encode(message);
    return this.#channel?.send(bytes, descriptors) ?? false;
  }

  /** `child` is the one that it was at the time: another one may have been started since. */
  #lose(child: ChildProcess | undefined, reason: string): void {
    if (child !== this.#child || this.#isEnded || this.#channel === undefined) return;
    this.#drop();
    this.#restarts++;
    this.#restartLater(reason);
    this.#parts.onKeeperLost();
  }

  #drop(): void {
    this.#channel?.close();
    this.#channel = undefined;
    this.#child = undefined;
    this.#pid = null;
    this.#untold.clear();
    clearInterval(this.#beatTimer);
    clearTimeout(this.#flushTimer);
    clearTimeout(this.#startTimer);
    this.#flushTimer = undefined;
  }

  #restartLater(reason: string): void {
    const waitMs = backoffMs(this.#attempts++, KEEPER_LIMITS.retryFirstMs, KEEPER_LIMITS.retryLastMs, Math.random());
    this.#parts.onEvent({ reason, waitMs }, "there is no keeper; another one is started");
    this.#startTimer = setTimeout(() => this.start(), waitMs).unref();
  }
}
