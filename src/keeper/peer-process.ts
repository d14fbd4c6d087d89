/**
 * PeerProcess: a process that is connected to the keeper, with its channel and, where it is visible, its pidfd.
 */
import { KEEPER_LIMITS } from "./limits.ts";
import { type Channel, peerOf, waitReadable } from "../kernel/channel.ts";
import { closeQuietly } from "../kernel/libc.ts";
import { killProcess, mainThreadState, openProcess, type ThreadState } from "../kernel/process.ts";
import { type FromKeeper, type ToKeeper, decodeToKeeper, encode } from "./protocol.ts";

/** States of a thread that has ended, as the kernel writes them. */
const ENDED: ReadonlySet<string> = new Set(["Z", "X"]);

export class PeerProcess {
  readonly pid: number;
  readonly heartbeat: Heartbeat;
  readonly #channel: Channel;
  #process: number | undefined;
  #isGone = false;

  /** Takes over a connected socket. */
  constructor(channel: Channel, pid = peerOf(channel.fd).pid) {
    this.#channel = channel;
    this.pid = pid;
    // Its end of the channel is open, so the pid cannot have been reused yet.
    this.#process = openProcess(pid);
    this.heartbeat = new Heartbeat(performance.now(), () => (pid > 0 ? mainThreadState(pid) : undefined));
  }

  /** For poll; -1, which poll ignores, once it is gone. */
  get fd(): number {
    return this.#isGone ? -1 : this.#channel.fd;
  }

  /** Its end of the channel may be open in another process. */
  hasExited(): boolean {
    return this.#process !== undefined && waitReadable([this.#process], 0)[0] === true;
  }

  /** It has exited, or sent an invalid message. */
  get isGone(): boolean {
    return this.#isGone;
  }

  /** Received messages; none once it is gone. */
  *messages(): Generator<ToKeeper> {
    while (!this.#isGone) {
      const packet = this.#receive();
      if (packet === "nothing") return;
      if (packet === "end") {
        this.#isGone = true;
        return;
      }
      const message = decodeToKeeper(packet);
      if (message?.is !== "hold") for (const fd of packet.descriptors) closeQuietly(fd);
      if (message === undefined) this.#isGone = true;
      else yield message;
    }
  }

  /** Returns whether the channel took it. A peer that does not read is detected by its silence. */
  send(message: FromKeeper): boolean {
    const { bytes, descriptors } = encode(message);
    return this.#channel.send(bytes, descriptors);
  }

  /**
   * Whether its main thread has ended. Another thread may wait for a lock and cannot be killed; until it has got that, the
   * process keeps its descriptors, and its end of the channel stays open.
   */
  hasEnded(): boolean {
    return this.pid > 0 && ENDED.has(mainThreadState(this.pid)?.letter ?? "");
  }

  /** Kills the process, and waits until it answers nothing more. */
  kill(): void {
    if (this.#process === undefined || !killProcess(this.#process)) return;
    const untilMs = performance.now() + KEEPER_LIMITS.killMs;
    while (performance.now() < untilMs) {
      if (waitReadable([this.#process], KEEPER_LIMITS.killPollMs)[0] === true || this.hasEnded()) return;
    }
  }

  close(): void {
    this.#channel.close();
    if (this.#process !== undefined) closeQuietly(this.#process);
    this.#process = undefined;
  }

  #receive(): ReturnType<Channel["receive"]> {
    try {
      return this.#channel.receive();
    } catch {
      return "end";
    }
  }
}

/**
 * Whether the process at the other end of a channel still answers: the keeper asks it of the main process, and that of the
 * keeper. Only time in which it could have answered counts. Time in which it waits for a processor does not count, nor time under a
 * debugger, nor time in which whoever checks, or the whole machine, was suspended. Time in which it waits for the kernel counts little:
 * until all processors have moved on (RCU), for example. That is long on a busy machine, and killing it would not end the wait. For the
 * locks of containers neither waits: its other threads do.
 */
export class Heartbeat {
  readonly #stateOf: () => ThreadState | undefined;
  #silentMs = 0;
  #ranMs: number | undefined;
  #checkedMs: number;

  /** `stateOf` returns the state of its main thread. */
  constructor(nowMs: number, stateOf: () => ThreadState | undefined) {
    this.#checkedMs = nowMs;
    this.#stateOf = stateOf;
  }

  beat(nowMs: number): void {
    this.#checkedMs = nowMs;
    this.#silentMs = 0;
    this.#ranMs = undefined;
  }

  /** Adds the time since the last check; returns whether the process was silent for too long. */
  check(nowMs: number): boolean {
    const passedMs = Math.min(nowMs - this.#checkedMs, KEEPER_LIMITS.pollMs * 2);
    this.#checkedMs = nowMs;
    this.#silentMs += this.#runnableMs(passedMs);
    return this.#silentMs >= KEEPER_LIMITS.silentMs;
  }

  #runnableMs(passedMs: number): number {
    const state = this.#stateOf();
    const before = this.#ranMs;
    this.#ranMs = state?.ranMs;
    if (state === undefined) return passedMs;
    if (state.isTraced) return 0;
    // The first check has nothing to compare with.
    if (state.letter === "R" && state.ranMs !== undefined) {
      return before === undefined ? 0 : Math.min(passedMs, state.ranMs - before);
    }
    return state.letter === "D" ? passedMs / KEEPER_LIMITS.kernelWaitDivisor : passedMs;
  }
}
