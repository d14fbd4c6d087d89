// Proves how servers are asked by TLS: not before the certificate holds, on connections that are kept, used for many queries and
// resumed; and what a server can cost that misbehaves.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type AddressInfo, type Socket, createServer } from "node:net";
import { test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import { RandomIds } from "../../../../src/base/lib/random-ids.ts";
import { RateLimit } from "../../../../src/base/lib/rate-limit.ts";
import type { Server, TlsFailureKind } from "../../../../src/base/model/view.ts";
import { sharePools } from "../../../../src/query/client/slots.ts";
import { StreamBudget } from "../../../../src/query/client/stream-budget.ts";
import { StreamPool } from "../../../../src/query/upstream/stream-pool.ts";
import { TlsMemory } from "../../../../src/query/upstream/tls-connection.ts";
import { TlsTrust } from "../../../../src/query/upstream/tls-trust.ts";
import { aQuery, aReplyTo } from "../../../support/scripted/builders.ts";
import { LOOPBACK, dialHere } from "../../support/loopback.ts";
import { TLS_NAME, TlsUpstream, testAuthority } from "../../support/tls-upstream.ts";
import { type TcpScript, closedTcpServer, write } from "../../support/upstreams.ts";

const good: TcpScript = (query, socket) => write(socket, aReplyTo(query));
const now = (): number => performance.now();

test("queries share one connection, until it is busy or silent", async () => {
  await using upstream = await TlsUpstream.start({ script: good });
  const { pool, dialled } = await pooled(upstream.server);
  const first = Array.from({ length: 40 }, (_, i) => exchange(pool, `a${i}.test`));
  assert.deepEqual(new Set(await Promise.all(first)), new Set(["answered"]));
  for (let i = 0; i < 20; i++) assert.equal(await exchange(pool, `b${i}.test`), "answered");
  assert.equal(dialled(), 1);
  const many = Array.from({ length: 200 }, (_, i) => exchange(pool, `c${i}.test`));
  assert.deepEqual(new Set(await Promise.all(many)), new Set(["answered"]));
  assert.equal(dialled(), LIMITS.upstreamStreamsPerServer);
  pool.close();
});

test("a connection that has become silent gets no new queries", async () => {
  await using upstream = await TlsUpstream.start({
    script: (query, socket) => {
      if (!query.includes("lost")) write(socket, aReplyTo(query));
    },
  });
  const { pool, dialled } = await pooled(upstream.server);
  assert.equal(await exchange(pool, "a.test"), "answered");
  const lost = exchange(pool, "lost.test");
  await new Promise((resolve) => setTimeout(resolve, 2 * LIMITS.tls.silentMs));
  assert.equal(await exchange(pool, "b.test"), "answered");
  assert.equal(dialled(), 2);
  pool.close();
  assert.match(await lost, /no longer needed/);
});

test("a server that closes what is idle costs a handshake, which is resumed", async () => {
  const sockets: Socket[] = [];
  await using upstream = await TlsUpstream.start({
    script: (query, socket) => {
      sockets.push(socket);
      write(socket, aReplyTo(query));
    },
  });
  const { pool, shares } = await pooled(upstream.server);
  for (let i = 0; i < 3; i++) {
    assert.equal(await exchange(pool, `n${i}.test`), "answered");
    for (const socket of sockets.splice(0)) socket.end();
    while (shares.upstreamStreams.taken > 0) await new Promise((resolve) => setImmediate(resolve));
  }
  assert.deepEqual(upstream.resumed, [false, true, true]);
  assert.equal(shares.streamBytes.taken, 0);
});

test("a query without an answer on a closed connection is sent on another one", async () => {
  let count = 0;
  await using upstream = await TlsUpstream.start({
    script: (query, socket) => {
      if (++count === 2) socket.destroy();
      else write(socket, aReplyTo(query));
    },
  });
  const { pool, dialled } = await pooled(upstream.server);
  for (let i = 0; i < 3; i++) assert.equal(await exchange(pool, `n${i}.test`), "answered");
  assert.equal(dialled(), 2);
  pool.close();
});

test("a reply of 60 KB arrives as it is", async () => {
  await using upstream = await TlsUpstream.start({
    script: (query, socket) => write(socket, Buffer.concat([aReplyTo(query), Buffer.alloc(60_000)])),
  });
  const { pool } = await pooled(upstream.server);
  for (let i = 0; i < 5; i++) assert.equal(await exchange(pool, `n${i}.test`), "answered");
  pool.close();
});

for (const [title, certificate, tls, kind, reason] of [
  [
    "for another name",
    { names: ["DNS:other.test", "IP:127.0.0.1"] },
    undefined,
    "name",
    /for other\.test, 127\.0\.0\.1, and not for dns\.test$/,
  ],
  ["for a name and not for the address", {}, LOOPBACK, "name", /for dns\.test, and not for 127\.0\.0\.1$/],
  ["that has expired", { years: [-2, -1] }, undefined, "time", /clock, 20\d\d-.*not valid any more \(from .* to .*\)$/],
  ["that is not valid yet", { years: [1, 2] }, undefined, "time", /clock, 20\d\d-.*not valid yet \(from .* to .*\)$/],
] as const) {
  test(`a certificate ${title} fails, and nothing is sent`, async () => {
    await using upstream = await TlsUpstream.start({ script: good, certificate });
    const server = tls === undefined ? upstream.server : { ...upstream.server, tls };
    await fails(await pooled(server), kind, reason);
    assert.deepEqual(upstream.queries, []);
  });
}

test("of a certificate with many names some are shown", async () => {
  const names = Array.from({ length: 100 }, (_, index) => `DNS:n${index}.other.test`);
  await using upstream = await TlsUpstream.start({ script: good, certificate: { names } });
  await fails(await pooled(upstream.server), "name", /for n0\.other\.test, .{50,110}\.\.\., and not for dns\.test$/);
});

test("a certificate for the address is one for a server without a name", async () => {
  await using upstream = await TlsUpstream.start({ script: good, certificate: { names: ["IP:127.0.0.1"] } });
  const { pool } = await pooled({ ...upstream.server, tls: LOOPBACK });
  assert.equal(await exchange(pool, "a.test"), "answered");
  pool.close();
});

test("a certificate of another authority fails, whatever the environment says", async () => {
  await using upstream = await TlsUpstream.start({ script: good });
  process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0";
  try {
    const machines = new TlsTrust(undefined, now);
    await fails(await pooled(upstream.server, { trust: machines }), "untrusted", /of no authority in .* \([A-Z_]+\)$/);
  } finally {
    delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"];
  }
  assert.deepEqual(upstream.queries, []);
});

test("a file of authorities that is missing, or has none, fails every server by TLS", async () => {
  await using upstream = await TlsUpstream.start({ script: good });
  for (const file of ["/nonexistent/ca.pem", "/etc/hostname"]) {
    const trust = new TlsTrust(file, now);
    await fails(await pooled(upstream.server, { trust }), "authorities", /cannot be read: .*(ENOENT|no certificate)/);
  }
});

test("a port that is closed, or speaks DNS without TLS, is named, and gets no query", async () => {
  await fails(
    await pooled(byTls(await closedTcpServer())),
    "absent",
    /nothing listens at its port \d+ \(ECONNREFUSED\)$/,
  );
  const received: Buffer[] = [];
  for (const act of [
    (socket: Socket) => void socket.end(),
    (socket: Socket) => void socket.write(aReplyTo(aQuery({ name: "plain.test" }))),
    (socket: Socket) => void socket.resetAndDestroy(),
  ]) {
    await using plain = await startPlain((socket, chunk) => {
      received.push(chunk);
      act(socket);
    });
    await fails(await pooled(plain.server), "absent", /what listens at its port \d+ (closes|speaks no TLS)/);
  }
  assert.ok(received.length >= 3 && received.every((chunk) => chunk[0] === HANDSHAKE && !chunk.includes("a\x04test")));
});

test("a server that answers no greeting, or one byte at a time, fails after its time", async () => {
  await using silent = await startPlain(() => undefined);
  await using slow = await startPlain((socket) => {
    const timer = setInterval(() => socket.write(Buffer.of(HANDSHAKE)), 50);
    socket.once("close", () => clearInterval(timer));
  });
  const pools = await Promise.all([pooled(silent.server), pooled(slow.server)]);
  const [answersNone, isSlow] = pools;
  assert.ok(answersNone !== undefined && isSlow !== undefined);
  await Promise.all([
    fails(answersNone, "absent", /answers no TLS within 3 s$/),
    fails(isSlow, "absent", /speaks no TLS|answers no TLS/),
  ]);
});

test("a handshake with more certificates than anybody has is given up", async () => {
  const { cert } = await (await testAuthority()).sign({ names: ["DNS:filler.test"] });
  const { cert: own, key } = await (await testAuthority()).sign({ names: [`DNS:${TLS_NAME}`] });
  const chain = readFileSync(own, "utf8") + readFileSync(cert, "utf8").repeat(160);
  const options = { cert: chain, key: readFileSync(key) };
  await using upstream = await TlsUpstream.start({ script: good, options });
  await fails(await pooled(upstream.server), "absent", /longer than|speaks no TLS/);
});

test("a server that sends thousands of records which are no answers is given up", async () => {
  const { cert, key } = await (await testAuthority()).sign({ names: [`DNS:${TLS_NAME}`] });
  const words = ["s_server", "-accept", "127.0.0.1:0", "-cert", cert, "-key", key, "-num_tickets", "500", "-quiet"];
  const child = spawn(
    "openssl",
    words.filter((word) => word !== "-quiet"),
    { stdio: ["pipe", "pipe", "ignore"] },
  );
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => (text += chunk.toString()));
  while (!/ACCEPT 127\.0\.0\.1:\d+/.test(text)) await once(child.stdout, "data");
  const port = Number(/ACCEPT 127\.0\.0\.1:(\d+)/.exec(text)?.[1]);
  const { pool } = await pooled({ from: "container", address: LOOPBACK, port, tls: TLS_NAME });
  assert.match(await exchange(pool, "a.test"), /too much that is no answer/);
  child.kill();
  await once(child, "close");
});

