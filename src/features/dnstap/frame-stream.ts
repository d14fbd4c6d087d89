/**
 * FrameStream: frames to a program that reads them from a Unix socket, by the protocol Frame Streams with its handshake:
 *
 *   connect --> READY, with the type of content --> ACCEPT of the reader --> START --> frames ... --> STOP --> FINISH of the reader
 *      ^            |  no answer in time, another one, or bytes that nobody asked for; the reader is gone
 *      +--backoff---+
 *
 * A frame is written into a block of memory, and a block is given to the socket as a whole. While one is on its way the other one is filled, and
 * frames without room are dropped: nobody waits for a reader, and it takes no more memory than two blocks.
 */
import { type Socket, connect } from "node:net";
import { guard } from "../../base/lib/guard.ts";
import { reasonOf } from "../../base/lib/fault.ts";
import { Retry } from "../../base/lib/retry.ts";

const ACCEPT = 1;
const START = 2;
const STOP = 3;
const READY = 4;
const FINISH = 5;
const CONTENT_TYPE = 1;
const CONTENT = Buffer.from("protobuf:dnstap.Dnstap");
/** A frame, or a field, begins with its length. */
const LENGTH_BYTES = 4;

/** Writes a frame of at most that many bytes at an offset, and returns the offset after it. */
export interface Frame {
  readonly sizeMax: number;
  write(block: Buffer, at: number): number;
}

/** What one sender has in the block that is being filled. */
export class FrameShare {
  block: Block | undefined;
  fill = 0;
  bytes = 0;
}

interface Block {
  readonly bytes: Buffer;
  end: number;
  frames: number;
  /** How often it has been filled. */
  fill: number;
}

/** What became of the frames. */
export interface FrameCounts {
  written: number;
  dropped: number;
}

interface FrameStreamEvents {
  readonly onConnected: () => void;
  /** It is gone, or was never there; called once until it is connected again. */
  readonly onAway: (reason: string) => void;
}

export class FrameStream {
  readonly #path: string;
  readonly #events: FrameStreamEvents;
  readonly #retry: Retry;
  readonly #counts: FrameCounts;
  #socket: Socket | undefined;
  #state: "away" | "handshake" | "open" | "stopping" | "closed" = "away";
  #isAwayKnown = false;
  #openedMs = 0;
  #received = Buffer.alloc(0);
  #filling = newBlock();
  #other = newBlock();
  #isWriting = false;
  #timer: NodeJS.Timeout | undefined;
  #isGathering = false;
  #onStopped: () => void = () => undefined;

  constructor(path: string, events: FrameStreamEvents, counts: FrameCounts) {
    this.#path = path;
    this.#counts = counts;
    this.#events = events;
    const { retryFirstMs, retryLastMs } = DNSTAP_LIMITS;
    this.#retry = new Retry(() => this.#connect(), retryFirstMs, retryLastMs);
    this.#connect();
  }

  /** Whether a reader has accepted the frames. */
  get isOpen(): boolean {
    return this.#state === "open";
  }

