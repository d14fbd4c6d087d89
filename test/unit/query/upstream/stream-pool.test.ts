// Proves how TCP connections to a server are used: reused, for many queries at once, and within their limits.

import assert from "node:assert/strict";
import { closeSync } from "node:fs";
import { test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import { RandomIds } from "../../../../src/base/lib/random-ids.ts";
import { RateLimit } from "../../../../src/base/lib/rate-limit.ts";
import { sharePools } from "../../../../src/query/client/slots.ts";
import { StreamBudget } from "../../../../src/query/client/stream-budget.ts";
import { StreamPool } from "../../../../src/query/upstream/stream-pool.ts";
import { aQuery, aReplyTo } from "../../../support/scripted/builders.ts";
import { dialHere } from "../../support/loopback.ts";
import { type TcpScript, TcpUpstream, closedTcpServer, write } from "../../support/upstreams.ts";
import type { Server } from "../../../../src/base/model/view.ts";

const good: TcpScript = (query, socket) => write(socket, aReplyTo(query));

test("sequential queries use one connection", async () => {
  await using upstream = await TcpUpstream.start(good);
  const { pool, dialled } = pooled(upstream.server);
  for (let i = 0; i < 50; i++) assert.equal(await exchange(pool, `n${i}.test`), "answered");
  assert.equal(dialled(), 1);
  pool.close();
});

test("concurrent queries share a few connections", async () => {
  await using upstream = await TcpUpstream.start(good);
  const { pool, dialled } = pooled(upstream.server);
  const all = await Promise.all(Array.from({ length: 200 }, (_, i) => exchange(pool, `n${i}.test`)));
  assert.ok(all.every((outcome) => outcome === "answered"));
  assert.equal(dialled(), LIMITS.upstreamStreamsPerServer);
  pool.close();
});

test("a server that closes a connection after each reply costs one for each, up to a rate", async () => {
  await using upstream = await TcpUpstream.start((query, socket) => {
    write(socket, aReplyTo(query));
    socket.end();
  });
  const { pool, dialled } = pooled(upstream.server, { burst: 5, perSecond: 0 });
  const outcomes: string[] = [];
  for (let i = 0; i < 20; i++) {
    outcomes.push(await exchange(pool, `n${i}.test`));
    // The connection is closed after the reply.
    while (upstream.open > 0) await new Promise((resolve) => setImmediate(resolve));
  }
  assert.equal(dialled(), 5);
  assert.deepEqual(
    [outcomes.slice(0, 5), outcomes.at(-1)],
    [Array.from({ length: 5 }, () => "answered"), "TOO_MANY_STREAMS"],
  );
});

test("a query without an answer on a closed connection is sent once more on another one", async () => {
  let count = 0;
  await using upstream = await TcpUpstream.start((query, socket) => {
    count++;
    if (count === 2) socket.destroy();
    else write(socket, aReplyTo(query));
  });
  const { pool, dialled } = pooled(upstream.server);
  for (let i = 0; i < 3; i++) assert.equal(await exchange(pool, `n${i}.test`), "answered");
  assert.equal(dialled(), 2);
  pool.close();
});

test("a server that never answers, or is unreachable, gets one connection only", async () => {
  await using upstream = await TcpUpstream.start((_, socket) => void socket.destroy());
  for (const server of [upstream.server, await closedTcpServer()]) {
    const { pool, dialled } = pooled(server);
    assert.match(await exchange(pool, "a.test"), /without a reply|ECONNREFUSED|ECONNRESET/);
    assert.equal(dialled(), 1);
  }
});

test("a reply with an unknown id, or to another question, closes the connection", async () => {
  for (const wrong of [
    (query: Buffer) => aReplyTo(Buffer.concat([Buffer.of(query[0] ?? 0, (query[1] ?? 0) ^ 1), query.subarray(2)])),
    (query: Buffer) => aReplyTo(aQuery({ id: query.readUInt16BE(0), name: "other.test" })),
    () => Buffer.alloc(3),
  ]) {
    await using upstream = await TcpUpstream.start((query, socket) => write(socket, wrong(query)));
    const { pool, shares } = pooled(upstream.server);
    assert.match(await exchange(pool, "a.test"), /the reply (has an unknown id|is to another question)/);
    assert.deepEqual([shares.upstreamStreams.taken, shares.streamBytes.taken], [0, 0]);
  }
});

test("a container's connections are limited by its share of bytes", async () => {
  // Announces a message and sends all but its last byte.
  await using upstream = await TcpUpstream.start((_, socket) => void socket.write(Buffer.alloc(60_000, 0xff)));
  const { pool, shares } = pooled(upstream.server);
  assert.ok(shares.streamBytes.take(LIMITS.streamBytes.each - 20_000));
  assert.match(await exchange(pool, "a.test"), /too many bytes/);
  assert.equal(shares.upstreamStreams.taken, 0);
});

test("a container's connections are limited by its share, over all servers", async () => {
  await using upstream = await TcpUpstream.start(() => undefined);
  const shares = sharePools(Number.POSITIVE_INFINITY).open();
  const pools = Array.from({ length: 40 }, () => pooled(upstream.server, undefined, shares).pool);
  let refused = 0;
  for (const pool of pools) {
    const outcome = await Promise.race([
      exchange(pool, "a.test"),
      new Promise((resolve) => setImmediate(resolve, "waits")),
    ]);
    if (outcome === "TOO_MANY_STREAMS") refused++;
  }
  assert.deepEqual(
    [shares.upstreamStreams.taken, refused],
    [LIMITS.upstreamStreams.each, 40 - LIMITS.upstreamStreams.each],
  );
  for (const pool of pools) pool.close();
  assert.equal(shares.upstreamStreams.taken, 0);
});

test("a burst to a server that closes the connection after each reply is answered completely", async () => {
  await using upstream = await TcpUpstream.start((query, socket) => {
    if (!socket.writable) return;
    write(socket, aReplyTo(query));
    socket.end();
  });
  const { pool } = pooled(upstream.server);
  const all = await Promise.all(Array.from({ length: 20 }, (_, i) => exchange(pool, `n${i}.test`)));
  assert.deepEqual(
    all.filter((outcome) => outcome !== "answered"),
    [],
  );
  pool.close();
});

test("a dedicated connection counts against the container's share and rate", async () => {
  await using upstream = await TcpUpstream.start(() => undefined);
  const { pool, shares, dialled } = pooled(upstream.server, { burst: 2, perSecond: 0 });
  const alone = [pool.openDedicated(), pool.openDedicated()];
  assert.equal(shares.upstreamStreams.taken, 2);
  assert.throws(() => pool.openDedicated(), { code: "TOO_MANY_STREAMS" });
  assert.equal(dialled(), 2);
  for (const { fd, onClosed } of alone) {
    closeSync(fd);
    onClosed();
  }
  assert.equal(shares.upstreamStreams.taken, 0);
});

test("long replies take their turns, so that others are served in between", async () => {
  const count = 40;
  let answered = 0;
  await using upstream = await TcpUpstream.start((query, socket) => {
    const reply = Buffer.concat([aReplyTo(query), Buffer.alloc(60_000)]);
    write(socket, reply);
  });
  const { pool } = pooled(upstream.server);
  const all = Array.from({ length: count }, async (_, i) => await exchange(pool, `n${i}.test`).then(() => answered++));
  // A turn of the connections lies between two rounds, before or after it.
  const most = 2 * Math.ceil(LIMITS.streamBudget.bytes / 60_000);
  for (let before = 0; answered < count; before = answered) {
    await new Promise((resolve) => setImmediate(resolve));
    assert.ok(answered - before <= most, `${answered - before} replies at once`);
  }
  await Promise.all(all);
  pool.close();
});

function pooled(
  server: Server,
  rate = LIMITS.upstreamConnects as { burst: number; perSecond: number },
  shares = sharePools(Number.POSITIVE_INFINITY).open(),
) {
  let dialled = 0;
  const pool = new StreamPool({
    ids: new RandomIds(),
    shares,
    budget: new StreamBudget(1),
    connects: new RateLimit(rate, () => performance.now()),
    connectsOfHost: undefined,
    dial: () => {
      dialled++;
      return dialHere(server, "tcp");
    },
  });
  return { pool, shares, dialled: () => dialled };
}

// The result of one query: "answered", or why not.
async function exchange(pool: StreamPool, name: string): Promise<string> {
  const message = aQuery({ name });
  return await new Promise((resolve) => {
    try {
      pool.send({
        message,
        questionEnd: message.length,
        clientNumber: 1,
        onReply: () => resolve("answered"),
        onUnreachable: resolve,
        onForgery: () => resolve("forged"),
      });
    } catch (error) {
      resolve((error as { code: string }).code);
    }
  });
}
