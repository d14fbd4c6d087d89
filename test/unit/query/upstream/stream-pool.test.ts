// Proves how TCP connections to a server are used: again and again, for many queries at once, and never more than may be.

import assert from "node:assert/strict";
import { closeSync } from "node:fs";
import { test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import { RandomIds } from "../../../../src/base/lib/random-ids.ts";
import { RateLimit } from "../../../../src/base/lib/rate-limit.ts";
import { sharePools } from "../../../../src/query/client/shares.ts";
import { StreamPool } from "../../../../src/query/upstream/stream-pool.ts";
import { aQuery, aReplyTo } from "../../../support/scripted/builders.ts";
import { dialHere } from "../../support/loopback.ts";
import { type TcpScript, TcpUpstream, closedTcpServer, say } from "../../support/upstreams.ts";
import type { Server } from "../../../../src/base/model/view.ts";

const good: TcpScript = (query, socket) => say(socket, aReplyTo(query));

test("one query after the other goes over one connection", async () => {
  await using upstream = await TcpUpstream.start(good);
  const { pool, dialled } = pooled(upstream.server);
  for (let i = 0; i < 50; i++) assert.equal(await ask(pool, `n${i}.test`), "answered");
  assert.equal(dialled(), 1);
  pool.close();
});

test("queries that do not wait for each other share a few connections", async () => {
  await using upstream = await TcpUpstream.start(good);
  const { pool, dialled } = pooled(upstream.server);
  const all = await Promise.all(Array.from({ length: 200 }, (_, i) => ask(pool, `n${i}.test`)));
  assert.ok(all.every((outcome) => outcome === "answered"));
  assert.equal(dialled(), LIMITS.upstreamStreamsPerServer);
  pool.close();
});

test("a server that ends a connection behind each reply costs one for each, up to a rate", async () => {
  await using upstream = await TcpUpstream.start((query, socket) => {
    say(socket, aReplyTo(query));
    socket.end();
  });
  const { pool, dialled } = pooled(upstream.server, { burst: 5, perSecond: 0 });
  const outcomes: string[] = [];
  for (let i = 0; i < 20; i++) {
    outcomes.push(await ask(pool, `n${i}.test`));
    // The end comes behind the reply.
    while (upstream.open > 0) await new Promise((resolve) => setImmediate(resolve));
  }
  assert.equal(dialled(), 5);
  assert.deepEqual(
    [outcomes.slice(0, 5), outcomes.at(-1)],
    [Array.from({ length: 5 }, () => "answered"), "TOO_MANY_STREAMS"],
  );
});

test("what a server had not answered when it ended a connection is asked once more on another one", async () => {
  let count = 0;
  await using upstream = await TcpUpstream.start((query, socket) => {
    count++;
    if (count === 2) socket.destroy();
    else say(socket, aReplyTo(query));
  });
  const { pool, dialled } = pooled(upstream.server);
  for (let i = 0; i < 3; i++) assert.equal(await ask(pool, `n${i}.test`), "answered");
  assert.equal(dialled(), 2);
  pool.close();
});

test("a server that never answers, or is not there, is asked on one connection and no other", async () => {
  await using upstream = await TcpUpstream.start((_, socket) => void socket.destroy());
  for (const server of [upstream.server, await closedTcpServer()]) {
    const { pool, dialled } = pooled(server);
    assert.match(await ask(pool, "a.test"), /without an answer|ECONNREFUSED|ECONNRESET/);
    assert.equal(dialled(), 1);
  }
});

test("a reply to what was not asked, or to another question, ends the connection", async () => {
  for (const wrong of [
    (query: Buffer) => aReplyTo(Buffer.concat([Buffer.of(query[0] ?? 0, (query[1] ?? 0) ^ 1), query.subarray(2)])),
    (query: Buffer) => aReplyTo(aQuery({ id: query.readUInt16BE(0), name: "other.test" })),
    () => Buffer.alloc(3),
  ]) {
    await using upstream = await TcpUpstream.start((query, socket) => say(socket, wrong(query)));
    const { pool, shares } = pooled(upstream.server);
    assert.match(await ask(pool, "a.test"), /it answered/);
    assert.deepEqual([shares.upstreamStreams.taken, shares.streamBytes.taken], [0, 0]);
  }
});

test("a container's connections end where its share of bytes ends", async () => {
  // Announces a message and sends it but for its end.
  await using upstream = await TcpUpstream.start((_, socket) => void socket.write(Buffer.alloc(60_000, 0xff)));
  const { pool, shares } = pooled(upstream.server);
  assert.ok(shares.streamBytes.take(LIMITS.streamBytes.each - 20_000));
  assert.match(await ask(pool, "a.test"), /too many bytes/);
  assert.equal(shares.upstreamStreams.taken, 0);
});

test("a container has no more connections than its share, to however many servers", async () => {
  await using upstream = await TcpUpstream.start(() => undefined);
  const shares = sharePools(Number.POSITIVE_INFINITY).open();
  const pools = Array.from({ length: 40 }, () => pooled(upstream.server, undefined, shares).pool);
  let refused = 0;
  for (const pool of pools) {
    const outcome = await Promise.race([ask(pool, "a.test"), new Promise((resolve) => setImmediate(resolve, "waits"))]);
    if (outcome === "TOO_MANY_STREAMS") refused++;
  }
  assert.deepEqual(
    [shares.upstreamStreams.taken, refused],
    [LIMITS.upstreamStreams.each, 40 - LIMITS.upstreamStreams.each],
  );
  for (const pool of pools) pool.close();
  assert.equal(shares.upstreamStreams.taken, 0);
});

test("a burst to a server that ends each connection behind one reply is answered whole", async () => {
  await using upstream = await TcpUpstream.start((query, socket) => {
    if (!socket.writable) return;
    say(socket, aReplyTo(query));
    socket.end();
  });
  const { pool } = pooled(upstream.server);
  const all = await Promise.all(Array.from({ length: 20 }, (_, i) => ask(pool, `n${i}.test`)));
  assert.deepEqual(
    all.filter((outcome) => outcome !== "answered"),
    [],
  );
  pool.close();
});

test("a connection for one question alone is one of the container's, and of its rate", async () => {
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

function pooled(
  server: Server,
  rate = LIMITS.upstreamConnects as { burst: number; perSecond: number },
  shares = sharePools(Number.POSITIVE_INFINITY).open(),
) {
  let dialled = 0;
  const pool = new StreamPool({
    ids: new RandomIds(),
    shares,
    connects: new RateLimit(rate, () => performance.now()),
    connectsOfHost: undefined,
    dial: () => {
      dialled++;
      return dialHere(server, "tcp");
    },
  });
  return { pool, shares, dialled: () => dialled };
}

// What became of one query: "answered", or why not.
async function ask(pool: StreamPool, name: string): Promise<string> {
  const message = aQuery({ name });
  return await new Promise((resolve) => {
    try {
      pool.ask({
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
