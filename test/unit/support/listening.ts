// Parts of a listener in its tests: the real answerer over one small network, an upstream that answers on demand, and a
// block that counts receives and sends.

import assert from "node:assert/strict";

import { LIMITS } from "../../../src/base/limits.ts";
import { guard } from "../../../src/base/lib/guard.ts";
import { MessageBlock } from "../../../src/kernel/message-block.ts";
import { PacketBatch } from "../../../src/kernel/packet-batch.ts";
import { DEFAULT_BEHAVIOUR } from "../../../src/base/model/behaviour.ts";
import { Answerer } from "../../../src/query/answer.ts";
import { type DeferredQuery, SLOT_BYTES, type Forward, type Respond } from "../../../src/query/ports.ts";
import { Outcome } from "../../../src/query/record/outcome.ts";
import type { Client } from "../../../src/query/client/client.ts";
import { type TcpParts, streamBlock } from "../../../src/query/listen/tcp-connection.ts";
import { type UdpParts, TimeSlice } from "../../../src/query/listen/udp.ts";
import { aNetwork, aReplyTo, aView, aClient } from "../../support/scripted/builders.ts";

export const WEB = "172.20.0.2";

export function clientOnOneNetwork(): Client {
  const many = Array.from({ length: 200 }, (_, index) => ({ names: ["many"], ipv4: `10.0.0.${index}` }));
  return aClient(aView([aNetwork({ members: [{ names: ["web"], ipv4: WEB }, ...many] })]));
}

// Forwarded queries wait here until the test answers them, in any order.
export class HeldUpstream {
  readonly #held: { readonly deferred: DeferredQuery; readonly respond: Respond }[] = [];
  readonly #waiting: { readonly count: number; readonly resolve: () => void }[] = [];

  get length(): number {
    return this.#held.length;
  }

  readonly forward: Forward = (_client, deferred, _transport, respond) => {
    this.#held.push({ deferred, respond });
    for (const { count, resolve } of this.#waiting) if (this.#held.length >= count) resolve();
  };

  // Waits for this many forwarded queries in all.
  async until(count: number): Promise<void> {
    if (this.#held.length >= count) return;
    await new Promise<void>((resolve) => this.#waiting.push({ count, resolve }));
  }

  queryOf(index: number): Buffer {
    return (this.#held[index] ?? assert.fail(`query ${index} was not forwarded`)).deferred.query;
  }

  // Answers query number `index`, by default without records.
  answer(index: number, reply: Buffer = aReplyTo(this.queryOf(index))): void {
    (this.#held[index] ?? assert.fail()).respond(reply, new Outcome());
  }
}

// The current turn of the event loop, as a number.
class Round {
  #number = 0;
  #isArmed = false;

  get now(): number {
    if (!this.#isArmed) {
      this.#isArmed = true;
      setImmediate(() => {
        this.#isArmed = false;
        this.#number++;
      });
    }
    return this.#number;
  }
}

class CountingBlock extends MessageBlock {
  // Turn and packet count of each call.
  readonly receives: { readonly round: number; readonly count: number }[] = [];
  readonly flushes: number[] = [];
  readonly #round = new Round();

  constructor() {
    super(LIMITS.udpBatch, SLOT_BYTES);
  }

  override receive(fd: number, first: number, bytesMax: number, most?: number): number {
    const count = super.receive(fd, first, bytesMax, most);
    this.receives.push({ round: this.#round.now, count });
    return count;
  }

  override flush(fd: number): number {
    this.flushes.push(this.#round.now);
    return super.flush(fd);
  }
}

// Errors reported to the guard from now on; there is one guard in the process, as in the program.
function defectsFromNow(): unknown[] {
  const defects: unknown[] = [];
  guard.install((error) => defects.push(error));
  return defects;
}

export type UdpTestParts = UdpParts & {
  readonly block: CountingBlock;
  readonly upstream: HeldUpstream;
  readonly defects: unknown[];
};

export function udpParts(parts: Partial<UdpParts> = {}): UdpTestParts {
  const block = new CountingBlock();
  const upstream = new HeldUpstream();
  const defects = defectsFromNow();
  return {
    answerer: new Answerer(DEFAULT_BEHAVIOUR, { seed: 1 }),
    forward: upstream.forward,
    queryBytesMax: LIMITS.udpQueryBytes,
    slice: new TimeSlice(Infinity),
    ...parts,
    block,
    batch: new PacketBatch(),
    upstream,
    defects,
  };
}

export type TcpTestParts = TcpParts & { readonly upstream: HeldUpstream; readonly defects: unknown[] };

export function tcpParts(parts: Partial<TcpParts> = {}): TcpTestParts {
  const upstream = new HeldUpstream();
  const defects = defectsFromNow();
  return {
    answerer: new Answerer(DEFAULT_BEHAVIOUR, { seed: 1 }),
    forward: upstream.forward,
    pipelinedMax: LIMITS.tcpPipelined,
    queriesMax: Number.POSITIVE_INFINITY,
    block: streamBlock(),
    ...parts,
    upstream,
    defects,
  };
}
