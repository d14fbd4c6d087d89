/**
 * Exchange: a message and its reply, on a machine that lets this process stand still, and by TCP in any pieces.
 */
import assert from "node:assert/strict";
import { type RemoteInfo, createSocket } from "node:dgram";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { test } from "node:test";

import { withLength } from "../../../../src/base/lib/stream-reader.ts";
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

/** More than one segment. */
const LONG_BYTES = 60_000;

for (const [what, pieces, length] of [
  ["its length first", [2], 100],
  ["byte by byte", [1, 1, 1, 1], 5],
  ["a long one", [], LONG_BYTES],
  ["two at once, of which the first counts", [], 100],
  ["nothing, and closes", undefined, 0],
] as const) {
  test(`a server sends its reply by TCP: ${what}`, async () => {
    const reply = Buffer.alloc(length, 7);
    const sent = Buffer.concat([withLength(reply), ...(what.startsWith("two") ? [withLength(reply)] : [])]);
    const server = createServer({ noDelay: true }, (client) => {
      client.on("error", () => undefined);
      client.once("data", () => void send().finally(() => client.end()));
      const send = async (): Promise<void> => {
        if (pieces === undefined) return;
        let at = 0;
        for (const bytes of pieces) {
          client.write(sent.subarray(at, (at += bytes)));
          // The client reads what has come.
          await new Promise((resolve) => setTimeout(resolve, WAIT_MS / 20));
        }
        client.write(sent.subarray(at));
      };
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    try {
      const legs = await exchange((work) => work(), {
        destination: "127.0.0.1",
        port: (server.address() as AddressInfo).port,
        protocols: ["tcp"],
        message: (id) => Buffer.of(id >> 8, id & 255),
        waitMs: 10 * WAIT_MS,
      });
      assert.deepEqual(
        legs.map((leg) => ({ reply: leg.reply?.equals(reply), failure: leg.failure })),
        [{ reply: true, failure: undefined }],
      );
    } finally {
      server.close();
    }
  });
}
