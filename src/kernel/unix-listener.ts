/**
 * UnixListener: a unix socket at a path that nobody can connect to before its mode is right. The kernel makes the file with the mode that
 * the socket has by then, less the umask, and refuses every connection until the socket listens. So neither a generous umask nor a moment
 * between two calls lets anybody in, and the umask, which all threads share, stays as it is.
 */
import { chmodSync, chownSync, fchmodSync } from "node:fs";
import { codeOf, Fault } from "../base/lib/fault.ts";
import { AF_UNIX, bindTo, closeQuietly, socket } from "./libc.ts";

const OWN_MODE = 0o600;
const SHARED_MODE = 0o660;
const ROOT = 0;

/**
 * Binds a socket to an unused path; the caller then listens on it. Only the owner may connect, and with `sharedWith` a group, too: its id,
 * or "own" for the group of the process.
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

/**
 * Changes the group before the mode, which would otherwise apply to another group. If the group cannot be changed, only root's group has
 * access.
 */
function share(path: string, group: number | "own"): void {
  try {
    if (group !== "own") chownSync(path, ROOT, group);
  } catch (error) {
    if (codeOf(error) !== "EPERM") throw error;
  }
  chmodSync(path, SHARED_MODE);
}

const FAMILY_BYTES = 2;
/** The kernel's limit. */
const PATH_BYTES_MAX = 108;

/** Encodes a path, or an abstract name that begins with "@". Throws if it is neither. */
export function unixAddress(name: string): Buffer {
  const bytes = Buffer.from(name);
  const isAbstract = name.startsWith("@");
  if ((!isAbstract && !name.startsWith("/")) || bytes.length < 2 || bytes.length >= PATH_BYTES_MAX) {
    throw new Fault("BAD_SOCKET", `Invalid socket name "${name}"`, {
      remedy: "Use an absolute path of less than 108 bytes, or an abstract name such as @name.",
    });
  }
  // A path ends with a zero; an abstract name with its last byte.
  const address = Buffer.alloc(FAMILY_BYTES + bytes.length + (isAbstract ? 0 : 1));
  address.writeUInt16LE(AF_UNIX, 0);
  bytes.copy(address, FAMILY_BYTES);
  if (isAbstract) address[FAMILY_BYTES] = 0;
  return address;
}
