/**
 * The calls into libc, together with channel.ts, process.ts and seccomp.ts. Every call runs synchronously on the calling thread: setns
 * changes one thread only, so work inside a namespace must not leave the thread between entering and leaving.
 *
 * Calls off the hot path throw a SystemFault with the call and the errno. The two calls of the data plane (recvmmsg, sendmmsg) and plain
 * sends return the kernel's result, because their failures are ordinary and per packet.
 */
import { closeSync, constants, openSync } from "node:fs";
import { getSystemErrorName } from "node:util";
import koffi from "koffi";
import { Fault } from "../base/lib/fault.ts";

const lib = koffi.load(null);

/** Binds one libc function; the definition is C, the type is what TypeScript may rely on. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the parameter is the assertion
export function bind<F extends (...args: never[]) => unknown>(definition: string): F {
  return lib.func(definition) as unknown as F;
}

const c = {
  setns: bind<(fd: number, type: number) => number>("int setns(int fd, int type)"),
  unshare: bind<(flags: number) => number>("int unshare(int flags)"),
  socket: bind<(domain: number, type: number, protocol: number) => number>(
    "int socket(int domain, int type, int protocol)",
  ),
  bind: bind<(fd: number, address: Uint8Array, length: number) => number>(
    "int bind(int fd, const void *address, uint32_t length)",
  ),
  connect: bind<(fd: number, address: Uint8Array, length: number) => number>(
    "int connect(int fd, const void *address, uint32_t length)",
  ),
  listen: bind<(fd: number, backlog: number) => number>("int listen(int fd, int backlog)"),
  getsockname: bind<(fd: number, address: Uint8Array, length: Uint8Array) => number>(
    "int getsockname(int fd, void *address, void *length)",
  ),
  setsockopt: bind<(fd: number, level: number, name: number, value: Uint8Array, length: number) => number>(
    "int setsockopt(int fd, int level, int name, const void *value, uint32_t length)",
  ),
  getsockopt: bind<(fd: number, level: number, name: number, value: Uint8Array, length: Uint8Array) => number>(
    "int getsockopt(int fd, int level, int name, void *value, void *length)",
  ),
  send: bind<(fd: number, data: Uint8Array, length: number, flags: number) => number>(
    "long send(int fd, const void *data, size_t length, int flags)",
  ),
  sendto: bind<
    (fd: number, data: Uint8Array, length: number, flags: number, address: Uint8Array, addressLength: number) => number
  >("long sendto(int fd, const void *data, size_t length, int flags, const void *address, uint32_t addressLength)"),
  recv: bind<(fd: number, data: number, length: number, flags: number) => number>(
    "long recv(int fd, uintptr_t data, size_t length, int flags)",
  ),
  recvmmsg: bind<(fd: number, messages: number, count: number, flags: number, timeout: number) => number>(
    "int recvmmsg(int fd, uintptr_t messages, unsigned int count, int flags, uintptr_t timeout)",
  ),
  sendmmsg: bind<(fd: number, messages: number, count: number, flags: number) => number>(
    "int sendmmsg(int fd, uintptr_t messages, unsigned int count, int flags)",
  ),
  flock: bind<(fd: number, operation: number) => number>("int flock(int fd, int operation)"),
  ioctl: bind<(fd: number, request: number, argument: number) => number>(
    "int ioctl(int fd, unsigned long request, long argument)",
  ),
  mmap: bind<(address: null, length: number, protection: number, flags: number, fd: number, offset: number) => unknown>(
    "void *mmap(void *address, size_t length, int protection, int flags, int fd, long offset)",
  ),
  munmap: bind<(address: unknown, length: number) => number>("int munmap(void *address, size_t length)"),
  ifNameToIndex: bind<(name: string) => number>("unsigned int if_nametoindex(const char *name)"),
  prctl: bind<(option: number, argument: number, a: number, b: number, c: number) => number>(
    "int prctl(int option, unsigned long argument, unsigned long a, unsigned long b, unsigned long c)",
  ),
  capset: bind<(header: Uint8Array, data: Uint8Array) => number>("int capset(void *header, const void *data)"),
  fcntl: bind<(fd: number, command: number, argument: number) => number>(
    "int fcntl(int fd, int command, long argument)",
  ),
  execv: bind<(path: string, words: readonly (string | null)[]) => number>(
    "int execv(const char *path, const char **words)",
  ),
  alarm: bind<(seconds: number) => number>("unsigned int alarm(unsigned int seconds)"),
  openat2: bind<(call: number, directory: number, path: string, how: Uint8Array, size: number) => number>(
    "long syscall(long call, long directory, const char *path, const void *how, size_t size)",
  ),
};

export const AF_UNIX = 1;
export const AF_INET = 2;
export const AF_INET6 = 10;
export const AF_NETLINK = 16;
export const SOCK_STREAM = 1;
export const SOCK_DGRAM = 2;
export const SOCK_RAW = 3;
const SOCK_NONBLOCK = 0o4000;
const SOCK_CLOEXEC = 0o2000000;
const CLONE_NEWNET = 0x40000000;
const SOL_SOCKET = 1;
const SO_REUSEADDR = 2;
const SO_SNDBUF = 7;
const SO_RCVBUF = 8;
const SO_SNDBUFFORCE = 32;
const SO_RCVBUFFORCE = 33;
const SOL_NETLINK = 270;
const NETLINK_NO_ENOBUFS = 5;
const SO_PEERCRED = 17;
const IPPROTO_TCP = 6;
const TCP_QUICKACK = 12;
const ON = Buffer.of(1, 0, 0, 0);
const SO_MARK = 36;
const SO_MEMINFO = 55;
/** linux/sock_diag.h: the number of values, and the index of the one that is read. */
const MEMINFO_VALUES = 9;
const MEMINFO_RECEIVED = 0;
const MEMINFO_DROPS = 8;
const MSG_DONTWAIT = 0x40;
const MSG_NOSIGNAL = 0x4000;
const LOCK_EXCLUSIVE_NOW = 2 | 4;
const F_SETFD = 2;
const F_DUPFD_CLOEXEC = 1030;
const PR_CAPBSET_DROP = 24;
const CAPABILITY_VERSION_3 = 0x20080522;
/** linux/sockios.h */
const SIOCGSKNS = 0x894c;
const NS_GET_NSTYPE = 0xb703;
const OPENAT2 = 437;
const O_CLOEXEC = 0o2000000;
const RESOLVE_IN_ROOT = 0x10;
const RESOLVE_NO_XDEV = 0x01;
const RESOLVE_NO_MAGICLINKS = 0x02;

