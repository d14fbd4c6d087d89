// Servers without sockets: what each does with a query is a function of its name and the time, and its replies come by a clock
// that the test controls. So that thousands of queries take no time, and every run is the same.

import { setImmediate as nextTurn } from "node:timers/promises";

import type { Server } from "../../../src/base/model/view.ts";
import type { Client } from "../../../src/query/client/client.ts";
import type { Trace } from "../../../src/query/trace.ts";
import type { Exchange } from "../../../src/query/upstream/udp-socket.ts";
import { TYPE, aName, aPointer, aQuery, aRecord, aReplyTo } from "../../support/scripted/builders.ts";
import type { Clock } from "./clock.ts";
import { QueryPath, type QueryPathParts, clientOf } from "./query-path.ts";
import { type Reply, readName, readReply } from "./reply.ts";

/** An address or the number of a response code, after so many milliseconds; undefined: silence. */
export type Script = (
  name: string,
  nowMs: number,
) => { readonly says: string | number; readonly afterMs: number } | undefined;

type Said = { readonly says: string | number; readonly ttl: number | undefined };

type AskParts = { readonly by?: number; readonly type?: number; readonly trace?: Trace };

const TTL_SECONDS = 3_600;

export class SimulatedServers {
  readonly path: QueryPath;
  readonly clients: readonly Client[];
  /** The names that each server was asked for, in their order. */
  readonly asked: string[][];
  readonly #clock: Clock;

  constructor(clock: Clock, scripts: readonly Script[], parts: QueryPathParts = {}, clients = 1) {
    const servers = scripts.map((_, index): Server => ({ from: "host", address: `10.0.0.${index + 1}`, port: 53 }));
    this.#clock = clock;
    this.path = new QueryPath({ now: clock.now, ...parts, cache: { staleSecondsMax: 0, ...parts.cache } });
    this.clients = Array.from({ length: clients }, () => clientOf(...servers));
    this.asked = scripts.map(() => []);
    for (const client of this.clients) {
      const [route] = client.view.upstreams.routes;
      if (route === undefined) throw new Error("no route");
      for (const [index, nameserver] of this.path.pool.serverListFor(client, route).nameservers.entries()) {
        const send = (exchange: Exchange): void => this.#play(exchange, index, scripts[index] as Script);
        Object.defineProperty(nameserver, "sockets", { value: { draw: () => ({ send }) }, configurable: true });
      }
    }
  }

  /** What a client gets: an address, or the number of a response code; and the seconds until it is to be asked again. */
  async ask(name: string, { by = 0, type = TYPE.A, trace }: AskParts = {}): Promise<Said> {
    const client = this.clients[by];
    if (client === undefined) throw new Error("no such client");
    const reply = readReply(await this.path.raw(client, aQuery({ name, type }), "udp", trace));
    return { says: saidIn(reply), ttl: (reply.answers[0] ?? reply.authorities[0])?.ttl };
  }

  /** Lets so much time pass, with what the program defers. */
  async pass(ms: number): Promise<void> {
    await nextTurn();
    const untilMs = this.#clock.now() + ms;
    do {
      this.#clock.advance(Math.min(Math.max(0, this.#clock.untilNextMs), untilMs - this.#clock.now()));
      await nextTurn();
    } while (this.#clock.now() < untilMs);
  }

  /** The same until the promise is kept. */
  async until<T>(promise: Promise<T>): Promise<T> {
    let isDone = false;
    const ended = promise.finally(() => (isDone = true));
    await nextTurn();
    while (!isDone) {
      if (this.#clock.pending === 0) throw new Error("it waits for nothing");
      await this.pass(this.#clock.untilNextMs);
    }
    return await ended;
  }

  #play(exchange: Exchange, index: number, script: Script): void {
    const query = Buffer.from(exchange.message);
    const name = readName(query, 12).text;
    this.asked[index]?.push(name);
    const reply = script(name, this.#clock.now());
    if (reply === undefined) return;
    setTimeout(() => exchange.onReply(replyWith(query, reply.says)), reply.afterMs);
  }
}

function replyWith(query: Buffer, says: string | number): Buffer {
  if (typeof says === "string") {
    const data = Buffer.from(says.split(".").map(Number));
    return aReplyTo(query, 0, [aRecord({ owner: aPointer(12), type: TYPE.A, ttl: TTL_SECONDS, data })]);
  }
  const reply = aReplyTo(query, says);
  if (says !== 3) return reply;
  const numbers = Buffer.alloc(20);
  numbers.writeUInt32BE(TTL_SECONDS, 16);
  const data = Buffer.concat([aName("ns"), aName("admin"), numbers]);
  reply.writeUInt16BE(1, 8);
  return Buffer.concat([reply, aRecord({ owner: aName("."), type: TYPE.SOA, ttl: TTL_SECONDS, data })]);
}

function saidIn({ rcode, answers }: Reply): string | number {
  const [first] = answers;
  return first === undefined ? rcode : [...first.data].join(".");
}
