/**
 * NetlinkSocket: a netlink socket of the namespace it was made in. The kernel processes a request inside send, so the
 * replies can be read at once and every exchange is one synchronous call: nothing awaits between entering and leaving a
 * namespace.
 */
import { LIMITS } from "../base/limits.ts";
import { Fault, codeOf } from "../base/lib/fault.ts";
import {
  AF_NETLINK,
  SOCK_RAW,
  SystemFault,
  addressOf,
  bindTo,
  closeQuietly,
  errnoName,
  lastErrno,
  localAddress,
  receive,
  send,
  setReceiveBuffer,
  socket,
} from "./libc.ts";
import { closeNetfilter, sendInPool } from "./in-pool.ts";
import {
  NLM_F_DUMP,
  NLM_F_REQUEST,
  type NetlinkMessage,
  NetlinkWriter,
  messagesIn,
  outcomeOf,
} from "./netlink-message.ts";

/** The protocol of nf_tables and of connection tracking. */
export const NETLINK_NETFILTER = 12;
const RECEIVE_BYTES = 64 * 1024;
/**
 * The size for a dump of which only the beginning is read: the kernel always prepares the next datagram, of the size
 * that was last read.
 */
const BEGINNING_BYTES = 8 * 1024;
/** Room for the replies to the longest transaction, so that no error is lost. */
const RECEIVE_QUEUE_BYTES = 256 * 1024;
const EAGAIN = 11;
const ENOBUFS = 105;

/** The receive buffer, shared by all sockets because every exchange is synchronous. */
export class NetlinkMemory {
  readonly bytes = Buffer.allocUnsafeSlow(RECEIVE_BYTES);
  readonly address = addressOf(this.bytes);
}

/** One request: its type, flags beside REQUEST (ACK or DUMP, so that its replies have an end), and its body. */
export interface NetlinkRequest {
  readonly type: number;
  readonly flags: number;
  /** The call and its subject, for the error message where the kernel refuses. */
  readonly call: string;
  readonly about: string;
  /** Errors that mean that the object does not exist: then there is no reply. */
  readonly absent?: ReadonlySet<string> | undefined;
  /** Only the beginning of this dump is read. */
  readonly isBeginning?: boolean | undefined;
  readonly write: (writer: NetlinkWriter) => void;
}

/** Called with each reply; returns false to stop. */
type Visit = (body: Buffer) => boolean | void;

export class NetlinkSocket {
  readonly #memory: NetlinkMemory;
  readonly #protocol: number;
  #fd: number;
  #sequence = 0;
  /** The port id with which the kernel identifies this socket as the cause of a change. */
  readonly port: number;