test("a server cannot have a second handshake on a connection", async () => {
  let asked = 0;
  await using upstream = await TlsUpstream.start({
    script: (query, socket) => {
      asked++;
      // What a server does that wants one: OpenSSL sends HelloRequest.
      if (asked === 1)
        (socket as unknown as { renegotiate(options: object, done: () => void): void }).renegotiate(
          {},
          () => undefined,
        );
      write(socket, aReplyTo(query));
    },
    options: { maxVersion: "TLSv1.2" },
  });
  const { pool } = await pooled(upstream.server);
  for (let i = 0; i < 3; i++) assert.match(await exchange(pool, `n${i}.test`), /answered|closed without a reply/);
  assert.ok(upstream.resumed.length <= 2);
  pool.close();
});

test("only elliptic curves are agreed on: other keys cost as much as the server likes", async () => {
  for (const options of [
    { maxVersion: "TLSv1.2", ciphers: "DHE-RSA-AES128-GCM-SHA256:AES128-GCM-SHA256" },
    { maxVersion: "TLSv1.1", minVersion: "TLSv1" },
  ] as const) {
    await using upstream = await TlsUpstream.start({ script: good, options });
    await fails(await pooled(upstream.server), "absent", /speaks no TLS|closes the connection/);
  }
});

test("handshakes take turns, so that others are served in between", async () => {
  await using upstream = await TlsUpstream.start({ script: good });
  const handshakes = new StreamBudget(0);
  const trust = await ownTrust();
  let [answered, ended] = [0, 0];
  const pools = await Promise.all(
    Array.from({ length: 40 }, async () => await pooled(upstream.server, { handshakes, trust })),
  );
  const ask = async ({ pool }: (typeof pools)[number]): Promise<void> => {
    // On a slow machine the last ones may take longer than they may: then they end at once, unanswered.
    if ((await exchange(pool, "a.test")) === "answered") answered++;
    ended++;
  };
  const all = Promise.all(pools.map(ask));
  let most = 0;
  for (let before = 0; ended < pools.length; before = answered) {
    await new Promise((resolve) => setImmediate(resolve));
    most = Math.max(most, answered - before);
  }
  await all;
  // Two in a turn of the event loop, one of which may lie before this one's look and one behind it.
  assert.ok(most >= 1 && most <= 4, `${most} at once`);
  for (const { pool } of pools) pool.close();
});

