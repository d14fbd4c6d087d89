// Proves the memory that packets are received into and sent from, on real sockets.

import assert from "node:assert/strict";
import { closeSync } from "node:fs";
import { test } from "node:test";

import { sendTo } from "../../../src/kernel/libc.ts";
import { MessageBlock } from "../../../src/kernel/message-block.ts";
import { LOOPBACK, type Bound, bindUdp, sockaddr } from "../support/loopback.ts";

// An address that nobody has.
const NOBODY = Buffer.alloc(0);

test("slots lie apart by what a message may need, and more", () => {
  const block = new MessageBlock(3, 1000);
  assert.ok(block.offsetOf(1) - block.offsetOf(0) >= 1000);
  assert.ok(block.data.length - block.offsetOf(2) >= 1000);
});

test("what is received stands in its slots with length and sender, cut to what was asked for", () => {
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
    assert.deepEqual(block.senderOf(slot, NOBODY), sockaddr(LOOPBACK, sockets.client.port));
  }
});

test("receive() takes no more than there are slots, and nothing where nothing is", () => {
  using sockets = pair();
  const block = new MessageBlock(2, 100);
  assert.equal(block.receive(sockets.server.fd, 0, 100), 0);
  for (const text of ["a", "b", "c"]) sockets.toServer(text);
  assert.equal(block.receive(sockets.server.fd, 2, 100), 0);
  assert.equal(block.receive(sockets.server.fd, 0, 100), 2);
  assert.equal(block.receive(sockets.server.fd, 0, 100), 1);
  assert.equal(block.receive(-1, 0, 100), 0);
});

test("a message that was placed is answered as one that was received, and only the replied slots are sent", () => {
  using sockets = pair();
  const block = new MessageBlock(4, 100);
  const address = sockaddr(LOOPBACK, sockets.client.port);
  for (const [slot, text] of ["zero", "one", "two"].entries())
    block.place(slot, Buffer.from(text), text.length, address);
  block.reply(2, 3);
  block.reply(0, 2);
  assert.equal(block.flush(sockets.server.fd), 0);
  assert.deepEqual(sockets.arrived(), ["two", "ze"]);
  assert.equal(block.flush(sockets.server.fd), 0);
  assert.deepEqual(sockets.arrived(), []);
});

test("place() cuts to the length it is told", () => {
  const block = new MessageBlock(1, 100);
  block.place(0, Buffer.from("longer"), 4, sockaddr(LOOPBACK, 1));
  assert.equal(textOf(block, 0), "long");
});

test("the sender of a slot is a copy, for the slot is used again", () => {
  const block = new MessageBlock(1, 100);
  block.place(0, Buffer.from("a"), 1, sockaddr(LOOPBACK, 1000));
  const sender = block.senderOf(0, NOBODY);
  block.place(0, Buffer.from("b"), 1, sockaddr(LOOPBACK, 2000));
  assert.deepEqual(sender, sockaddr(LOOPBACK, 1000));
});

test("a sender at the address of another one is not copied, whatever its port", () => {
  const block = new MessageBlock(2, 100);
  const known = sockaddr(LOOPBACK, 1000);
  block.place(0, Buffer.from("a"), 1, sockaddr(LOOPBACK, 2000));
  block.place(1, Buffer.from("b"), 1, sockaddr("127.0.0.2", 1000));
  assert.equal(block.senderOf(0, known), known);
  assert.deepEqual(block.senderOf(1, known), sockaddr("127.0.0.2", 1000));
  assert.deepEqual(known, sockaddr(LOOPBACK, 1000));
});

test("flush() skips what cannot be sent, and sends the rest", () => {
  using sockets = pair();
  const block = new MessageBlock(4, 100);
  // Nothing can be sent to port 0.
  for (const [slot, port] of [0, sockets.client.port, 0, sockets.client.port].entries()) {
    block.place(slot, Buffer.from(`${slot}`), 1, sockaddr(LOOPBACK, port));
    block.reply(slot, 1);
  }
  assert.equal(block.flush(sockets.server.fd), 2);
  assert.deepEqual(sockets.arrived(), ["1", "3"]);
});

test("discard() forgets what was to be sent", () => {
  using sockets = pair();
  const block = new MessageBlock(1, 100);
  block.place(0, Buffer.from("a"), 1, sockaddr(LOOPBACK, sockets.client.port));
  block.reply(0, 1);
  block.discard();
  assert.equal(block.flush(sockets.server.fd), 0);
  assert.deepEqual(sockets.arrived(), []);
});

type Pair = Disposable & {
  readonly server: Bound;
  readonly client: Bound;
  toServer(text: string): void;
  // What has come to the client by now: on loopback a packet is there when sending it returns.
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
