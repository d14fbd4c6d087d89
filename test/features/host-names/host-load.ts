/**
 * HostLoad: programs of a host with systemd-resolved that query its stub for an outside name and a container's, each
 * 200 times a second, until they are stopped.
 */
import assert from "node:assert/strict";

import type { NetworkContext } from "../../support/rig/netns.ts";
import { STUB } from "./resolved.ts";
import { type QueryEnd, QueryLoop, droppedIn, outcomesOf } from "../../support/client/query-loop.ts";

const RATE = 200;

interface HostLoadEnds {
  readonly outside: readonly QueryEnd[];
  readonly inside: readonly QueryEnd[];
  /** Packets that sockets of the host had no room for: the kernel drops these on a busy machine. */
  readonly dropped: number;
}

export class HostLoad implements AsyncDisposable {
  readonly #host: NetworkContext;
  readonly #loops: readonly [outside: QueryLoop, inside: QueryLoop];
  readonly #droppedBefore: number;

  private constructor(host: NetworkContext, loops: readonly [QueryLoop, QueryLoop], droppedBefore: number) {
    this.#host = host;
    this.#loops = loops;
    this.#droppedBefore = droppedBefore;
  }

  static async start(host: NetworkContext, outside: string, inside: string): Promise<HostLoad> {
    const of = async (name: string): Promise<QueryLoop> =>
      await QueryLoop.start(host, { name, server: STUB, perSecond: RATE });
    const droppedBefore = await droppedIn(host);
    return new HostLoad(host, [await of(outside), await of(inside)], droppedBefore);
  }

  async stop(): Promise<HostLoadEnds> {
    const [outside, inside] = await Promise.all([this.#loops[0].stop(), this.#loops[1].stop()]);
    return { outside, inside, dropped: (await droppedIn(this.#host)) - this.#droppedBefore };
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
