/**
 * Exchange: a message and its reply, on a machine that lets this process stand still.
 */
import assert from "node:assert/strict";
import { type RemoteInfo, createSocket } from "node:dgram";
import { once } from "node:events";
import { test } from "node:test";

import { exchange } from "../../../../src/container/rules/exchange.ts";

const WAIT_MS = 400;

function standStill(ms: number): void {
  const untilMs = performance.now() + ms;
  while (performance.now() < untilMs) continue;
}

test("a process that stood still for longer than the timeout still receives the reply", async () => {
  const server = createSocket("udp4");
  server.on("message", (message: Buffer, { port, address }: RemoteInfo) => {
    setTimeout(() => {
      standStill(2 * WAIT_MS);
      setTimeout(() => server.send(message, port, address), WAIT_MS / 4);
    }, WAIT_MS / 20);
  });
  server.bind(0, "127.0.0.1");
  await once(server, "listening");
  try {
    const legs = await exchange((work) => work(), {
      destination: "127.0.0.1",
      port: server.address().port,
      protocols: ["udp"],
      message: (id) => Buffer.of(id >> 8, id & 255),
      waitMs: WAIT_MS,
    });
    assert.deepEqual(
      legs.map(({ id, reply, failure }) => ({ reply: reply?.readUInt16BE(0) === id, failure })),
      [{ reply: true, failure: undefined }],
    );
  } finally {
    server.close();
  }
});
