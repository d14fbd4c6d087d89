/**
 * InPool: the calls that wait for the lock of nf_tables in a network namespace. Every process with CAP_NET_ADMIN there can hold it, for
 * seconds, and a waiting call cannot be interrupted. Two calls take it: sending a transaction, and closing the last descriptor of a
 * netfilter socket, whatever it was used for. They run in threads of Node's pool, so that the thread that answers queries never waits with
 * them. Opening such a socket and reading with it take no lock. The calls that read tables of iptables-legacy run in the pool, too: for
 * those the kernel has one lock for all namespaces.
 *
 * A call that waits keeps its thread until the lock is free, so the pool has many threads (`POOL_THREADS`, 8 KB each), and some of them are
 * kept for files.
 */
import { close, read } from "node:fs";

import { POOL_VARIABLE } from "../base/limits.ts";
import { SystemFault, bind, lastErrno } from "./libc.ts";

/** The result of a call in the pool, with the error of that thread. */
interface PoolResult {
  readonly result: number;
  readonly errno: number;
}

const c = {
  send: bindInPool<(fd: number, data: Uint8Array, length: number, flags: number) => number>(
    "long send(int fd, const void *data, size_t length, int flags)",
  ),
  getsockopt: bindInPool<(fd: number, level: number, name: number, value: Uint8Array, length: Uint8Array) => number>(
    "int getsockopt(int fd, int level, int name, void *value, void *length)",
  ),
};

const MSG_NOSIGNAL = 0x4000;

/** Node's default. */
const DEFAULT_THREADS = 4;
const KEPT_SHARE = 8;

const threads = Number(process.env[POOL_VARIABLE] ?? DEFAULT_THREADS);
/** How many of these calls may have a thread at the same time. */
export const POOL_CALLS = Math.max(1, threads - Math.ceil(threads / KEPT_SHARE));
let running = 0;
const waiting: (() => void)[] = [];

/** Whether calls wait for a thread: then it is unknown which lock they will need. */
export function isPoolFull(): boolean {
  return waiting.length > 0;
}

async function inTurn<T>(call: () => Promise<T>): Promise<T> {
  if (running < POOL_CALLS) running++;
  else await new Promise<void>((resolve) => waiting.push(resolve));
  try {
    return await call();
  } finally {
    const next = waiting.shift();
    if (next === undefined) running--;
    else next();
  }
}

/** Sends on a connected socket, or on a netlink socket to the kernel. */
export async function sendInPool(fd: number, data: Uint8Array, about: string): Promise<void> {
  const { result, errno } = await inTurn(async () => await c.send(fd, data, data.length, MSG_NOSIGNAL));
  if (result < 0) throw new SystemFault("send", errno, about);
}

/** The value of an option, truncated to what the kernel returns; `bytes` may hold the request. */
export async function optionInPool(
  fd: number,
  level: number,
  name: number,
  bytes: Buffer,
  about: string,
): Promise<Buffer> {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(bytes.length);
  const { result, errno } = await inTurn(async () => await c.getsockopt(fd, level, name, bytes, length));
  if (result < 0) throw new SystemFault("getsockopt", errno, about);
  return bytes.subarray(0, length.readUInt32LE(0));
}

/** Reads the next bytes, as many as there are and fit into `bytes`. */
export async function readInPool(fd: number, bytes: Buffer): Promise<number> {
  return await inTurn(
    async () =>
      await new Promise<number>((resolve, reject) => {
        read(fd, bytes, 0, bytes.length, null, (error, count) => {
          if (error === null) resolve(count);
          else reject(error);
        });
      }),
  );
}

/** Resolves when the kernel has closed the descriptor; from now on its number may be used for another one. */
export async function closeInPool(fd: number): Promise<void> {
  await inTurn(
    async () =>
      await new Promise<void>((resolve) => {
        close(fd, () => resolve());
      }),
  );
}

/** The closes that begin while the `work` of `untilClosed` runs. */
let begun: Promise<void>[] | undefined;

/**
 * Runs `work`, which is synchronous, and then waits until the kernel has closed the netfilter sockets that `work` has closed. Returns their
 * number.
 */
export async function untilClosed<T>(work: () => T): Promise<{ readonly result: T; readonly closed: number }> {
  const outer = begun;
  const mine: Promise<void>[] = (begun = []);
  let result: T;
  try {
    result = work();
  } finally {
    begun = outer;
  }
  await Promise.all(mine);
  return { result, closed: mine.length };
}

/** Closes a netfilter socket. Only `untilClosed` waits for that. */
export function closeNetfilter(fd: number): void {
  const closed = closeInPool(fd);
  begun?.push(closed);
}

/** Binds a C function that is called in a thread of the pool. The memory it gets must not change until it has returned. */
function bindInPool<F extends (...args: never[]) => number>(
  definition: string,
): (...args: Parameters<F>) => Promise<PoolResult> {
  const call = bind<F>(definition) as unknown as {
    async(...args: [...unknown[], (error: Error | null, result: number) => void]): void;
  };
  return async (...args) =>
    await new Promise((resolve, reject) => {
      call.async(...args, (error: Error | null, result: number) => {
        if (error === null) resolve({ result, errno: lastErrno() });
        else reject(error);
      });
    });
}
