// Proves when packets leave, and through which socket: when the callback that added them returns, and before that if there is no
// room for more.

import assert from "node:assert/strict";
import { closeSync } from "node:fs";
import { test } from "node:test";

import { LIMITS } from "../../../src/base/limits.ts";
import { addressOf, errnoName, receive } from "../../../src/kernel/libc.ts";
import { CONNECTED, PacketBatch, type PacketSender } from "../../../src/kernel/packet-batch.ts";
import { callbackReturns } from "../support/callback.ts";
import { LOOPBACK, bindUdp, dialHere, sockaddr } from "../support/loopback.ts";

const BYTES = Buffer.allocUnsafeSlow(0x10000);

class Sender implements PacketSender<string> {
  readonly fd: number;
  readonly unsent: string[] = [];

  constructor(fd: number) {
    this.fd = fd;
  }

  onUnsent(owner: string, errno: number): void {
    this.unsent.push(`${owner} ${errnoName(errno)}`);
  }
}

class Rig implements Disposable {
  readonly batch = new PacketBatch();
  readonly #receivers = [bindUdp(), bindUdp()] as const;
  readonly senders = [new Sender(bindUdp().fd), new Sender(bindUdp().fd)] as const;
  // One that is connected to the first receiver.
  readonly connected = new Sender(dialHere({ from: "host", address: LOOPBACK, port: this.#receivers[0].port }, "udp"));
  // One address for all, as a listener has it: only the port differs.
  readonly #to = sockaddr(LOOPBACK, 0);

  // A packet with this text, by one of two senders to one of two receivers.
  add(
    text: string,
    { by = 0, to = 0, length = text.length }: { by?: 0 | 1; to?: 0 | 1; length?: number } = {},
  ): boolean {
    const packet = Buffer.alloc(length, text);
    this.#to.writeUInt16BE(this.#receivers[to].port, 2);
    const isTaken = this.batch.add(this.senders[by], packet, this.#to, text);
    // The caller may use its memory for the next one.
    packet.fill(0);
    return isTaken;
  }

  // What a receiver has by now.
  arrived(receiver: 0 | 1 = 0): string {
    let all = "";
    for (;;) {
      const length = receive(this.#receivers[receiver].fd, addressOf(BYTES), BYTES.length);
      if (length < 0) return all;
      all += BYTES.toString("latin1", 0, length);
    }
  }

  [Symbol.dispose](): void {
    for (const { fd } of [...this.senders, this.connected, ...this.#receivers]) closeSync(fd);
  }
}

test("the packets of a callback leave when it returns, each to its own receiver", async () => {
  using rig = new Rig();
  for (let turn = 0; turn < 2; turn++) {
    for (const text of "abc") assert.equal(rig.add(text, { to: text === "b" ? 1 : 0 }), true);
    assert.deepEqual([rig.arrived(0), rig.arrived(1)], ["", ""]);
    await callbackReturns();
    assert.deepEqual([rig.arrived(0), rig.arrived(1)], ["ac", "b"]);
  }
});

test("those of one socket leave together, in their order, whichever socket's came in between", () => {
  using rig = new Rig();
  for (const [index, text] of [..."abcdef"].entries()) rig.add(text, { by: index % 2 === 0 ? 0 : 1 });
  rig.batch.add(rig.connected, Buffer.from("g"), CONNECTED, "g");
  rig.batch.flush();
  assert.equal(rig.arrived(), "acebdfg");
  rig.batch.flush();
  assert.equal(rig.arrived(), "");
});

test("they leave when there is no room for more, and one that is too large is left to the caller", () => {
  using rig = new Rig();
  for (let count = 0; count <= LIMITS.packetBatch; count++) rig.add("x");
  assert.equal(rig.arrived(), "x".repeat(LIMITS.packetBatch));
  rig.batch.flush();
  assert.equal(rig.arrived(), "x");
  assert.equal(rig.add("a", { length: 4096 }), true);
  assert.equal(rig.add("b", { length: 4097 }), false);
  rig.batch.flush();
  assert.equal(rig.arrived().length, 4096);
});

test("a packet that cannot be sent is reported to its sender, with its owner and why; all others leave", () => {
  using rig = new Rig();
  // No packet is longer than 65,507 bytes, so it is the address that the kernel rejects: port 0 of nobody.
  const unusable = sockaddr("0.0.0.0", 0);
  rig.add("a");
  rig.batch.add(rig.senders[0], Buffer.from("b"), unusable, "b");
  rig.add("c", { by: 1 });
  rig.add("d");
  rig.batch.flush();
  assert.equal(rig.arrived(), "adc");
  assert.deepEqual([rig.senders[0].unsent, rig.senders[1].unsent], [["b EINVAL"], []]);
});
