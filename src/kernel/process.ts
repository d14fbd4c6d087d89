/**
 * Another process, by a descriptor, which unlike a pid cannot be reused for a different process.
 */
import { closeSync, openSync, readSync, constants, readlinkSync, statSync } from "node:fs";
import { bind, lastErrno } from "./libc.ts";
import { LIMITS } from "../base/limits.ts";
import { Fault, codeOf } from "../base/lib/fault.ts";

const c = {
  pidfdOpen: bind<(call: number, pid: number, flags: number) => number>("long syscall(long call, int pid, int flags)"),
  pidfdSendSignal: bind<(call: number, fd: number, signal: number, info: null, flags: number) => number>(
    "long syscall(long call, int fd, int signal, void *info, int flags)",
  ),
};

const PIDFD_SEND_SIGNAL = 424;
const PIDFD_OPEN = 434;
const SIGKILL = 9;
const ESRCH = 3;

/** A descriptor that becomes readable once the process has exited; undefined if there is no such process, or no pidfd in this kernel. */
export function openProcess(pid: number): number | undefined {
  const fd = pid > 0 ? c.pidfdOpen(PIDFD_OPEN, pid, 0) : -1;
  return fd < 0 ? undefined : fd;
}

/** Returns whether it was killed or had already exited. */
export function killProcess(fd: number): boolean {
  return c.pidfdSendSignal(PIDFD_SEND_SIGNAL, fd, SIGKILL, null, 0) === 0 || lastErrno() === ESRCH;
}

/** The state of the main thread of a process. */
export interface ThreadState {
  /** The kernel's letter: R runs or waits for a processor, S and D sleep, T is stopped. */
  readonly letter: string;
  /** A debugger or strace is attached. */
  readonly isTraced: boolean;
  /** CPU time since its start; undefined if the kernel does not count it. */
  readonly ranMs: number | undefined;
}

const NS_PER_MS = 1e6;
/** Both files are shorter. Reused, because the state is read ten times a second. */
const text = Buffer.alloc(4096);

export function mainThreadState(pid: number): ThreadState | undefined {
  const status = textOf(`/proc/${pid}/status`);
  const letter = /^State:\s+(\S)/m.exec(status)?.[1];
  if (letter === undefined) return undefined;
  const isTraced = /^TracerPid:\s+[1-9]/m.test(status);
  const ran = /^\d+/.exec(textOf(`/proc/${pid}/task/${pid}/schedstat`))?.[0];
  return { letter, isTraced, ranMs: ran === undefined ? undefined : Number(ran) / NS_PER_MS };
}

/** Empty if the kernel has no such file. */
function textOf(path: string): string {
  let fd = -1;
  try {
    fd = openSync(path, "r");
    return text.toString("latin1", 0, readSync(fd, text, 0, text.length, 0));
  } catch {
    return "";
  } finally {
    if (fd >= 0) closeSync(fd);
  }
}

const CHUNK_BYTES = 64 * 1024;
/** Shared, because every read is one synchronous call. */
const chunk = Buffer.allocUnsafeSlow(CHUNK_BYTES);

/**
 * The text of a file under /proc. A kernel built without a feature has no file for it, and a process that has ended, perhaps since
 * the file was opened, has none to read: both are answers and no failures. Some files grow with what a container does, so the size is
 * limited: throws if it is longer.
 */
export function procText(path: string): string | undefined {
  const fd = opened(path);
  if (fd === undefined) return undefined;
  try {
    const chunks: Buffer[] = [];
    let length = 0;
    for (;;) {
      const count = readSync(fd, chunk, 0, CHUNK_BYTES, null);
      if (count === 0) return Buffer.concat(chunks).toString("utf8");
      chunks.push(Buffer.from(chunk.subarray(0, count)));
      length += count;
      if (length > LIMITS.procBytes) throw new Fault("TOO_LONG", `"${path}" is longer than ${LIMITS.procBytes} bytes`);
    }
  } catch (error) {
    if (codeOf(error) === "ESRCH") return undefined;
    throw error;
  } finally {
    closeSync(fd);
  }
}

function opened(path: string): number | undefined {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    const code = codeOf(error);
    if (code === "ENOENT" || code === "ESRCH") return undefined;
    throw error;
  }
}

/**
 * The user namespace of a process, which says whose rights this process has. In the machine's own, root is root; in that of a rootless
 * engine, root is the user who made it, and has rights over that engine's namespaces only. Undefined if the process has exited, or belongs
 * to another user.
 */
export function userNamespaceOf(pid: number | "self"): string | undefined {
  return orUndefined(() => readlinkSync(`/proc/${pid}/ns/user`));
}

/** Whether a process is in our network namespace; false if it has exited, or belongs to another user. */
export function sharesNetwork(pid: number): boolean {
  const [own, its] = (["self", pid] as const).map((each) => orUndefined(() => readlinkSync(`/proc/${each}/ns/net`)));
  return own !== undefined && own === its;
}

/** The folder in which the rootlesskit above a process keeps its state, as the process sees it; undefined without one. */
export function rootlesskitFolder(pid: number): string | undefined {
  return orUndefined(
    () => /(?:^|\0)ROOTLESSKIT_STATE_DIR=(\/[^\0]+)/.exec(procText(`/proc/${pid}/environ`) ?? "")?.[1],
  );
}

/** The user of a process, as a number of our user namespace; undefined if it has exited. */
export function userOf(pid: number): number | undefined {
  return orUndefined(() => statSync(`/proc/${pid}`).uid);
}

/** The user outside who is root here; undefined in the machine's own user namespace. */
export function outerUser(): number | undefined {
  return rootIn(procText("/proc/self/uid_map") ?? "");
}

/** The user outside whom a map makes root; undefined for the map of the machine's own user namespace. */
export function rootIn(uidMap: string): number | undefined {
  const user = /^\s*0\s+(\d+)\s/m.exec(uidMap)?.[1];
  return user === undefined || user === "0" ? undefined : Number(user);
}

function orUndefined<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
