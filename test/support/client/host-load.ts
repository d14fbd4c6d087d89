/**
 * HostLoad: programs of a host with systemd-resolved that query its stub for an outside name and a container's, each
 * 500 times a second, until they are stopped.
 */
import assert from "node:assert/strict";

import { stdoutOf } from "../program/command.ts";
import type { NetworkContext } from "../rig/netns.ts";
import { STUB } from "../servers/resolved.ts";
import { type QueryEnd, QueryLoop, outcomesOf } from "./query-loop.ts";

const RATE = 500;
/** The stub's address and port in /proc/net/udp. */
const STUB_SOCKET = "3500007F:0035";

interface HostLoadEnds {
  readonly outside: readonly QueryEnd[];
  readonly inside: readonly QueryEnd[];
  /** Queries that the stub's socket had no room for: the kernel drops these on a busy machine. */
  readonly dropped: number;
}

export class HostLoad implements AsyncDisposable {
  readonly #host: NetworkContext;
  readonly #loops: readonly [outside: QueryLoop, inside: QueryLoop];

  private constructor(host: NetworkContext, loops: readonly [QueryLoop, QueryLoop]) {
    this.#host = host;
    this.#loops = loops;
  }

  static async start(host: NetworkContext, outside: string, inside: string): Promise<HostLoad> {
    const of = async (name: string): Promise<QueryLoop> =>
      await QueryLoop.start(host, { name, server: STUB, perSecond: RATE });
    return new HostLoad(host, [await of(outside), await of(inside)]);
  }

  async stop(): Promise<HostLoadEnds> {
    const [outside, inside] = await Promise.all([this.#loops[0].stop(), this.#loops[1].stop()]);
    const table = stdoutOf(await this.#host.enter("cat", ["/proc/net/udp"]), "sockets");
    const stubs = table.split("\n").filter((line) => line.includes(STUB_SOCKET));
    const dropped = stubs.reduce((sum, line) => sum + Number(line.trim().split(/\s+/).at(-1)), 0);
    return { outside, inside, dropped };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const loop of this.#loops) await loop[Symbol.asyncDispose]();
  }
}

export function assertNoneFailed(ends: readonly QueryEnd[], dropped: number, sinceMs = 0): void {
  const { NOERROR = 0, timeout = 0, ...others } = outcomesOf(ends, sinceMs);
  assert.ok(NOERROR > 0, "some were answered");
  assert.deepEqual(others, {});
  assert.ok(timeout <= dropped, `${timeout} without a reply, and ${dropped} dropped by the kernel`);
}