/** A failed system call: the call, its errno, and its subject. */
export class SystemFault extends Fault {
  readonly errno: number;

  constructor(call: string, errno: number, about = "") {
    const word = errnoName(errno);
    super(word, `${call}${about === "" ? "" : ` of ${about}`} failed: ${word}`);
    this.errno = errno;
  }
}

/** The name of an errno: "EPERM" for 1. */
export function errnoName(errno: number): string {
  try {
    return getSystemErrorName(-errno);
  } catch {
    return `errno ${errno}`;
  }
}

/** The errno of the last call that failed on this thread. */
export function lastErrno(): number {
  return koffi.errno();
}

/** Returns the result; throws if the call failed. */
export function must(result: number, call: string, about?: string): number {
  if (result < 0) throw new SystemFault(call, lastErrno(), about);
  return result;
}

/** Moves the calling thread into the network namespace of `fd`. */
export function setNetworkNamespace(fd: number): void {
  must(c.setns(fd, CLONE_NEWNET), "setns");
}

/** Moves the calling thread into a new, empty network namespace. */
export function unshareNetworkNamespace(): void {
  must(c.unshare(CLONE_NEWNET), "unshare");
}

/** Whether `fd` is a network namespace and not another kind of file. */
export function isNetworkNamespace(fd: number): boolean {
  return c.ioctl(fd, NS_GET_NSTYPE, 0) === CLONE_NEWNET;
}

/** A descriptor of the network namespace in which a socket was made. */
export function namespaceOfSocket(socketFd: number): number {
  const fd = c.ioctl(socketFd, SIOCGSKNS, 0);
  if (fd < 0) throw new SystemFault("ioctl", lastErrno(), "the namespace of a socket");
  return fd;
}

/** A non-blocking socket that no child inherits. */
export function socket(domain: number, type: number, protocol = 0): number {
  return must(c.socket(domain, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol), "socket");
}

