// Proves when replies leave: together when the callback that brought them returns, and before that if another socket has a reply,
// if there is no room for more, and if their listener is closed.

import assert from "node:assert/strict";
import { closeSync } from "node:fs";
import { test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import { addressOf, receive } from "../../../../src/kernel/libc.ts";
import { ReplyBatch } from "../../../../src/query/listen/reply-batch.ts";
import { UdpListener, sendersOf } from "../../../../src/query/listen/udp.ts";
import { aClient, aQuery } from "../../../support/scripted/builders.ts";
import { LOOPBACK, UdpClient, bindUdp, sockaddr } from "../../support/loopback.ts";
import { clientOnOneNetwork, udpParts } from "../../support/listening.ts";

const BYTES = Buffer.allocUnsafeSlow(0x10000);

class Rig implements Disposable {
  readonly batch = new ReplyBatch();
  readonly client = aClient();
  readonly #ours = [bindUdp(), bindUdp()] as const;
  readonly #askers = [bindUdp(), bindUdp()] as const;
  // One address for all, as the listener has it: only the port differs.
  readonly #to = sockaddr(LOOPBACK, 0);

  // A reply of one byte, or of a given length, by one of our two sockets to one of two askers.
  add(
    text: string,
    { by = 0, to = 0, length = text.length }: { by?: 0 | 1; to?: 0 | 1; length?: number } = {},
  ): boolean {
    const reply = Buffer.alloc(length, text);
    this.#to.writeUInt16BE(this.#askers[to].port, 2);
    const isTaken = this.batch.add(this.#ours[by], this.client, reply, this.#to);
    // The caller may use its memory for the next one.
    reply.fill(0);
    return isTaken;
  }

  // What an asker has received by now.
  arrived(asker: 0 | 1 = 0): string {
    let all = "";
    for (;;) {
      const length = receive(this.#askers[asker].fd, addressOf(BYTES), BYTES.length);
      if (length < 0) return all;
      all += BYTES.toString("latin1", 0, length);
    }
  }

  [Symbol.dispose](): void {
    for (const { fd } of [...this.#ours, ...this.#askers]) closeSync(fd);
  }
}

test("the replies of a callback leave when it returns, each to its own asker", async () => {
  const rig = new Rig();
  for (let turn = 0; turn < 2; turn++) {
    for (const text of "abc") assert.equal(rig.add(text, { to: text === "b" ? 1 : 0 }), true);
    assert.deepEqual([rig.arrived(0), rig.arrived(1)], ["", ""]);
    await callbackReturns();
    assert.deepEqual([rig.arrived(0), rig.arrived(1)], ["ac", "b"]);
  }
  rig[Symbol.dispose]();
});

test("they leave before the reply of another socket is taken, and when there is no room for more", () => {
  const rig = new Rig();
  rig.add("a");
  rig.add("b", { by: 1 });
  assert.equal(rig.arrived(), "a");
  rig.batch.flush();
  assert.equal(rig.arrived(), "b");
  for (let count = 0; count <= LIMITS.upstreamBatch; count++) rig.add("x");
  assert.equal(rig.arrived(), "x".repeat(LIMITS.upstreamBatch));
  rig.batch.flush();
  assert.equal(rig.arrived(), "x");
  rig.batch.flush();
  assert.equal(rig.arrived(), "");
  rig[Symbol.dispose]();
});

test("a reply that is too large for the batch is left to the caller", () => {
  const rig = new Rig();
  assert.equal(rig.add("a", { length: 4096 }), true);
  assert.equal(rig.add("b", { length: 4097 }), false);
  rig.batch.flush();
  assert.equal(rig.arrived().length, 4096);
  rig[Symbol.dispose]();
});

test("what cannot be sent is counted for its client", async () => {
  const rig = new Rig();
  rig.add("a");
  rig[Symbol.dispose]();
  await callbackReturns();
  assert.equal(rig.client.counters.unsent, 1);
});

test("replies leave before their listener is closed", async () => {
  await using asker = new UdpClient();
  const { fd, port } = bindUdp();
  const parts = udpParts();
  const listener = new UdpListener(fd, "127.0.0.1", sendersOf(clientOnOneNetwork()), parts);
  for (const id of [1, 2]) asker.send(aQuery({ id, name: "slow" }), port);
  await parts.upstream.until(2);
  for (const index of [0, 1]) parts.upstream.answer(index);
  listener.close();
  for (const id of [1, 2]) assert.equal((await asker.receive()).readUInt16BE(0), id);
  assert.deepEqual(parts.defects, []);
});

// Before promises that are ready, so before any other work.
async function callbackReturns(): Promise<void> {
  await new Promise<void>((resolve) => process.nextTick(resolve));
}
