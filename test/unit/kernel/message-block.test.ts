// Proves MessageBlock, on real sockets.

import assert from "node:assert/strict";
import { closeSync } from "node:fs";
import { test } from "node:test";

import { sendTo } from "../../../src/kernel/libc.ts";
import { MessageBlock } from "../../../src/kernel/message-block.ts";
import { LOOPBACK, type Bound, bindUdp, sockaddr } from "../support/loopback.ts";

// Matches no address.
const NO_ANSWERS = Buffer.alloc(0);

test("slots are at least one message apart", () => {
  const block = new MessageBlock(3, 1000);
  assert.ok(block.offsetOf(1) - block.offsetOf(0) >= 1000);
  assert.ok(block.data.length - block.offsetOf(2) >= 1000);
});

test("received messages are in their slots with length and sender, truncated to the given size", () => {
  using sockets = pair();
  const block = new MessageBlock(4, 1000);
  for (const text of ["zero", "one", "two is longer"]) sockets.toServer(text);
  assert.equal(block.receive(sockets.server.fd, 1, 6), 3);
  assert.deepEqual(
    [1, 2, 3].map((slot) => textOf(block, slot)),
    ["zero", "one", "two is"],
  );
  for (const slot of [1, 2, 3]) {
    assert.equal(block.senderPort(slot), sockets.client.port);
    assert.deepEqual(block.senderOf(slot, NO_ANSWERS), sockaddr(LOOPBACK, sockets.client.port));
  }
});

test("receive() is limited by the slots, and returns 0 for an empty socket", () => {
  using sockets = pair();
  const block = new MessageBlock(2, 100);
  assert.equal(block.receive(sockets.server.fd, 0, 100), 0);
  for (const text of ["a", "b", "c"]) sockets.toServer(text);
  assert.equal(block.receive(sockets.server.fd, 2, 100), 0);
  assert.equal(block.receive(sockets.server.fd, 0, 100), 2);
  assert.equal(block.receive(sockets.server.fd, 0, 100), 1);
  assert.equal(block.receive(-1, 0, 100), 0);
});

test("a placed message is answered like a received one, and only slots with a reply are sent", () => {
  using sockets = pair();
  const block = new MessageBlock(4, 100);
  const address = sockaddr(LOOPBACK, sockets.client.port);
  for (const [slot, text] of ["zero", "one", "two"].entries()) block.put(slot, Buffer.from(text), text.length, address);
  block.reply(2, 3);
  block.reply(0, 2);
  assert.equal(block.flush(sockets.server.fd), 0);
  assert.deepEqual(sockets.arrived(), ["two", "ze"]);
  assert.equal(block.flush(sockets.server.fd), 0);
  assert.deepEqual(sockets.arrived(), []);
});

test("place() truncates to the given length", () => {
  const block = new MessageBlock(1, 100);
  block.put(0, Buffer.from("longer"), 4, sockaddr(LOOPBACK, 1));
  assert.equal(textOf(block, 0), "long");
});

test("the sender of a slot is a copy, because slots are reused", () => {
  const block = new MessageBlock(1, 100);
  block.put(0, Buffer.from("a"), 1, sockaddr(LOOPBACK, 1000));
  const sender = block.senderOf(0, NO_ANSWERS);
  block.put(0, Buffer.from("b"), 1, sockaddr(LOOPBACK, 2000));
  assert.deepEqual(sender, sockaddr(LOOPBACK, 1000));
});

test("a sender with a known address is not copied, whatever its port", () => {
  const block = new MessageBlock(2, 100);
  const known = sockaddr(LOOPBACK, 1000);
  block.put(0, Buffer.from("a"), 1, sockaddr(LOOPBACK, 2000));
  block.put(1, Buffer.from("b"), 1, sockaddr("127.0.0.2", 1000));
  assert.equal(block.senderOf(0, known), known);
  assert.deepEqual(block.senderOf(1, known), sockaddr("127.0.0.2", 1000));
  assert.deepEqual(known, sockaddr(LOOPBACK, 1000));
});

test("flush() skips replies that cannot be sent, and sends the rest", () => {
  using sockets = pair();
  const block = new MessageBlock(4, 100);
  // Nothing can be sent to port 0.
  for (const [slot, port] of [0, sockets.client.port, 0, sockets.client.port].entries()) {
    block.put(slot, Buffer.from(`${slot}`), 1, sockaddr(LOOPBACK, port));
    block.reply(slot, 1);
  }
  assert.equal(block.flush(sockets.server.fd), 2);
  assert.deepEqual(sockets.arrived(), ["1", "3"]);
});

test("discard() drops queued replies", () => {
  using sockets = pair();
  const block = new MessageBlock(1, 100);
  block.put(0, Buffer.from("a"), 1, sockaddr(LOOPBACK, sockets.client.port));
  block.reply(0, 1);
  block.discard();
  assert.equal(block.flush(sockets.server.fd), 0);
  assert.deepEqual(sockets.arrived(), []);
});

type Pair = Disposable & {
  readonly server: Bound;
  readonly client: Bound;
  toServer(text: string): void;
  // Messages that the client has received: on loopback a packet arrives before sending it returns.
  arrived(): string[];
};

function pair(): Pair {
  const server = bindUdp();
  const client = bindUdp();
  const inbox = new MessageBlock(8, 1000);
  return {
    server,
    client,
    toServer: (text) => assert.ok(sendTo(client.fd, Buffer.from(text), sockaddr(LOOPBACK, server.port)) > 0),
    arrived: () => Array.from({ length: inbox.receive(client.fd, 0, 1000) }, (_, slot) => textOf(inbox, slot)),
    [Symbol.dispose]: () => {
      closeSync(server.fd);
      closeSync(client.fd);
    },
  };
}

function textOf(block: MessageBlock, slot: number): string {
  return block.data.toString("latin1", block.offsetOf(slot), block.offsetOf(slot) + block.lengthOf(slot));
}
