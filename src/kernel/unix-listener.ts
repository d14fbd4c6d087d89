/**
 * UnixListener: a unix socket at a path that nobody can connect to before its mode is right. The kernel makes the file with the mode
 * that the socket has by then, less the umask, and refuses every connection until the socket listens. So neither a generous
 * umask nor a moment between two calls lets anybody in, and the umask, which all threads share, stays as it is.
 */
import { chmodSync, chownSync, fchmodSync } from "node:fs";

import { codeOf } from "../base/lib/fault.ts";
import { AF_UNIX, bindTo, closeQuietly, socket } from "./libc.ts";
import { unixAddress } from "./unix-address.ts";

const OWN_MODE = 0o600;
const SHARED_MODE = 0o660;
const ROOT = 0;

/**
 * Binds a socket to an unused path; the caller has it listen. Only the owner may connect, and with `sharedWith` a group, too: its
 * id, or "own" for that of the process.
 */
export function bindUnix(path: string, type: number, sharedWith?: number | "own"): number {
  const fd = socket(AF_UNIX, type);
  try {
    fchmodSync(fd, OWN_MODE);
    bindTo(fd, unixAddress(path), path);
    if (sharedWith !== undefined) share(path, sharedWith);
    return fd;
  } catch (error) {
    closeQuietly(fd);
    throw error;
  }
}

/** The group comes before the mode, which would be for another one. Where it cannot be given away, only root's group has access. */
function share(path: string, group: number | "own"): void {
  try {
    if (group !== "own") chownSync(path, ROOT, group);
  } catch (error) {
    if (codeOf(error) !== "EPERM") throw error;
  }
  chmodSync(path, SHARED_MODE);
}
