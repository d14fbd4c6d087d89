/**
 * Watched: a process that speaks to the keeper, by its channel and, where it can be seen, by a descriptor of its own.
 */
import { KEEPER_LIMITS } from "./limits.ts";
import { type Channel, peerOf, waitReadable } from "../kernel/channel.ts";
import { closeQuietly } from "../kernel/libc.ts";
import { killProcess, mainThreadState, openProcess } from "../kernel/process.ts";
import { Heartbeat } from "./heartbeat.ts";
import { type FromKeeper, type ToKeeper, decodeToKeeper, encode } from "./protocol.ts";

export class PeerProcess {
  readonly pid: number;
  readonly heartbeat: Heartbeat;
  readonly #channel: Channel;
  readonly #process: number | undefined;
  #isGone = false;

  /** Takes over a connected socket. */
  constructor(channel: Channel, pid = peerOf(channel.fd).pid) {
    this.#channel = channel;
    this.pid = pid;
    // Its end of the channel is open: so the number is still its own.
    this.#process = openProcess(pid);
    this.heartbeat = new Heartbeat(performance.now(), () => (pid > 0 ? mainThreadState(pid) : undefined));
  }

  /** To wait for; -1, which nobody waits for, once it is gone. */
  get fd(): number {
    return this.#isGone ? -1 : this.#channel.fd;
  }

  /** It has ended, or said something that nobody understands. */
  get isGone(): boolean {
    return this.#isGone;
  }

  /** What it has said; nothing more once it is gone. */
  *messages(): Generator<ToKeeper> {
    while (!this.#isGone) {
      const packet = this.#received();
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

  /** Whether it was taken. One that does not listen is found out by its silence. */
  send(message: FromKeeper): boolean {
    const { bytes, descriptors } = encode(message);
    return this.#channel.send(bytes, descriptors);
  }

  /** Ends the process, and waits until it has let go of what it shares with us. */
  kill(): void {
    if (this.#process === undefined || !killProcess(this.#process)) return;
    const untilMs = performance.now() + KEEPER_LIMITS.killMs;
    for (let leftMs: number; (leftMs = untilMs - performance.now()) > 0;) {
      if (waitReadable([this.#process], Math.ceil(leftMs))[0] === true) return;
    }
  }

  close(): void {
    this.#channel.close();
    if (this.#process !== undefined) closeQuietly(this.#process);
  }

  #received(): ReturnType<Channel["receive"]> {
    try {
      return this.#channel.receive();
    } catch {
      return "end";
    }
  }
}
