// The attacker's sockets: very many, and some that try to take the ports of dns11.

import { existsSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

import koffi from "koffi";

const AF_INET = 2;
const SOCK_STREAM = 1;
const SOCK_DGRAM = 2;
const SOL_SOCKET = 1;
const SO_REUSEADDR = 2;
const SO_REUSEPORT = 15;
const ADDRESS_BYTES = 16;
const PORT = 5353;
/** A file in the container; the test creates it to end the attack. */
export const ENOUGH = "/tmp/enough";
const LOOK_EVERY_MS = 100;

const libc = koffi.load(null);
const openSocket = libc.func("int socket(int domain, int type, int protocol)") as (...args: number[]) => number;
const bindSocket = libc.func("int bind(int fd, void *address, int length)") as (
  fd: number,
  address: Buffer,
  length: number,
) => number;
const listenAt = libc.func("int listen(int fd, int backlog)") as (fd: number, backlog: number) => number;
const setOption = libc.func("int setsockopt(int fd, int level, int name, void *value, int length)") as (
  fd: number,
  level: number,
  name: number,
  value: Buffer,
  length: number,
) => number;

function addressOf(host: readonly number[], port: number): Buffer {
  const bytes = Buffer.alloc(ADDRESS_BYTES);
  bytes.writeUInt16LE(AF_INET, 0);
  bytes.writeUInt16BE(port, 2);
  bytes.set(host, 4);
  return bytes;
}

function bound(type: number, host: readonly number[], port: number, options: readonly number[] = []): number {
  const fd = openSocket(AF_INET, type, 0);
  if (fd < 0) return -1;
  const one = Buffer.from(Int32Array.of(1).buffer);
  for (const option of options) setOption(fd, SOL_SOCKET, option, one, one.length);
  return bindSocket(fd, addressOf(host, port), ADDRESS_BYTES) === 0 ? fd : -1;
}

// Half of them UDP and half TCP, each on its own address, kept open until the test ends the attack. One process may not
// open as many as the test needs, so each opens a part.
export async function manySockets(count: number, part: number): Promise<object> {
  let made = 0;
  for (let index = 0; index < count / 2; index++) {
    const host = [127, 1 + part, (index >> 8) & 0xff, index & 0xff];
    if (bound(SOCK_DGRAM, host, PORT) >= 0) made++;
    const fd = bound(SOCK_STREAM, host, PORT);
    if (fd >= 0 && listenAt(fd, 1) === 0) made++;
  }
  while (!existsSync(ENOUGH)) await pause(LOOK_EVERY_MS);
  return { made };
}

// How many combinations of address and options succeed in taking the port.
export async function grabbedPorts(port: number): Promise<object> {
  const ways = [[], [SO_REUSEADDR], [SO_REUSEPORT], [SO_REUSEADDR, SO_REUSEPORT]];
  const hosts = [
    [127, 0, 0, 11],
    [0, 0, 0, 0],
  ];
  const results = [SOCK_DGRAM, SOCK_STREAM].map(
    (type) =>
      hosts
        .flatMap((host) =>
          ways.map((options) => {
            const fd = bound(type, host, port, options);
            return fd >= 0 && (type === SOCK_DGRAM || listenAt(fd, 1) === 0);
          }),
        )
        .filter(Boolean).length,
  );
  return await Promise.resolve({ udp: results[0], tcp: results[1] });
}