  /** Takes a frame, or drops it. */
  push(frame: Frame, share: FrameShare): void {
    const block = this.#filling;
    const isOver = this.#state === "stopping" || this.#state === "closed";
    const size = LENGTH_BYTES + frame.sizeMax;
    if (share.block !== block || share.fill !== block.fill) {
      share.block = block;
      share.fill = block.fill;
      share.bytes = 0;
    }
    if (isOver || block.end + size > block.bytes.length || share.bytes + size > DNSTAP_LIMITS.containerBytes) {
      this.#counts.dropped++;
      return;
    }
    const start = block.end + LENGTH_BYTES;
    const end = frame.write(block.bytes, start);
    block.bytes.writeUInt32BE(end - start, block.end);
    share.bytes += end - block.end;
    block.end = end;
    block.frames++;
    if (this.#state === "open") this.#gather();
  }

  /** What is left is written, and the reader told that this is the end. Resolves when it has confirmed that, or after a moment. */
  async close(): Promise<void> {
    this.#retry.close();
    if (this.#state === "open" && this.#socket !== undefined) {
      const socket = this.#socket;
      await new Promise<void>((resolve) => {
        this.#onStopped = resolve;
        this.#state = "stopping";
        // Nothing else may keep the process alive.
        socket.ref();
        this.#arm(DNSTAP_LIMITS.finishMs, "it did not confirm the end").ref();
        this.#give(socket, this.#filling);
        socket.write(controlFrame(STOP));
      });
    } else this.#counts.dropped += this.#filling.frames;
    this.#state = "closed";
    this.#end("closed");
  }

  #connect(): void {
    const socket = connect({ path: this.#path });
    this.#socket = socket;
    this.#state = "handshake";
    this.#received = Buffer.alloc(0);
    socket.unref();
    const ofThis = (work: () => void): void => {
      if (this.#socket === socket) guard.run("elsewhere", 0, work);
    };
    socket.on("connect", () => ofThis(() => socket.write(controlFrame(READY, CONTENT))));
    socket.on("data", (bytes: Buffer) => ofThis(() => this.#onData(bytes)));
    socket.on("error", (error) => ofThis(() => this.#end(reasonOf(error))));
    for (const end of ["end", "close"]) socket.on(end, () => ofThis(() => this.#end("it has closed the connection")));
    this.#arm(DNSTAP_LIMITS.handshakeMs, "it does not accept dnstap in time");
  }

  #arm(ms: number, reason: string): NodeJS.Timeout {
    clearTimeout(this.#timer);
    return (this.#timer = setTimeout(() => guard.run("timer", 0, () => this.#end(reason)), ms).unref());
  }

  /** A reader answers READY and STOP, and has nothing else to say. */
  #onData(bytes: Buffer): void {
    const received = Buffer.concat([this.#received, bytes]);
    if (received.length > 2 * LENGTH_BYTES + DNSTAP_LIMITS.controlBytes)
      return this.#end("it sends what nobody asked for");
    this.#received = received;
    const control = readControl(received);
    if (control === undefined) return;
    this.#received = Buffer.alloc(0);
    if (control !== "damaged" && this.#state === "stopping" && control.type === FINISH) return this.#end("finished");
    if (control === "damaged" || this.#state !== "handshake" || control.type !== ACCEPT || !acceptsDnstap(control))
      return this.#end("it does not accept dnstap");
    clearTimeout(this.#timer);
    this.#socket?.write(controlFrame(START, CONTENT));
    this.#state = "open";
    this.#openedMs = performance.now();
    this.#isAwayKnown = false;
    this.#events.onConnected();
    this.#write();
  }

  #gather(): void {
    if (this.#isGathering) return;
    this.#isGathering = true;
    const write = (): void => {
      this.#isGathering = false;
      this.#write();
    };
    setTimeout(() => guard.run("timer", 0, write), DNSTAP_LIMITS.gatherMs).unref();
  }

  /** Gives what was gathered to the socket, unless that has not sent what it had. */
  #write(): void {
    const socket = this.#socket;
    const block = this.#filling;
    if (this.#state !== "open" || socket === undefined || this.#isWriting || block.frames === 0) return;
    this.#filling = this.#other;
    this.#other = block;
    this.#isWriting = true;
    this.#give(socket, block);
  }

  /** The memory of the block is the socket's until it has sent it, or never will. */
  #give(socket: Socket, block: Block): void {
    socket.write(block.bytes.subarray(0, block.end), (error) => {
      this.#isWriting = false;
      this.#counts[error == null ? "written" : "dropped"] += block.frames;
      block.end = block.frames = 0;
      block.fill++;
      guard.run("elsewhere", 0, () => this.#write());
    });
  }

  #end(reason: string): void {
    const socket = this.#socket;
    if (socket === undefined) return;
    this.#socket = undefined;
    clearTimeout(this.#timer);
    // What it has not sent is lost: its callback says so.
    socket.destroy();
    const isOver = this.#state === "stopping" || this.#state === "closed";
    const isSteady = this.#state === "open" && performance.now() - this.#openedMs >= DNSTAP_LIMITS.steadyMs;
    if (isOver) {
      this.#onStopped();
      return;
    }
    this.#state = "away";
    if (!this.#isAwayKnown) this.#events.onAway(reason);
    this.#isAwayKnown = true;
    if (isSteady) this.#retry.note(false);
    this.#retry.note(true);
  }
}

function newBlock(): Block {
  return { bytes: Buffer.allocUnsafeSlow(DNSTAP_LIMITS.waitingBytes), end: 0, frames: 0, fill: 0 };
}

interface Control {
  readonly type: number;
  readonly contents: readonly Buffer[];
}

/** A control frame: a length of zero, its own length, its type, and its fields. */
export function controlFrame(type: number, content?: Buffer): Buffer {
  const field = content === undefined ? [] : [wordOf(CONTENT_TYPE), wordOf(content.length), content];
  const body = Buffer.concat([wordOf(type), ...field]);
  return Buffer.concat([wordOf(0), wordOf(body.length), body]);
}

/** Undefined if more bytes are needed. */
export function readControl(bytes: Buffer): Control | "damaged" | undefined {
  if (bytes.length >= LENGTH_BYTES && bytes.readUInt32BE(0) !== 0) return "damaged";
  if (bytes.length < 2 * LENGTH_BYTES) return undefined;
  const length = bytes.readUInt32BE(LENGTH_BYTES);
  if (length < LENGTH_BYTES || length > DNSTAP_LIMITS.controlBytes) return "damaged";
  const end = 2 * LENGTH_BYTES + length;
  if (bytes.length < end) return undefined;
  // It waits for the answer to this one.
  if (bytes.length > end) return "damaged";
  const contents: Buffer[] = [];
  let at = 3 * LENGTH_BYTES;
  while (at < end) {
    if (at + 2 * LENGTH_BYTES > end) return "damaged";
    const [kind, size] = [bytes.readUInt32BE(at), bytes.readUInt32BE(at + LENGTH_BYTES)];
    at += 2 * LENGTH_BYTES;
    if (at + size > end) return "damaged";
    if (kind === CONTENT_TYPE) contents.push(bytes.subarray(at, at + size));
    at += size;
  }
  return { type: bytes.readUInt32BE(2 * LENGTH_BYTES), contents };
}

/** One that names no type accepts any. */
function acceptsDnstap({ contents }: Control): boolean {
  return contents.length === 0 || contents.some((each) => each.equals(CONTENT));
}

function wordOf(value: number): Buffer {
  const bytes = Buffer.alloc(LENGTH_BYTES);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** What a reader of dnstap may cost. */
export const DNSTAP_LIMITS = {
  /**
   * Bytes of messages that wait for the reader, twice: those that are being written, and those that come meanwhile. Further ones are dropped
   * and counted. One container may have half of it, so that it cannot have those of all others dropped.
   */
  waitingBytes: 1024 * 1024,
  containerBytes: 512 * 1024,
  /** How long messages wait to be written together. */
  gatherMs: 20,
  /** Time for a reader to accept the connection; and to confirm its end, which the end of dns11 waits for. */
  handshakeMs: 5_000,
  finishMs: 1_000,
  /** Bytes of a control frame, as in the protocol, which is all that a reader may ever send. */
  controlBytes: 512,
  /** Backoff of connections to a reader, which begins anew after a connection of that length. */
  retryFirstMs: 250,
  retryLastMs: 30_000,
  steadyMs: 30_000,
} as const;