export function bindTo(fd: number, address: Uint8Array, about: string): void {
  must(c.bind(fd, address, address.length), "bind", about);
}

/** Starts connecting. EINPROGRESS is normal for a stream, and no error. */
export function connectTo(fd: number, address: Uint8Array, about: string): void {
  const EINPROGRESS = 115;
  if (c.connect(fd, address, address.length) < 0 && lastErrno() !== EINPROGRESS) {
    throw new SystemFault("connect", lastErrno(), about);
  }
}

/** Reverts `connectTo`; the peer of a stream gets a reset. */
export function disconnect(fd: number): void {
  const unspecified = Buffer.alloc(16);
  must(c.connect(fd, unspecified, unspecified.length), "connect", "AF_UNSPEC");
}

export function listenOn(fd: number, backlog: number): void {
  must(c.listen(fd, backlog), "listen");
}

/** The local address, with the port or the netlink port id that the kernel chose. */
export function localAddress(fd: number): Buffer {
  const address = Buffer.alloc(28);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(address.length);
  must(c.getsockname(fd, address, length), "getsockname");
  return address;
}

function setOption(fd: number, name: number, value: number, about: string, level = SOL_SOCKET): void {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value >>> 0);
  must(c.setsockopt(fd, level, name, bytes, bytes.length), "setsockopt", about);
}

/** Has the kernel drop what overflows a netlink socket, instead of reporting an error. */
export function ignoreOverflow(fd: number): void {
  setOption(fd, NETLINK_NO_ENOBUFS, 1, "NETLINK_NO_ENOBUFS", SOL_NETLINK);
}

/**
 * Prevents other sockets from binding to this address: the newest of several such UDP sockets would get the packets.
 */
export function forbidAddressReuse(fd: number): void {
  setOption(fd, SO_REUSEADDR, 0, "SO_REUSEADDR");
}

/** The port id of a netlink socket; undefined for any other descriptor. */
export function netlinkPort(fd: number): number | undefined {
  try {
    const address = localAddress(fd);
    return address.readUInt16LE(0) === AF_NETLINK ? address.readUInt32LE(4) : undefined;
  } catch {
    return undefined;
  }
}

export function setMark(fd: number, mark: number): void {
  setOption(fd, SO_MARK, mark, "SO_MARK");
}

/** Acknowledges at once what a TCP socket has received, and not with the next packet or after 40 ms. */
export function acknowledge(fd: number): void {
  c.setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, ON, ON.length);
}

export function setReceiveBuffer(fd: number, bytes: number): void {
  setOption(fd, SO_RCVBUF, bytes, "SO_RCVBUF");
}

/** Sets the receive buffer beyond net.core.rmem_max, which takes CAP_NET_ADMIN; without it, up to that limit. */
export function forceReceiveBuffer(fd: number, bytes: number): void {
  try {
    setOption(fd, SO_RCVBUFFORCE, bytes, "SO_RCVBUFFORCE");
  } catch {
    setReceiveBuffer(fd, bytes);
  }
}

/** Sets the send buffer beyond net.core.wmem_max, which takes CAP_NET_ADMIN; without it, up to that limit. */
export function forceSendBuffer(fd: number, bytes: number): void {
  try {
    setOption(fd, SO_SNDBUFFORCE, bytes, "SO_SNDBUFFORCE");
  } catch {
    setOption(fd, SO_SNDBUF, bytes, "SO_SNDBUF");
  }
}

/** How many packets were lost because the socket's buffer was full. */
export function lostPackets(fd: number): number {
  return memoryValue(fd, MEMINFO_DROPS);
}

/** The memory of packets that wait in the socket. */
export function waitingBytes(fd: number): number {
  return memoryValue(fd, MEMINFO_RECEIVED);
}

function memoryValue(fd: number, index: number): number {
  const values = optionBytes(fd, SOL_SOCKET, SO_MEMINFO, Buffer.alloc(4 * MEMINFO_VALUES), "SO_MEMINFO");
  return values.length < 4 * MEMINFO_VALUES ? 0 : values.readUInt32LE(4 * index);
}

