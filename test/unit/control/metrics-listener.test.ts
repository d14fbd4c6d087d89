// Proves that held connections, idle or not read, cannot block the metrics endpoint.

import assert from "node:assert/strict";
import { once } from "node:events";
import { type Socket, connect } from "node:net";
import { after, before, test } from "node:test";

import { LIMITS } from "../../../src/base/limits.ts";
import { MetricsListener } from "../../../src/control/metrics-listener.ts";
import { monitoringRoutes } from "../../../src/control/monitoring-routes.ts";
import { guard } from "../../../src/base/lib/guard.ts";
import { createLog } from "../../../src/base/log/log.ts";
import { page } from "../../support/program/scrape.ts";

const held: Socket[] = [];
const life = { ready: true } as ReturnType<Parameters<typeof monitoringRoutes>[0]["life"]>;
const listener = new MetricsListener(
  monitoringRoutes({ metrics: async () => await Promise.resolve(""), life: () => life }),
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
  ["do not read", "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"],
] as const) {
  test(`three times as many connections as the limit, which ${what}, do not block other clients`, async () => {
    for (let count = 0; count < 3 * LIMITS.pageConnections; count++) await hold(text);
    for (let count = 0; count < 10; count++) {
      const { status, text: body } = await page(address, "/health");
      assert.deepEqual([status, body], [200, "OK\n"]);
    }
  });
}

test("an internal error fails only its request, and is reported", async () => {
  const reported: string[] = [];
  guard.install((error, entrance) => reported.push(`${entrance}: ${(error as Error).message}`));
  const metrics = (): never => {
    throw new TypeError("a defect");
  };
  const spoilt = new MetricsListener(monitoringRoutes({ metrics, life: () => life }), createLog("silent"));
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
