/**
 * A netlink socket of the namespace it was made in. The kernel works a request off inside send, so the answers can be
 * read at once and every exchange is one synchronous call: nothing awaits between going into a namespace and coming home.
 */
import { LIMITS } from "../base/limits.ts";
import { Fault } from "../base/lib/fault.ts";
import {
  AF_NETLINK,
  SOCK_RAW,
  SystemFault,
  addressOf,
  bindTo,
  closeQuietly,
  lastErrno,
  localAddress,
  receive,
  send,
  setReceiveBuffer,
  socket,
} from "./libc.ts";
import {
  NLM_F_DUMP,
  NLM_F_REQUEST,
  type NetlinkMessage,
  NetlinkWriter,
  messagesIn,
  outcomeOf,
} from "./netlink-message.ts";

const RECEIVE_BYTES = 64 * 1024;
/** Room for the answers to the longest transaction, so that no refusal is lost. */
const RECEIVE_QUEUE_BYTES = 256 * 1024;
const EAGAIN = 11;

/** The memory that answers are received into, shared by all sockets because every exchange is synchronous. */
export class NetlinkMemory {
  readonly bytes = Buffer.allocUnsafeSlow(RECEIVE_BYTES);
  readonly address = addressOf(this.bytes);
}

/** One request: its number, flags beside REQUEST (ACK or DUMP, so that its answers have an end), and what it holds. */
export interface NetlinkRequest {
  readonly type: number;
  readonly flags: number;
  /** The two words of the message when the kernel refuses it. */
  readonly call: string;
  readonly about: string;
  readonly write: (writer: NetlinkWriter) => void;
}

export class NetlinkSocket {
  readonly #memory: NetlinkMemory;
  #fd: number;
  #sequence = 0;
  /** The id by which the kernel names this socket as the cause of a change. */
  readonly port: number;

  /**
   * Opens the socket in the namespace that the calling thread is in, or takes over one that another process made. Only one
   * process may ask by it at a time: what it answers is for whoever reads first.
   */
  constructor(memory: NetlinkMemory, protocol: number, made?: number) {
    this.#memory = memory;
    this.#fd = made ?? socket(AF_NETLINK, SOCK_RAW, protocol);
    try {
      if (made === undefined) {
        const anyPort = Buffer.alloc(12);
        anyPort.writeUInt16LE(AF_NETLINK, 0);
        bindTo(this.#fd, anyPort, "netlink");
        setReceiveBuffer(this.#fd, RECEIVE_QUEUE_BYTES);
      } else this.discard();
      this.port = localAddress(this.#fd).readUInt32LE(4);
    } catch (error) {
      closeQuietly(this.#fd);
      throw error;
    }
  }

  /**
   * Makes one request, hands over what answers it, and throws if the kernel refuses. `visit` must not ask in turn; where it
   * returns false it has seen enough. A list that is too long is broken off with a Fault. A socket that was left in the
   * middle of a list can only be closed.
   */
  request({ type, flags, call, about, write }: NetlinkRequest, visit?: (body: Buffer) => boolean | void): void {
    const writer = new NetlinkWriter();
    const sequence = this.nextSequence();
    writer.message(type, NLM_F_REQUEST | flags, sequence, () => write(writer));
    this.send(writer.bytes);
    const bound = (flags & NLM_F_DUMP) === NLM_F_DUMP ? new Bound(call) : undefined;
    for (const message of this.received(bound)) {
      if (message.sequence !== sequence) continue;
      const outcome = outcomeOf(message);
      if (outcome === undefined) {
        if (visit?.(message.body) === false) return this.close();
      } else if (outcome === "end" || outcome.errno === 0) return;
      else throw new SystemFault(call, outcome.errno, about);
    }
    throw new Error(`netlink did not say how ${call} ended`);
  }

  /** -1 once it is closed. */
  get fd(): number {
    return this.#fd;
  }

  nextSequence(): number {
    return ++this.#sequence;
  }

  send(bytes: Uint8Array): void {
    if (send(this.#fd, bytes) < 0) throw new SystemFault("send", lastErrno(), "netlink");
  }

  /** The messages that are there now, until nothing is left: a dump continues itself while it is read. */
  *received(bound?: Bound): Generator<NetlinkMessage> {
    for (;;) {
      const length = receive(this.#fd, this.#memory.address, RECEIVE_BYTES);
      if (length < 0) {
        const errno = lastErrno();
        if (errno === EAGAIN) return;
        throw new SystemFault("recv", errno, "netlink");
      }
      bound?.add(length);
      yield* messagesIn(this.#memory.bytes.subarray(0, length));
    }
  }

  /** What is there now belongs to something that has already failed. */
  discard(): void {
    while (receive(this.#fd, this.#memory.address, RECEIVE_BYTES) >= 0);
  }

  close(): void {
    const fd = this.#fd;
    this.#fd = -1;
    if (fd >= 0) closeQuietly(fd);
  }
}

/** What one list may come to. */
class Bound {
  readonly #call: string;
  readonly #endMs = performance.now() + LIMITS.dumpMs;
  #bytes = 0;

  constructor(call: string) {
    this.#call = call;
  }

  add(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes <= LIMITS.dumpBytesAtLeast) return;
    if (this.#bytes <= LIMITS.dumpBytes && performance.now() <= this.#endMs) return;
    throw new Fault("TOO_MANY", `${this.#call} was broken off: there is more than is looked at`);
  }
}
