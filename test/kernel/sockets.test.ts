// Proves the listening sockets of a namespace: all of them or none, with a buffer for waiting queries.

import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { test } from "node:test";

import { bindSockets, closeSockets } from "../../src/container/namespace/sockets.ts";
import { check } from "../support/program/command.ts";
import { waitFor } from "../support/rig/wait.ts";

const BURST = 2_000;

test("a burst that arrives while nothing reads is buffered completely", async () => {
  const [pair] = bindSockets([{ bind: "127.0.0.1" }]);
  const { udp, tcp, listening } = pair ?? assert.fail();
  const program = `
    const socket = require("node:dgram").createSocket("udp4");
    let left = ${BURST};
    const next = () => (left-- > 0 ? socket.send(Buffer.alloc(40), ${listening.udpPort}, "127.0.0.1", next) : socket.close());
    next();`;
  await check(process.execPath, ["-e", program]);
  const reader = createSocket("udp4");
  let received = 0;
  reader.on("message", () => received++);
  const isListening = once(reader, "listening");
  reader.bind({ fd: udp });
  await isListening;
  await waitFor("all datagrams", () => (received === BURST ? true : undefined));
  reader.close();
  closeSockets([{ udp: -1, tcp, listening }]);
});

test("if one pair cannot be bound, none of the others stays open", () => {
  const before = readdirSync("/proc/self/fd").length;
  assert.throws(() => bindSockets([{ bind: "127.0.0.1" }, { bind: "192.0.2.1" }]), { code: "EADDRNOTAVAIL" });
  assert.equal(readdirSync("/proc/self/fd").length, before);
});
