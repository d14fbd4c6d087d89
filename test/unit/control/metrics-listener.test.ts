// Proves that held connections, idle or not read, cannot block the metrics endpoint, and that a page in a browser cannot read it by a
// name of its own.

import assert from "node:assert/strict";
import { once } from "node:events";
import { type Socket, connect, createServer } from "node:net";
import { after, before, test } from "node:test";

import { LIMITS } from "../../../src/base/limits.ts";
import { MetricsListener } from "../../../src/control/server/metrics-listener.ts";
import { monitoringRoutes } from "../../../src/control/routes/monitoring-routes.ts";
import { guard } from "../../../src/base/lib/guard.ts";
import { createLog } from "../../../src/base/log/log.ts";
import { page } from "../../support/program/scrape.ts";

const held: Socket[] = [];
const life = { ready: true } as ReturnType<Parameters<typeof monitoringRoutes>[0]["life"]>;
const probe = async (): Promise<undefined> => await Promise.resolve(undefined);
const listener = new MetricsListener(
  monitoringRoutes({ metrics: async () => await Promise.resolve(""), life: () => life, probe }),
  createLog("silent"),
);
let address = "";

before(async () => {
  await listener.listen({ address: "127.0.0.1:0", isExplicit: true, containers: 0 });
  address = listener.address ?? "";
});
after(() => {
  for (const socket of held) socket.destroy();
  listener.close();
});

async function hold(text: string): Promise<void> {
  const socket = connect(Number(address.split(":")[1]), "127.0.0.1");
  held.push(socket);
  socket.on("error", () => undefined);
  socket.pause();
  await once(socket, "connect");
  socket.write(text);
}

for (const [what, text] of [
  ["send nothing", ""],
  ["begin a request", "GET /health HT"],
  ["do not read", "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"],
] as const) {
  test(`three times as many connections as the limit, which ${what}, do not block other clients`, async () => {
    for (let count = 0; count < 3 * LIMITS.pageConnections; count++) await hold(text);
    for (let count = 0; count < 10; count++) {
      const { status, text: body } = await page(address, "/health");
      assert.deepEqual([status, body], [200, "OK\n"]);
    }
  });
}

const NAMES = [
  "evil.test",
  "evil.test:9511",
  "localhost.evil.test",
  "127.0.0.1.evil.test",
  "0x7f.1",
  "[::1].evil.test",
];
const OWN = ["127.0.0.1", "127.0.0.1:9511", "10.1.2.3:80", "[::1]", "[::1]:9511", "localhost", "LocalHost:9511"];

test("on loopback, a request for another host is refused, whatever its path; one for an address or localhost is not", async () => {
  for (const path of ["/metrics", "/ready", "/health", "/none"]) {
    for (const host of NAMES) {
      const { status, text } = await page(address, path, host);
      assert.deepEqual([status, /use its address or localhost/.test(text)], [421, true], `${host} ${path}`);
    }
  }
  for (const host of OWN) assert.equal((await page(address, "/ready", host)).status, 200, host);
  const socket = connect(Number(address.split(":")[1]), "127.0.0.1");
  socket.write("GET /health HTTP/1.0\r\n\r\n");
  let answer = "";
  for await (const chunk of socket) answer += String(chunk);
  assert.match(answer, /^HTTP\/1\.1 200 /, "no browser sends a request without a host");
});

test("where the operator listens on an address of the network, it may have any name", async () => {
  const open = new MetricsListener(
    monitoringRoutes({ metrics: async () => await Promise.resolve(""), life: () => life, probe }),
    createLog("silent"),
  );
  try {
    await open.listen({ address: "0.0.0.0:0", isExplicit: true, containers: 0 });
    const at = `127.0.0.1:${open.address?.split(":")[1]}`;
    assert.equal((await page(at, "/ready", "monitored.example:9511")).status, 200);
  } finally {
    open.close();
  }
});

test("the same port of all addresses takes the place of one, and the other way round; one that others have does not", async () => {
  const routes = monitoringRoutes({ metrics: async () => await Promise.resolve(""), life: () => life, probe });
  const moved = new MetricsListener(routes, createLog("silent"));
  const others = createServer();
  try {
    await moved.listen({ address: "127.0.0.1:0", isExplicit: true, containers: 0 });
    const port = moved.address?.split(":")[1] ?? "";
    for (const host of ["0.0.0.0", "127.0.0.1"]) {
      await moved.listen({ address: `${host}:${port}`, isExplicit: true, containers: 0 });
      assert.equal(moved.address, `${host}:${port}`);
      assert.equal((await page(`127.0.0.1:${port}`, "/ready")).status, 200);
    }
    others.listen(Number(port), "127.0.0.2");
    await once(others, "listening");
    await assert.rejects(
      moved.listen({ address: `0.0.0.0:${port}`, isExplicit: true, containers: 0 }),
      /the address is already in use/,
    );
    assert.equal(moved.address, `127.0.0.1:${port}`);
    assert.equal((await page(`127.0.0.1:${port}`, "/ready")).status, 200);
  } finally {
    moved.close();
    others.close();
  }
});

test("an internal error fails only its request, and is reported", async () => {
  const reported: string[] = [];
  guard.install((error, entrance) => reported.push(`${entrance}: ${(error as Error).message}`));
  const metrics = (): never => {
    throw new TypeError("a defect");
  };
  const spoilt = new MetricsListener(monitoringRoutes({ metrics, life: () => life, probe }), createLog("silent"));
  try {
    await spoilt.listen({ address: "127.0.0.1:0", isExplicit: true, containers: 0 });
    const at = spoilt.address ?? "";
    assert.equal((await page(at, "/metrics")).status, 500);
    assert.equal((await page(at, "/health")).status, 200);
    assert.deepEqual(reported, ["control: a defect"]);
  } finally {
    spoilt.close();
    guard.uninstall();
  }
});

test("of many requests in one connection the first is answered, and the others are not read", async () => {
  for (const version of ["1.0\r\nConnection: keep-alive", "1.1\r\nHost: localhost"]) {
    const request = `GET /health HTTP/${version}\r\n\r\n`;
    const text = await sent(request.repeat(1_000), undefined, false);
    assert.deepEqual(text.match(/HTTP\/1\.1 \d+/g), ["HTTP/1.1 200"], version);
  }
});

test("a request that comes a byte at a time is answered, also by a client that ends its half", async () => {
  assert.match(await sent("GET /health HTTP/1.0\r\n\r\n", 1), /^HTTP\/1\.1 200 .*\r\n\r\nOK\n$/s);
});

test("a request with a longer head than any of a browser is closed", async () => {
  assert.equal(await sent(`GET /health HTTP/1.1\r\nHost: localhost\r\nX: ${"x".repeat(20_000)}`, 1_000), "");
});

/** What is received until the server closes the connection. */
async function sent(text: string, chunk = text.length, isEnded = true): Promise<string> {
  const socket = connect(Number(address.split(":")[1]), "127.0.0.1");
  socket.on("error", () => undefined);
  await once(socket, "connect");
  const closed = once(socket, "close");
  let received = "";
  socket.on("data", (bytes: Buffer) => {
    received += bytes.toString("latin1");
  });
  for (let at = 0; at < text.length; at += chunk) {
    socket.write(text.slice(at, at + chunk));
    await new Promise((resolve) => setImmediate(resolve));
  }
  if (isEnded) socket.end();
  await closed;
  return received;
}
