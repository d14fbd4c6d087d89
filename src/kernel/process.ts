/**
 * Another process, by a descriptor, which unlike a pid cannot be reused for a different process.
 */
import { closeSync, openSync, readSync } from "node:fs";

import { bind, lastErrno } from "./libc.ts";

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

/** Readable once the process has exited; undefined where there is no such process, or no pidfd in this kernel. */
export function openProcess(pid: number): number | undefined {
  const fd = pid > 0 ? c.pidfdOpen(PIDFD_OPEN, pid, 0) : -1;
  return fd < 0 ? undefined : fd;
}

/** Returns whether it was killed or had already exited. */
export function killProcess(fd: number): boolean {
  return c.pidfdSendSignal(PIDFD_SEND_SIGNAL, fd, SIGKILL, null, 0) === 0 || lastErrno() === ESRCH;
}

/** The state of the main thread of a process; undefined where it is not visible. */
export interface ThreadState {
  /** The kernel's letter: R runs or waits for a processor, S and D sleep, T is stopped. */
  readonly letter: string;
  /** A debugger or strace is attached. */
  readonly isTraced: boolean;
  /** CPU time since its start; undefined where the kernel does not count it. */
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

/** Empty where the kernel has no such file. */
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