/** The pid of the peer of a connected unix socket; 0 where this PID namespace does not see it. */
export function peerProcess(fd: number): number {
  const credentials = Buffer.alloc(12);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(credentials.length);
  must(c.getsockopt(fd, SOL_SOCKET, SO_PEERCRED, credentials, length), "getsockopt", "SO_PEERCRED");
  return credentials.readInt32LE(0);
}

/** The value of an option, truncated to what the kernel returns; `bytes` may hold the request. */
export function optionBytes(fd: number, level: number, name: number, bytes: Buffer, about: string): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(bytes.length);
  must(c.getsockopt(fd, level, name, bytes, length), "getsockopt", about);
  return bytes.subarray(0, length.readUInt32LE(0));
}

/** Sends on a connected socket; returns the kernel's result, and never raises SIGPIPE. */
export function send(fd: number, data: Uint8Array): number {
  return c.send(fd, data, data.length, MSG_DONTWAIT | MSG_NOSIGNAL);
}

export function sendTo(fd: number, data: Uint8Array, address: Uint8Array): number {
  return c.sendto(fd, data, data.length, MSG_DONTWAIT | MSG_NOSIGNAL, address, address.length);
}

/** Receives into memory at a fixed address; -1 if there is nothing. */
export function receive(fd: number, address: number, length: number): number {
  return c.recv(fd, address, length, MSG_DONTWAIT);
}

/** The two calls of the data plane, on arrays of mmsghdr at fixed addresses. */
export function receiveMany(fd: number, messages: number, count: number): number {
  return c.recvmmsg(fd, messages, count, MSG_DONTWAIT, 0);
}

