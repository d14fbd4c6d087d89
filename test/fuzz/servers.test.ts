// Proves that no server can break the forwarder: real sockets on loopback and servers that send mutated replies over
// UDP and TCP, some of them many, followed by a good one or none. Every query is answered, with nothing that does not
// follow from it.

import assert from "node:assert/strict";
import { after, test } from "node:test";

import { guard } from "../../src/base/lib/guard.ts";
import { withLength } from "../../src/base/lib/stream-reader.ts";
import type { Client } from "../../src/query/client/client.ts";
import { TYPE, aPointer, aQuery, aRecord, aReplyTo } from "../support/scripted/builders.ts";
import { QueryPath, clientOf } from "../unit/support/query-path.ts";
import { type TcpScript, type UdpScript, startBoth } from "../unit/support/upstreams.ts";
import { checkRelated } from "./check.ts";
import { HUGE_REPLIES, REPLIES } from "./corpus.ts";
import { mutated } from "./mutate.ts";
import { Random } from "./random.ts";

const SEED = 20_261_122;
const QUERIES = 4_000;
const AT_ONCE = 50;
const HUGE_ONCE_IN = 60;
const CHUNK_BYTES_MAX = 300;
const OPT_BYTES = 11;

const defects: unknown[] = [];
guard.install((error) => defects.push(error));
after(() => guard.uninstall());

for (const usesTcp of [false, true]) {
  test(`${QUERIES} queries to servers that send mutated replies over ${usesTcp ? "TCP" : "UDP"} are answered`, async () => {
    const random = new Random(SEED, Number(usesTcp));
    const [udp, tcp] = await startBoth(udpServer(random), tcpServer(random));
    await using upstream = udp;
    await using _stream = tcp;
    const queryPath = new QueryPath({ forward: { usesTcp, budgetMs: 1_500 }, behaviour: { caches: false } });
    const client = clientOf(upstream.server);
    const rcodes = new Map<number, number>();
    for (let from = 0; from < QUERIES; from += AT_ONCE) {
      const all = Array.from({ length: AT_ONCE }, (_, index) => queryOne(queryPath, client, from + index));
      for (const rcode of await Promise.all(all)) rcodes.set(rcode, (rcodes.get(rcode) ?? 0) + 1);
    }
    assert.deepEqual(defects, []);
    assert.equal(queryPath.forwarder.inFlight, 0);
    assert.deepEqual([client.slots.taken, client.shares.queryBytes.taken], [0, 0]);
    // A run without answers or without failures would prove little.
    for (const rcode of [0, 2]) assert.ok((rcodes.get(rcode) ?? 0) > QUERIES / 100, JSON.stringify([...rcodes]));
  });
}

async function queryOne(queryPath: QueryPath, client: Client, index: number): Promise<number> {
  const name = `n${index}.example.org`;
  const reply = await queryPath.raw(client, aQuery({ id: index, name, type: TYPE.A }), index % 3 === 0 ? "tcp" : "udp");
  assert.equal(reply.readUInt16BE(0), index, "a reply has the id of its query");
  assert.equal(reply.readUInt16BE(4), 1, "and its question");
  checkRelated(reply);
  return (reply[3] ?? 0) & 15;
}

function udpServer(random: Random): UdpScript {
  return (query, reply) => {
    for (let left = random.below(4); left > 0; left--) reply(spoilt(query, random));
    if (random.once(8)) reply(aReplyTo(query, 2));
    reply(good(query));
  };
}

// Segments its output anywhere, and closes some connections in the middle.
function tcpServer(random: Random): TcpScript {
  return (query, socket) => {
    const messages = [spoilt(query, random), good(query)].slice(random.below(2));
    const stream = Buffer.concat(messages.map((message) => withLength(message)));
    for (let at = 0; at < stream.length;) {
      const size = 1 + random.below(CHUNK_BYTES_MAX * (random.once(20) ? 1 : 100));
      socket.write(stream.subarray(at, at + size));
      at += size;
      if (random.once(40)) return void socket.destroy();
    }
    if (random.once(10)) socket.end();
  };
}

// A reply of the corpus with the id and the question of this query, then mutated; mostly after the question, so that
// it is accepted as a reply to it.
function spoilt(query: Buffer, random: Random): Buffer {
  const whole = random.once(HUGE_ONCE_IN) ? random.pick(HUGE_REPLIES) : random.pick(REPLIES);
  const questionEnd = whole.indexOf(0, 12) + 5;
  const question = query.subarray(12, query.length - (query.readUInt16BE(10) > 0 ? OPT_BYTES : 0));
  const head = Buffer.concat([whole.subarray(0, 12), question]);
  query.copy(head, 0, 0, 2);
  if (random.once(6)) return mutated(Buffer.concat([head, whole.subarray(questionEnd)]), random, REPLIES);
  const rest = mutated(Buffer.from(whole.subarray(questionEnd)), random, REPLIES);
  return Buffer.concat([head, rest]).subarray(0, 65_000);
}

function good(query: Buffer): Buffer {
  const record = aRecord({ owner: aPointer(12), type: TYPE.A, ttl: 60, data: Buffer.of(192, 0, 2, 1) });
  return aReplyTo(query, 0, [record]);
}
