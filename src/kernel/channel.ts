/**
 * Channel: a unix socket between two processes that carries whole messages with open descriptors (SOCK_SEQPACKET,
 * SCM_RIGHTS). Every call is synchronous and non-blocking; `waitReadable` waits. A message that does not fit with all
 * of its descriptors is rejected, and the descriptors that arrived are closed.
 */
import { LIMITS } from "../base/limits.ts";
import { Fault } from "../base/lib/fault.ts";
import {
  AF_UNIX,
  SystemFault,
  addressOf,
  bind,
  closeQuietly,
  connectTo,
  lastErrno,
  listenOn,
  moveDescriptor,
  must,
  optionBytes,
  socket,
} from "./libc.ts";
import { bindUnix, unixAddress } from "./unix-listener.ts";

const c = {
  socketpair: bind<(domain: number, type: number, protocol: number, pair: Uint8Array) => number>(
    "int socketpair(int domain, int type, int protocol, void *pair)",
  ),
  accept: bind<(fd: number, address: null, length: null, flags: number) => number>(
    "int accept4(int fd, void *address, void *length, int flags)",
  ),
  sendmsg: bind<(fd: number, message: Uint8Array, flags: number) => number>(
    "long sendmsg(int fd, const void *message, int flags)",
  ),
  recvmsg: bind<(fd: number, message: Uint8Array, flags: number) => number>(
    "long recvmsg(int fd, void *message, int flags)",
  ),
  poll: bind<(watched: Uint8Array, count: number, timeout: number) => number>(
    "int poll(void *watched, unsigned long count, int timeout)",
  ),
};

const SOCK_SEQPACKET = 5;
const SOCK_NONBLOCK = 0o4000;
const SOCK_CLOEXEC = 0o2000000;
const SOL_SOCKET = 1;
const SCM_RIGHTS = 1;
const SO_PEERCRED = 17;
const MSG_CTRUNC = 0x8;
const MSG_TRUNC = 0x20;
const MSG_DONTWAIT = 0x40;
const MSG_NOSIGNAL = 0x4000;
const MSG_CMSG_CLOEXEC = 0x40000000;
const EINTR = 4;
const EAGAIN = 11;
const ECONNRESET = 104;
const EPIPE = 32;
const ETOOMANYREFS = 109;
const UNSENT: ReadonlySet<number> = new Set([EAGAIN, EPIPE, ECONNRESET, ETOOMANYREFS]);
const BACKLOG = 4;
const POLLIN = 1;
const POLL_BYTES = 8;

/** struct msghdr on a 64-bit machine. */
const MESSAGE_BYTES = 56;
const IOVEC_AT = 16;
const IOVEC_COUNT_AT = 24;
const CONTROL_AT = 32;
const CONTROL_LENGTH_AT = 40;
const FLAGS_AT = 48;
const IOVEC_BYTES = 16;
/** struct cmsghdr: length, level, type. */
const CONTROL_HEADER_BYTES = 16;
const DESCRIPTOR_BYTES = 4;

/** Shared by all channels of the process, because every exchange is synchronous. */
const memory = {
  header: Buffer.alloc(MESSAGE_BYTES),
  iovec: Buffer.alloc(IOVEC_BYTES),
  control: Buffer.alloc(CONTROL_HEADER_BYTES + aligned(LIMITS.channelDescriptors * DESCRIPTOR_BYTES)),
  data: Buffer.allocUnsafeSlow(LIMITS.channelBytes),
};

interface Packet {
  readonly bytes: Buffer;
  /** The receiver closes them. */
  readonly descriptors: readonly number[];
}

export class Channel {
  #fd: number;

  /** Takes ownership of a connected socket. */
  constructor(fd: number) {
    this.#fd = fd;
  }

  get fd(): number {
    return this.#fd;
  }