test("a container's connections by TLS are limited by rate and by its share of bytes", async () => {
  await using upstream = await TlsUpstream.start({
    script: (query, socket) => {
      write(socket, aReplyTo(query));
      socket.end();
    },
  });
  const { pool, shares, dialled } = await pooled(upstream.server, { rate: { burst: 5, perSecond: 0 } });
  const outcomes: string[] = [];
  for (let i = 0; i < 8; i++) {
    outcomes.push(await exchange(pool, `n${i}.test`));
    while (shares.upstreamStreams.taken > 0) await new Promise((resolve) => setImmediate(resolve));
  }
  assert.deepEqual([dialled(), outcomes[4], outcomes[7]], [5, "answered", "TOO_MANY_STREAMS"]);
  await using endless = await TlsUpstream.start({
    script: (_, socket) => void socket.write(Buffer.alloc(60_000, 0xff)),
  });
  const other = await pooled(endless.server);
  assert.ok(other.shares.streamBytes.take(LIMITS.streamBytes.each - 20_000));
  assert.match(await exchange(other.pool, "a.test"), /too many bytes/);
  assert.equal(other.shares.upstreamStreams.taken, 0);
});

/** The first byte of a record that belongs to a handshake. */
const HANDSHAKE = 0x16;

type Parts = {
  readonly trust?: TlsTrust;
  readonly handshakes?: StreamBudget;
  readonly rate?: { readonly burst: number; readonly perSecond: number };
};