  /**
   * Opens the socket in the thread's namespace, or takes over one that another process made. Only one process may use it at a time: replies
   * go to the first reader.
   */
  constructor(memory: NetlinkMemory, protocol: number, existing?: number) {
    this.#memory = memory;
    this.#protocol = protocol;
    this.#fd = existing ?? socket(AF_NETLINK, SOCK_RAW, protocol);
    try {
      if (existing === undefined) {
        const anyPort = Buffer.alloc(12);
        anyPort.writeUInt16LE(AF_NETLINK, 0);
        bindTo(this.#fd, anyPort, "netlink");
        setReceiveBuffer(this.#fd, RECEIVE_QUEUE_BYTES);
      } else this.discard();
      this.port = localAddress(this.#fd).readUInt32LE(4);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /**
   * Sends one request, passes each reply to `visit`, and throws if the kernel refuses. `visit` must not send
   * requests; it returns false to stop. A dump that is too long ends with a Fault. After an aborted dump the socket can
   * only be closed.
   */
  request(request: NetlinkRequest, visit?: Visit): void {
    const { call, flags } = request;
    const isDump = (flags & NLM_F_DUMP) === NLM_F_DUMP;
    const limit = isDump ? new DumpLimit(call, LIMITS.dumpBytes, LIMITS.dumpMs) : undefined;
    for (const _ of this.#exchange(request, limit, visit));
  }

  /**
   * Sends a request and passes its replies, one datagram at a time. Other work may run in between, also in another namespace, because the
   * kernel lists the objects of the namespace in which the socket was made. Objects that change meanwhile may be missing.
   */
  *requestInParts(request: NetlinkRequest, visit: Visit): Generator<void> {
    yield* this.#exchange(request, new DumpLimit(request.call, LIMITS.dumpBytesInParts, Infinity), visit);
  }

  /** Sends a request that may wait for a lock, in the pool; the caller makes one after the other. */
  async requestInPool(request: NetlinkRequest, visit?: Visit): Promise<void> {
    const { bytes, sequence } = this.#written(request);
    await this.sendInPool(bytes);
    for (const _ of this.#replies(request, sequence, undefined, visit));
  }

  /** -1 once the socket is closed. */
  get fd(): number {
    return this.#fd;
  }

  nextSequence(): number {
    return ++this.#sequence;
  }

  send(bytes: Uint8Array): void {
    if (send(this.#fd, bytes) < 0) throw new SystemFault("send", lastErrno(), "netlink");
  }

  /** Sends bytes that may have to wait for a lock, in the pool. */
  async sendInPool(bytes: Uint8Array): Promise<void> {
    await sendInPool(this.#fd, bytes, "netlink");
  }

  /**
   * The messages that are waiting, until none is left: a dump continues while it is read. If there was no room for all of them, the
   * messages that came before the overflow are read first.
   */
  *received(): Generator<NetlinkMessage> {
    let overflow: unknown;
    for (let isRead = false; !isRead;) {
      try {
        for (const datagram of this.#datagrams(undefined)) yield* messagesIn(datagram);
        isRead = true;
      } catch (error) {
        if (overflow !== undefined || codeOf(error) !== "ENOBUFS") throw error;
        overflow = error;
      }
    }
    if (overflow !== undefined) throw overflow;
  }

  *#exchange(request: NetlinkRequest, limit: DumpLimit | undefined, visit: Visit | undefined): Generator<void> {
    const { bytes, sequence } = this.#written(request);
    this.send(bytes);
    yield* this.#replies(request, sequence, limit, visit);
  }

  #written({ type, flags, write }: NetlinkRequest): { readonly bytes: Buffer; readonly sequence: number } {
    const writer = new NetlinkWriter();
    const sequence = this.nextSequence();
    writer.message(type, NLM_F_REQUEST | flags, sequence, () => write(writer));
    return { bytes: writer.bytes, sequence };
  }

  /** Each datagram is processed before the generator yields, because other requests receive into the same memory. */
  *#replies(
    { call, about, absent, isBeginning }: NetlinkRequest,
    sequence: number,
    limit: DumpLimit | undefined,
    visit: Visit | undefined,
  ): Generator<void> {
    for (const datagram of this.#datagrams(limit, isBeginning === true ? BEGINNING_BYTES : RECEIVE_BYTES)) {
      for (const message of messagesIn(datagram)) {
        if (message.sequence !== sequence) continue;
        const outcome = outcomeOf(message);
        if (outcome === undefined) {
          if (visit?.(message.body) === false) return this.close();
        } else if (outcome === "end" || outcome.errno === 0) return;
        else if (absent?.has(errnoName(outcome.errno)) === true) return;
        else throw new SystemFault(call, outcome.errno, about);
      }
      yield;
    }
    throw new Error(`netlink did not complete ${call}`);
  }

  *#datagrams(limit: DumpLimit | undefined, bytes = RECEIVE_BYTES): Generator<Buffer> {
    for (;;) {
      const length = receive(this.#fd, this.#memory.address, bytes);
      if (length < 0) {
        const errno = lastErrno();
        if (errno === EAGAIN) return;
        throw new SystemFault("recv", errno, "netlink");
      }
      limit?.add(length);
      yield this.#memory.bytes.subarray(0, length);
    }
  }

  /** Drops the messages that are waiting: they belong to a request that has already failed. */
  discard(): void {
    while (receive(this.#fd, this.#memory.address, RECEIVE_BYTES) >= 0 || lastErrno() === ENOBUFS);
  }

  /** A netfilter socket is closed in the pool, because that takes a lock. */
  close(): void {
    const fd = this.#fd;
    this.#fd = -1;
    if (fd < 0) return;
    if (this.#protocol === NETLINK_NETFILTER) closeNetfilter(fd);
    else closeQuietly(fd);
  }
}

/** The size and time limit of one dump. The time is the process's own CPU time: a busy machine is no reason to abort a dump. */
class DumpLimit {
  readonly #call: string;
  readonly #bytesMax: number;
  readonly #msMax: number;
  readonly #start = process.cpuUsage();
  #bytes = 0;

  constructor(call: string, bytesMax: number, msMax: number) {
    this.#call = call;
    this.#bytesMax = bytesMax;
    this.#msMax = msMax;
  }

  add(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes <= LIMITS.dumpBytesAtLeast) return;
    if (this.#bytes <= this.#bytesMax && this.#isInTime()) return;
    throw new Fault("TOO_MANY", `${this.#call} was aborted: the result exceeds the limit`);
  }

  #isInTime(): boolean {
    if (this.#msMax === Infinity) return true;
    const { user, system } = process.cpuUsage(this.#start);
    return user + system <= this.#msMax * 1000;
  }
}
