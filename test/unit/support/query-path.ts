// The whole query path without client sockets: a query is answered from the cache or forwarded adaptively to servers on
// loopback, and the reply is returned.

import { LIMITS } from "../../../src/base/limits.ts";
import { MessageBlock } from "../../../src/kernel/message-block.ts";
import { PacketBatch } from "../../../src/kernel/packet-batch.ts";
import { RandomIds } from "../../../src/base/lib/random-ids.ts";
import { DEFAULT_BEHAVIOUR, type Behaviour } from "../../../src/base/model/behaviour.ts";
import {
  FORWARD_DEFAULTS,
  type ForwardPolicy,
  CACHE_DEFAULTS,
  type CachePolicy,
  LOCAL_ONLY_DEFAULTS,
} from "../../../src/base/model/upstream-policy.ts";
import type { Server } from "../../../src/base/model/view.ts";
import { Answerer } from "../../../src/query/answer.ts";
import { DEFERRED, SLOT_BYTES, type Transport } from "../../../src/query/ports.ts";
import type { Client } from "../../../src/query/client/client.ts";
import { CacheReader } from "../../../src/query/cache/cache-reader.ts";
import { ReplyCache } from "../../../src/query/cache/reply-cache.ts";
import { AdaptiveForwarder } from "../../../src/query/forward/adaptive.ts";
import type { QueryHistory } from "../../../src/query/history/query-history.ts";
import { AnswerEra } from "../../../src/query/query-policy.ts";
import type { Meter } from "../../../src/query/record/meter.ts";
import { LoopGuard } from "../../../src/query/upstream/loop-guard.ts";
import { ReplyBudget } from "../../../src/query/upstream/udp-socket.ts";
import type { Trace } from "../../../src/query/trace.ts";
import { NameserverPool } from "../../../src/query/upstream/nameserver-pool.ts";
import { aView, aClient, upstreams } from "../../support/scripted/builders.ts";
import { dialHere } from "./loopback.ts";
import { type Reply, readReply } from "./reply.ts";

export type QueryPathParts = {
  readonly behaviour?: Partial<Behaviour>;
  readonly forward?: Partial<ForwardPolicy>;
  readonly cache?: Partial<CachePolicy>;
  // Stands still by default: a slow reply on a busy machine makes no other server's.
  readonly now?: () => number;
  readonly queriesMax?: number;
  readonly meter?: Meter;
};

/** The whole default would be filled with zeros for each test. */
const CACHE_BYTES = 1024 * 1024;

// For tests of what happens when no reply comes.
export const realNow = (): number => performance.now();

export class QueryPath {
  readonly cache: ReplyCache;
  readonly pool: NameserverPool;
  readonly forwarder: AdaptiveForwarder;
  readonly guard: LoopGuard;
  readonly health: string[] = [];
  readonly failures: string[] = [];
  readonly #answerer: Answerer;
  readonly #block = Buffer.alloc(SLOT_BYTES);

  constructor(parts: QueryPathParts = {}) {
    const behaviour = { ...DEFAULT_BEHAVIOUR, ...parts.behaviour };
    const policy = {
      forward: { ...FORWARD_DEFAULTS, ...parts.forward },
      cache: { ...CACHE_DEFAULTS, bytesMax: CACHE_BYTES, ...parts.cache },
      localOnly: LOCAL_ONLY_DEFAULTS,
    };
    const { now = () => 0, queriesMax = LIMITS.forwardQueriesShared } = parts;
    const ids = new RandomIds();
    const era = new AnswerEra();
    const block = new MessageBlock(8, SLOT_BYTES);
    this.pool = new NameserverPool(
      {
        block,
        batch: new PacketBatch(),
        budget: new ReplyBudget(LIMITS.upstreamBatch),
        ids,
        now,
        socketsMax: 64,
        pools: new Set(),
        sockets: { open: 0 },
      },
      (_, isUp, reason) => this.health.push(`${isUp ? "up" : "down"}: ${reason}`),
    );
    this.cache = new ReplyCache(policy.cache.bytesMax);
    const { cache, pool } = this;
    const memory = new CacheReader({
      cache,
      pool,
      behaviour,
      policy: policy.cache,
      now,
      onRefresh: (client, lane, entry) => this.forwarder.refresh(client, lane, entry),
    });
    const onLoop: ConstructorParameters<typeof LoopGuard>[1] = (client, loop) =>
      this.forwarder.excludeLooping(client, loop);
    this.guard = new LoopGuard(now, onLoop, (client, nameserver) => pool.streamsTo(client, nameserver));
    this.forwarder = new AdaptiveForwarder({
      behaviour,
      policy,
      pool,
      cache,
      reader: memory,
      loopGuard: this.guard,
      ids,
      now,
      onFailure: (reason) => this.failures.push(reason),
      queriesMax,
      meter: parts.meter,
      era,
    });
    this.#answerer = new Answerer(behaviour, {
      loopGuard: this.guard,
      seed: 1,
      era,
      ...(behaviour.caches && { cache: memory }),
    });
  }

  // Runs one query of a client; returns the reply as it is sent. With a trace it is explained.
  async raw(client: Client, query: Buffer, transport: Transport = "udp", trace?: Trace): Promise<Buffer> {
    client.history.tick();
    query.copy(this.#block);
    const isStream = transport === "tcp";
    const result =
      trace === undefined
        ? this.#answerer.answer(client, this.#block, 0, query.length, isStream)
        : this.#answerer.explain(client, this.#block, query.length, isStream, trace);
    if (typeof result === "number" && result !== DEFERRED) return Buffer.from(this.#block.subarray(0, result));
    const deferred = typeof result === "number" ? this.#answerer.takeDeferred(this.#block) : result;
    return await new Promise((resolve) => {
      let hasReturned = false;
      this.forwarder.forward(client, deferred, transport, (reply) => {
        if (!hasReturned) throw new Error("called back before the call returned");
        resolve(Buffer.from(reply));
      });
      hasReturned = true;
    });
  }

  async query(client: Client, query: Buffer, transport: Transport = "udp"): Promise<Reply> {
    return readReply(await this.raw(client, query, transport));
  }
}

// A client whose queries are all forwarded to these servers.
export function clientOf(...servers: readonly Server[]): Client {
  return aClient(aView([], upstreams({ servers })), dialHere);
}

// The same, with its queries recorded in this history.
export function clientWith(history: QueryHistory, ...servers: readonly Server[]): Client {
  return aClient(aView([], upstreams({ servers })), dialHere, history);
}
