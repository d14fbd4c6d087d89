/**
 * Instance: one dns11 per engine. The folder of an engine holds the lock and the control socket; the lock is the kernel's,
 * so it is free the moment its holder is gone, however it went.
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
import { Fault, codeOf } from "../base/lib/fault.ts";
import { sleepSync } from "../base/lib/sleep-sync.ts";

/** The kernel's limit for the path of a unix socket. */
const SOCKET_PATH_BYTES_MAX = 107;
const O_RDWR_CREAT = 0o102;
const LOCK_MODE = 0o600;
const LOOK_AGAIN_MS = 50;

export interface Instance {
  readonly folder: string;
  readonly controlPath: string;
  release(): void;
  /** Removes the folder, while nobody else can be in it. */
  remove(): void;
}

/** Takes the lock, or says who has it. */
export function takeInstance(stateDir: string, engineId: string): Instance {
  const folder = instanceFolder(stateDir, engineId);
  const control = controlPath(folder);
  if (Buffer.byteLength(control) > SOCKET_PATH_BYTES_MAX) {
    throw stateFault(folder, new Error(`"${control}" is too long for the path of a socket`));
  }
  const lock = openLock(folder);
  if (!(tryLock(lock) || tryLockAgain(lock)) || !isStillThere(lock, folder)) {
    const holder = readHolder(folder);
    closeSync(lock);
    throw new Fault("LOCKED", `Another dns11 serves this engine already: ${holder}`, {
      remedy: "One instance per engine. Stop that one first; Docker's own resolver answers in between.",
      isFinal: true,
    });
  }
  ftruncateSync(lock);
  writeSync(lock, JSON.stringify({ pid: process.pid, since: new Date().toISOString() }), 0);
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

/** A doctor takes the lock for a moment, to see whether somebody has it. */
function tryLockAgain(lock: number): boolean {
  sleepSync(LOOK_AGAIN_MS);
  return tryLock(lock);
}

/** Somebody may have removed the folder between our opening and our locking; then we hold a lock that nobody looks at. */
function isStillThere(lock: number, folder: string): boolean {
  return statSync(join(folder, "lock"), { throwIfNoEntry: false })?.ino === fstatSync(lock).ino;
}

function openLock(folder: string): number {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o755 });
    chmodSync(folder, 0o755);
    const lock = openSync(join(folder, "lock"), O_RDWR_CREAT | constants.O_NOFOLLOW, LOCK_MODE);
    // Whoever may read a file may lock it, and keep dns11 from starting.
    fchmodSync(lock, LOCK_MODE);
    return lock;
  } catch (error) {
    throw stateFault(folder, error);
  }
}

function readHolder(folder: string): string {
  try {
    const { pid, since } = JSON.parse(readFileSync(join(folder, "lock"), "utf8")) as Record<string, unknown>;
    return `process ${String(pid)}, since ${String(since)}`;
  } catch {
    return "its process has not written its number yet";
  }
}

function stateFault(folder: string, cause: unknown): Fault {
  // dns11 gives up what lets root write to everybody's folders.
  const owner = "Name a folder of its own user's (root's) with --state-dir, or start it with --capabilities keep.";
  return new Fault("STATE_DIR", `The state folder "${folder}" cannot be used`, {
    cause,
    remedy: codeOf(cause) === "EACCES" ? owner : "Name another one with --state-dir.",
    isFinal: true,
  });
}
