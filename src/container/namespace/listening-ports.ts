/**
 * ListeningPorts: the TCP ports on which programs in a network namespace listen, from the tables of the kernel.
 */
import { closeSync, openSync, readSync } from "node:fs";

export interface ListeningPort {
  readonly port: number;
  readonly isLoopback: boolean;
}

const LISTEN = "0A";
const LOOPBACK_SIX = "00000000000000000000000001000000";
/** Of 127.0.0.0/8, in the byte order of the machine, which is the only one that dns11 runs on. */
const LOOPBACK_FOUR = /^(?:0{16}FFFF0000)?[0-9A-F]{6}7F$/;
/** Those that listen come first, and a container may have any number of connections. */
const TABLE_BYTES_MAX = 64 * 1024;

/** Of the namespace of a process; undefined if it has ended. */
export function listeningPorts(pid: number): ListeningPort[] | undefined {
  try {
    return ["tcp", "tcp6"].flatMap((table) => portsIn(beginningOf(`/proc/${pid}/net/${table}`)));
  } catch {
    return undefined;
  }
}

/** The kernel gives a page at a time. */
function beginningOf(path: string): string {
  const fd = openSync(path, "r");
  try {
    const bytes = Buffer.alloc(TABLE_BYTES_MAX);
    let length = 0;
    for (let read = -1; read !== 0 && length < bytes.length; length += read)
      read = readSync(fd, bytes, length, bytes.length - length, null);
    return bytes.toString("latin1", 0, length);
  } finally {
    closeSync(fd);
  }
}

/** The text of `/proc/net/tcp` or `tcp6`. */
export function portsIn(table: string): ListeningPort[] {
  const found: ListeningPort[] = [];
  for (const line of table.split("\n").slice(1)) {
    const [, local = "", , state] = line.trim().split(/\s+/);
    const [address = "", port = ""] = local.split(":");
    if (state !== LISTEN) continue;
    found.push({
      port: Number.parseInt(port, 16),
      isLoopback: address === LOOPBACK_SIX || LOOPBACK_FOUR.test(address),
    });
  }
  return found;
}