  /**
   * Returns whether the message was sent. It is false if the peer has not read earlier messages, or is gone, or if too many descriptors of
   * our user are in flight, which other programs can cause: sending may succeed later.
   */
  send(bytes: Uint8Array, descriptors: readonly number[] = []): boolean {
    if (bytes.length > LIMITS.channelBytes || descriptors.length > LIMITS.channelDescriptors) {
      throw new RangeError(`A message of ${bytes.length} bytes and ${descriptors.length} descriptors is too large`);
    }
    if (this.#fd < 0) return false;
    memory.data.set(bytes);
    prepareHeader(bytes.length, writeDescriptors(descriptors));
    const sent = retried(() => c.sendmsg(this.#fd, memory.header, MSG_DONTWAIT | MSG_NOSIGNAL));
    if (sent >= 0) return true;
    const errno = lastErrno();
    if (UNSENT.has(errno)) return false;
    throw new SystemFault("sendmsg", errno, "a channel");
  }

  /** The next message, if there is one; "end" if the peer is gone and everything it has sent was read. */
  receive(): Packet | "nothing" | "end" {
    if (this.#fd < 0) return "end";
    prepareHeader(LIMITS.channelBytes, memory.control.length);
    let length = retried(() => c.recvmsg(this.#fd, memory.header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC));
    // The peer closed the socket with unread messages; those that it sent before can still be read.
    if (length < 0 && lastErrno() === ECONNRESET) {
      prepareHeader(LIMITS.channelBytes, memory.control.length);
      length = retried(() => c.recvmsg(this.#fd, memory.header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC));
    }
    if (length < 0) {
      const errno = lastErrno();
      if (errno === EAGAIN) return "nothing";
      throw new SystemFault("recvmsg", errno, "a channel");
    }
    const descriptors = readDescriptors();
    if ((memory.header.readInt32LE(FLAGS_AT) & (MSG_TRUNC | MSG_CTRUNC)) !== 0) {
      for (const fd of descriptors) closeQuietly(fd);
      throw new Fault("TOO_LONG", "A received message exceeds the size limit");
    }
    if (length === 0) {
      // There are some with an empty message.
      for (const fd of descriptors) closeQuietly(fd);
      return "end";
    }
    return { bytes: Buffer.from(memory.data.subarray(0, length)), descriptors };
  }

  /** Moves the channel to the lowest free descriptor from `least` on, if there is one. */
  move(least: number): void {
    this.#fd = moveDescriptor(this.#fd, least);
  }

  close(): void {
    const fd = this.#fd;
    this.#fd = -1;
    if (fd >= 0) closeQuietly(fd);
  }
}

/** The two ends of a channel; the second is for a child. */
export function channelPair(): readonly [number, number] {
  const pair = Buffer.alloc(8);
  must(c.socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), "socketpair");
  return [pair.readInt32LE(0), pair.readInt32LE(4)];
}

/** A listening socket at an unused path, which only its owner may connect to. */
export function listenAt(path: string): number {
  const fd = bindUnix(path, SOCK_SEQPACKET);
  try {
    listenOn(fd, BACKLOG);
    return fd;
  } catch (error) {
    closeQuietly(fd);
    throw error;
  }
}

/** Throws if no process listens. */
export function connectAt(path: string): Channel {
  const fd = socket(AF_UNIX, SOCK_SEQPACKET);
  try {
    connectTo(fd, unixAddress(path), path);
    return new Channel(fd);
  } catch (error) {
    closeQuietly(fd);
    throw error;
  }
}

/** The next connection; undefined if none is pending. */
export function acceptAt(fd: number): Channel | undefined {
  const accepted = retried(() => c.accept(fd, null, null, SOCK_NONBLOCK | SOCK_CLOEXEC));
  return accepted < 0 ? undefined : new Channel(accepted);
}

/** The peer's credentials at connect: its pid, 0 where this PID namespace does not see it, and its user. */
export function peerOf(fd: number): { readonly pid: number; readonly uid: number } {
  const credentials = optionBytes(fd, SOL_SOCKET, SO_PEERCRED, Buffer.alloc(12), "SO_PEERCRED");
  return { pid: credentials.readInt32LE(0), uid: credentials.readUInt32LE(4) };
}

/** Waits up to `timeoutMs` for one of these descriptors; returns which of them can be read or have ended. */
export function waitReadable(fds: readonly number[], timeoutMs: number): readonly boolean[] {
  const watched = Buffer.alloc(fds.length * POLL_BYTES);
  for (const [index, fd] of fds.entries()) {
    watched.writeInt32LE(fd, index * POLL_BYTES);
    watched.writeInt16LE(POLLIN, index * POLL_BYTES + 4);
  }
  const count = c.poll(watched, fds.length, timeoutMs);
  if (count < 0 && lastErrno() !== EINTR) throw new SystemFault("poll", lastErrno());
  return fds.map((_, index) => count > 0 && watched.readInt16LE(index * POLL_BYTES + 6) !== 0);
}

function prepareHeader(dataBytes: number, controlBytes: number): void {
  const { header, iovec, control, data } = memory;
  header.fill(0);
  writePointer(iovec, 0, data);
  iovec.writeBigUInt64LE(BigInt(dataBytes), 8);
  writePointer(header, IOVEC_AT, iovec);
  header.writeBigUInt64LE(1n, IOVEC_COUNT_AT);
  if (controlBytes === 0) return;
  writePointer(header, CONTROL_AT, control);
  header.writeBigUInt64LE(BigInt(controlBytes), CONTROL_LENGTH_AT);
}

/** Returns the length of the control message. */
function writeDescriptors(descriptors: readonly number[]): number {
  if (descriptors.length === 0) return 0;
  const { control } = memory;
  control.writeBigUInt64LE(BigInt(CONTROL_HEADER_BYTES + descriptors.length * DESCRIPTOR_BYTES), 0);
  control.writeInt32LE(SOL_SOCKET, 8);
  control.writeInt32LE(SCM_RIGHTS, 12);
  for (const [index, fd] of descriptors.entries()) {
    control.writeInt32LE(fd, CONTROL_HEADER_BYTES + index * DESCRIPTOR_BYTES);
  }
  return CONTROL_HEADER_BYTES + aligned(descriptors.length * DESCRIPTOR_BYTES);
}

function readDescriptors(): number[] {
  const { control, header } = memory;
  const end = Number(header.readBigUInt64LE(CONTROL_LENGTH_AT));
  const found: number[] = [];
  for (let at = 0; at + CONTROL_HEADER_BYTES <= end;) {
    const length = Number(control.readBigUInt64LE(at));
    if (length < CONTROL_HEADER_BYTES) break;
    const isRights = control.readInt32LE(at + 8) === SOL_SOCKET && control.readInt32LE(at + 12) === SCM_RIGHTS;
    for (let each = at + CONTROL_HEADER_BYTES; isRights && each + DESCRIPTOR_BYTES <= at + length; each += 4) {
      found.push(control.readInt32LE(each));
    }
    at += aligned(length);
  }
  return found;
}

function retried(call: () => number): number {
  for (;;) {
    const result = call();
    if (result >= 0 || lastErrno() !== EINTR) return result;
  }
}

function aligned(bytes: number): number {
  return Math.ceil(bytes / 8) * 8;
}

function writePointer(target: Buffer, at: number, bytes: Uint8Array): void {
  target.writeBigUInt64LE(BigInt(addressOf(bytes)), at);
}
