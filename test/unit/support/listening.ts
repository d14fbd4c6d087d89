// Owns the parts that a listener is made of in its tests: the real answerer over one small network, an upstream that
// answers when the test says so, and memory that counts how often it is received into and sent from.

import assert from "node:assert/strict";

import { LIMITS } from "../../../src/base/limits.ts";
import { guard } from "../../../src/base/lib/guard.ts";
import { MessageBlock } from "../../../src/kernel/message-block.ts";
import { DEFAULT_BEHAVIOUR } from "../../../src/base/model/behaviour.ts";
import { Answerer } from "../../../src/query/answer.ts";
import { type DeferredQuery, SLOT_BYTES, type Forward, type Respond } from "../../../src/query/ports.ts";
import { Outcome } from "../../../src/query/record/outcome.ts";
import type { Client } from "../../../src/query/client/client.ts";
import { type TcpParts, streamBlock } from "../../../src/query/listen/tcp-connection.ts";
import type { UdpParts } from "../../../src/query/listen/udp.ts";
import { aNetwork, aReplyTo, aView, aClient } from "../../support/scripted/builders.ts";

export const WEB = "172.20.0.2";

export function clientOnOneNetwork(): Client {
  const many = Array.from({ length: 200 }, (_, index) => ({ names: ["many"], ipv4: `10.0.0.${index}` }));
  return aClient(aView([aNetwork({ members: [{ names: ["web"], ipv4: WEB }, ...many] })]));
}

// Whatever is forwarded waits here until it is answered, in any order.
export class HeldUpstream {
  readonly #held: { readonly deferred: DeferredQuery; readonly respond: Respond }[] = [];
  readonly #waiting: { readonly count: number; readonly resolve: () => void }[] = [];

  get length(): number {
    return this.#held.length;
  }

  readonly forward: Forward = (_asker, deferred, _transport, respond) => {
    this.#held.push({ deferred, respond });
    for (const { count, resolve } of this.#waiting) if (this.#held.length >= count) resolve();
  };

  // Until so many have come in all.
  async until(count: number): Promise<void> {
    if (this.#held.length >= count) return;
    await new Promise<void>((resolve) => this.#waiting.push({ count, resolve }));
  }

  queryOf(index: number): Buffer {
    return (this.#held[index] ?? assert.fail(`nothing of number ${index} was forwarded`)).deferred.query;
  }

  // Answers the one that came as number `index`, without records, unless others are given.
  answer(index: number, reply: Buffer = aReplyTo(this.queryOf(index))): void {
    (this.#held[index] ?? assert.fail()).respond(reply, new Outcome());
  }
}

// Which round of the event loop this is: a number that is the same within one.
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
  // Of each call its round, and how many packets it brought.
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

// What the guard is told from now on; there is one in the process, as in the program.
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
    isBatching: true,
    ...parts,
    block,
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
    block: streamBlock(),
    ...parts,
    upstream,
    defects,
  };
}