export function sendMany(fd: number, messages: number, count: number): number {
  return c.sendmmsg(fd, messages, count, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/** The address of a buffer's first byte. The buffer must outlive every use; its memory never moves. */
export function addressOf(memory: Uint8Array): number {
  return Number(koffi.address(memory));
}

const MAP_FAILED = 2n ** 64n - 1n;

/** Whether this process may have so much more memory by its limits; not whether the machine has it. */
export function mayAllocate(bytes: number): boolean {
  const READ_AND_WRITE = 3;
  const PRIVATE_ANONYMOUS_NORESERVE = 0x4022;
  const memory = c.mmap(null, bytes, READ_AND_WRITE, PRIVATE_ANONYMOUS_NORESERVE, -1, 0);
  if (memory === null || koffi.address(memory) === MAP_FAILED) return false;
  c.munmap(memory, bytes);
  return true;
}

/** Maps the first bytes of a file: what is written there is in the file at once, and outlives the process. */
export function mapShared(fd: number, length: number): ArrayBuffer {
  const READ_AND_WRITE = 3;
  const SHARED = 1;
  const memory = c.mmap(null, length, READ_AND_WRITE, SHARED, fd, 0);
  if (memory === null || koffi.address(memory) === MAP_FAILED) throw new SystemFault("mmap", lastErrno());
  return koffi.view(memory, length);
}

/** Takes the lock of the whole file; returns false if another process has it. */
export function tryLock(fd: number): boolean {
  if (c.flock(fd, LOCK_EXCLUSIVE_NOW) === 0) return true;
  const EWOULDBLOCK = 11;
  if (lastErrno() === EWOULDBLOCK) return false;
  throw new SystemFault("flock", lastErrno());
}

/** Prevents the calling thread, and every program that it executes, from ever having this capability. Takes CAP_SETPCAP. */
export function dropFromBounding(capability: number): void {
  must(c.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0), "prctl", `capability ${capability}`);
}

/** Sets the calling thread's capabilities, one mask each. */
export function setCapabilities(effective: bigint, permitted: bigint, inheritable: bigint): void {
  const header = Buffer.alloc(8);
  header.writeUInt32LE(CAPABILITY_VERSION_3, 0);
  const data = Buffer.alloc(24);
  for (const half of [0, 1]) {
    for (const [index, set] of [effective, permitted, inheritable].entries()) {
      data.writeUInt32LE(Number((set >> BigInt(half * 32)) & 0xffffffffn), half * 12 + index * 4);
    }
  }
  must(c.capset(header, data), "capset");
}

/**
 * Executes another program in this process, with this environment. Returns only by a SystemFault. Node marks all
 * inherited descriptors close-on-exec, so stdin, stdout and stderr are unmarked.
 */
export function execute(path: string, words: readonly string[]): void {
  for (const fd of [0, 1, 2]) c.fcntl(fd, F_SETFD, 0);
  must(c.execv(path, [...words, null]), "execv", path);
}

/** Requests SIGALRM in `seconds`, whatever the event loop does meanwhile; 0 cancels it. */
export function alarm(seconds: number): void {
  c.alarm(seconds);
}

/** The index of an interface in the thread's namespace; 0 if it has none of that name. */
function interfaceIndex(name: string): number {
  return c.ifNameToIndex(name);
}

/** The interface index for a link-local address with a zone, valid only in the namespace it is used in; else 0. */
export function scopeOf(address: string): number {
  const zone = address.split("%", 2)[1];
  if (zone === undefined) return 0;
  return /^\d+$/.test(zone) ? Number(zone) : interfaceIndex(zone);
}

/** Opens a path without opening the file itself; Node has no constant for it. */
export const O_PATH = 0o10000000;

/**
 * Opens a path as a process with the root `root` would. Absolute links inside (`/var/run -> /run`) stay inside, unlike with a path through
 * /proc/PID/root. The flags are those of open(2), without O_CREAT. Does not wait for the holder of a lease. `isOneMount`: a path that leads
 * into a mount below the root is refused.
 */
export function openInRoot(
  root: number,
  path: string,
  flags: number,
  { isOneMount = false }: { readonly isOneMount?: boolean } = {},
): number {
  const how = Buffer.alloc(24);
  // O_PATH can only be combined with flags about path resolution.
  const waiting = (flags & O_PATH) === 0 ? constants.O_NONBLOCK : 0;
  how.writeBigUInt64LE(BigInt(O_CLOEXEC | flags | waiting), 0);
  const oneMount = isOneMount ? RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS : 0;
  how.writeBigUInt64LE(BigInt(RESOLVE_IN_ROOT | oneMount), 16);
  return must(c.openat2(OPENAT2, root, path, how, how.length), "openat2", path);
}

/**
 * Has the kernel allocate a descriptor table of this size at once instead of doubling it whenever it is full. In a
 * process with several threads, each doubling waits until all processors have released the old table.
 */
export function growDescriptorTable(size: number): void {
  const placeholder = openSync("/dev/null", "r");
  const highest = c.fcntl(placeholder, F_DUPFD_CLOEXEC, size - 1);
  closeSync(placeholder);
  if (highest >= 0) closeSync(highest);
}

/** Moves a file to the lowest free descriptor from `least` on, and returns it; if there is none, returns the old one. */
export function moveDescriptor(fd: number, least: number): number {
  const moved = c.fcntl(fd, F_DUPFD_CLOEXEC, least);
  if (moved < 0) return fd;
  closeSync(fd);
  return moved;
}

/** Another descriptor for the same file, which no child inherits. */
export function duplicate(fd: number): number {
  return must(c.fcntl(fd, F_DUPFD_CLOEXEC, 0), "fcntl", "F_DUPFD_CLOEXEC");
}

/** Closes a descriptor that may already be closed, or was never opened (-1), as in the cleanup after a failed setup. */
export function closeQuietly(fd: number): void {
  if (fd < 0) return;
  try {
    closeSync(fd);
  } catch {
    // The descriptor is already closed.
  }
}

/** Offset in a sockaddr_in and a sockaddr_in6. */
const PORT_AT = 2;

/** The port that an internet socket sends from. */
export function localPort(fd: number): number {
  return localAddress(fd).readUInt16BE(PORT_AT);
}

const CLOCK_THREAD_CPUTIME_ID = 3;
/** A struct timespec: two 64-bit numbers, seconds and nanoseconds. */
const time = new BigInt64Array(2);
const clockGetTime = bind<(clock: number, time: BigInt64Array) => number>("int clock_gettime(int clock, void *time)");

/** The CPU time of the calling thread. Before version 23, Node has it for the whole process only. */
export function threadMs(): number {
  must(clockGetTime(CLOCK_THREAD_CPUTIME_ID, time), "clock_gettime");
  return Number(time[0]) * 1_000 + Number(time[1]) / 1_000_000;
}