type Pooled = Awaited<ReturnType<typeof pooled>>;

async function ownTrust(): Promise<TlsTrust> {
  return new TlsTrust((await testAuthority()).file, now);
}

async function pooled(server: Server, parts: Parts = {}) {
  const { handshakes = new StreamBudget(0), rate = LIMITS.upstreamConnects } = parts;
  const trust = parts.trust ?? (await ownTrust());
  const shares = sharePools(Number.POSITIVE_INFINITY).open();
  const memory = new TlsMemory();
  let dialled = 0;
  const pool = new StreamPool({
    ids: new RandomIds(),
    shares,
    budget: new StreamBudget(1),
    connects: new RateLimit(rate, now),
    connectsOfHost: undefined,
    dial: () => {
      dialled++;
      return dialHere(server, "tcp");
    },
    tls: () => ({ server, trust, handshakes, memory }),
  });
  return { pool, shares, memory, dialled: () => dialled };
}

async function fails({ pool, shares, memory, dialled }: Pooled, kind: TlsFailureKind, reason: RegExp): Promise<void> {
  const outcome = await exchange(pool, "a.test");
  assert.match(outcome, /^TLS: /);
  assert.match(outcome, reason);
  assert.deepEqual([memory.failure?.kind, `TLS: ${memory.failure?.text}`], [kind, outcome]);
  assert.deepEqual([shares.upstreamStreams.taken, shares.streamBytes.taken, dialled()], [0, 0, 1]);
}

function byTls(server: Server): Server {
  return { ...server, tls: TLS_NAME };
}

async function startPlain(onData: (socket: Socket, chunk: Buffer) => void) {
  const sockets = new Set<Socket>();
  const listener = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("data", (chunk: Buffer) => onData(socket, chunk));
  });
  listener.listen(0, LOOPBACK);
  await once(listener, "listening");
  const { port } = listener.address() as AddressInfo;
  const server: Server = { from: "container", address: LOOPBACK, port, tls: TLS_NAME };
  return {
    server,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      listener.close();
      await once(listener, "close");
    },
  };
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
