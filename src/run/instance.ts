/**
 * Instance: one dns11 per engine. The state directory of an engine holds the lock and the control socket. The lock is the
 * kernel's, so it is free as soon as its holder is gone, however it ended.
 */
import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";

import { controlPath, instanceFolder } from "../api/state-paths.ts";
import { tryLock } from "../kernel/libc.ts";
import { mainThreadState, outerUser } from "../kernel/process.ts";
import { Fault, codeOf } from "../base/lib/fault.ts";
import { sleepSync } from "../base/lib/async.ts";

/** The kernel's limit for the path of a unix socket. */
const SOCKET_PATH_BYTES_MAX = 107;
const O_RDWR_CREAT = 0o102;
const LOCK_MODE = 0o600;
const RETRY_MS = 50;
/** Errors of a file system without room, or for whoever may not take more of it. */
const FULL: ReadonlySet<string> = new Set(["ENOSPC", "EDQUOT"]);
const SPACE =
  "It is full: free space and inodes there (df, df -i), or choose another one with --state-dir. Docker's own resolver answers meanwhile.";
/** The state of a main thread that has ended while another thread of the process has not. */
const ENDED = "Z";

export interface Instance {
  readonly folder: string;
  readonly controlPath: string;
  release(): void;
  /** Removes the folder while no other process can use it. */
  remove(): void;
}

/** Takes the lock; throws a Fault that names the holder if it is taken. `isReplacing`: the holder was to be taken over from, and was not. */
export function takeInstance(stateDir: string, engineId: string, isReplacing = false): Instance {
  const folder = instanceFolder(stateDir, engineId);
  const control = controlPath(folder);
  if (Buffer.byteLength(control) > SOCKET_PATH_BYTES_MAX) {
    throw stateFault(folder, new Error(`"${control}" is too long for a socket path`));
  }
  const lock = openLock(folder);
  if (!(tryLock(lock) || tryLockAgain(lock)) || !isStillThere(lock, folder)) {
    closeSync(lock);
    throw heldBy(readHolder(folder), isReplacing);
  }
  try {
    writeHolder(lock);
  } catch (error) {
    closeSync(lock);
    throw stateFault(folder, error);
  }
  return {
    folder,
    controlPath: control,
    release: () => {
      // The lock file stays: removing it would let two instances lock two files of the same name.
      rmSync(control, { force: true });
      closeSync(lock);
    },
    remove: () => {
      rmSync(folder, { recursive: true, force: true });
      closeSync(lock);
    },
  };
}

/** `dns11 doctor` takes the lock for a moment, to see whether an instance holds it. */
function tryLockAgain(lock: number): boolean {
  sleepSync(RETRY_MS);
  return tryLock(lock);
}

/**
 * The folder may have been removed between opening and locking. The lock is then on a file that no other process opens.
 */
function isStillThere(lock: number, folder: string): boolean {
  return statSync(join(folder, "lock"), { throwIfNoEntry: false })?.ino === fstatSync(lock).ino;
}

function openLock(folder: string): number {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o755 });
    chmodSync(folder, 0o755);
    const lock = openSync(join(folder, "lock"), O_RDWR_CREAT | constants.O_NOFOLLOW, LOCK_MODE);
    // Any process that may read a file may lock it, and keep dns11 from starting.
    fchmodSync(lock, LOCK_MODE);
    return lock;
  } catch (error) {
    throw stateFault(folder, error);
  }
}

interface Holder {
  readonly pid: number;
  readonly since: string;
}

/** Over what is there: a process that takes the lock again needs no space for that, where the disk has become full. */
function writeHolder(lock: number): void {
  const length = writeSync(lock, JSON.stringify({ pid: process.pid, since: new Date().toISOString() }), 0);
  ftruncateSync(lock, length);
}

/** Undefined while it has not written who it is. */
function readHolder(folder: string): Holder | undefined {
  try {
    const { pid, since } = JSON.parse(readFileSync(join(folder, "lock"), "utf8")) as Record<string, unknown>;
    return { pid: Number(pid), since: String(since) };
  } catch {
    return undefined;
  }
}

function heldBy(holder: Holder | undefined, isReplacing: boolean): Fault {
  if (holder !== undefined && mainThreadState(holder.pid)?.letter === ENDED) {
    return new Fault(
      "LOCKED",
      `dns11 was killed (process ${holder.pid}), and one of its threads still waits for a container that locks its rules`,
      {
        remedy:
          "Stop that container, which the log of the killed process names, and start dns11 again. Docker's own resolver answers meanwhile.",
        isFinal: true,
      },
    );
  }
  const who = holder === undefined ? "its pid is not known yet" : `process ${holder.pid}, since ${holder.since}`;
  return new Fault("LOCKED", `Another dns11 already serves this engine: ${who}`, {
    remedy: isReplacing
      ? "A replacement needs a keeper on both sides, and one of them has none. Stop the other one first; Docker's own resolver answers meanwhile."
      : "There can be one instance per engine. Stop the other one first; Docker's own resolver answers meanwhile.",
    isFinal: true,
  });
}

/** No file can be made or written there. */
export function stateFault(folder: string, cause: unknown): Fault {
  // dns11 drops the capability that lets root write to folders of other users.
  const isRootless = outerUser() !== undefined;
  const owner = isRootless
    ? "Set XDG_RUNTIME_DIR to your runtime directory, or choose a folder of yours with --state-dir."
    : "Choose a folder owned by root with --state-dir.";
  const code = codeOf(cause) ?? "";
  const known = FULL.has(code) ? SPACE : owner;
  return new Fault("STATE_DIR", `The state directory "${folder}" cannot be used`, {
    cause,
    remedy: FULL.has(code) || code === "EACCES" ? known : "Choose another one with --state-dir.",
    isFinal: true,
  });
}
