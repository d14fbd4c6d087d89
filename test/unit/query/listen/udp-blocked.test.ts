// Proves that a client to which the kernel refuses to send costs no other client an answer. This file moves its thread
// into its own network namespace, in which a rule drops packets to one port; the namespace ends with the process.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";

import { errnoName, lastErrno, sendTo, unshareNetworkNamespace } from "../../../../src/kernel/libc.ts";
import { UdpListener, packetOwnersOf } from "../../../../src/query/listen/udp.ts";
import { SYSTEM_PATH } from "../../../support/program/command.ts";
import { aQuery } from "../../../support/scripted/builders.ts";
import { LOOPBACK, UdpClient, bindUdp, sockaddr } from "../../support/loopback.ts";
import { clientOnOneNetwork, udpParts } from "../../support/listening.ts";
import { readReply } from "../../support/reply.ts";

const isRoot = process.getuid?.() === 0;

if (isRoot) {
  unshareNetworkNamespace();
  run("ip", ["link", "set", "lo", "up"]);
}

test(
  "clients whose replies the kernel refuses cost the others nothing, and are counted",
  { skip: !isRoot },
  async () => {
    await using blocked = new UdpClient();
    await using good = new UdpClient();
    block(blocked.port);
    const { fd, port } = bindUdp();
    const served = clientOnOneNetwork();
    const parts = udpParts();
    const listener = new UdpListener(fd, "127.0.0.1", packetOwnersOf(served), parts);
    // First, in the middle, twice in a row, last: sendmmsg stops at each of them.
    const order = [blocked, good, good, blocked, blocked, good, blocked];
    for (const [id, sender] of order.entries()) sender.send(aQuery({ id }), port);
    const ids = [];
    for (let count = 0; count < 3; count++) ids.push(readReply(await good.receive()).id);
    assert.deepEqual(ids, [1, 2, 5]);
    assert.deepEqual([served.counters.unsent, served.counters.queries, parts.block.flushes.length], [4, 7, 1]);

    for (const [id, sender] of [blocked, good].entries()) sender.send(aQuery({ id, name: "slow" }), port);
    await parts.upstream.until(2);
    parts.upstream.answer(0);
    parts.upstream.answer(1);
    assert.equal(readReply(await good.receive()).id, 1);
    assert.equal(served.counters.unsent, 5);
    assert.deepEqual(parts.defects, []);
    listener.close();
  },
);

// Checks what the kernel reports to a sender; otherwise the test would prove nothing.
function block(port: number): void {
  run("nft", ["add table ip test; add chain ip test out { type filter hook output priority 0; }"]);
  run("nft", [`add rule ip test out udp dport ${port} drop`]);
  const { fd } = bindUdp();
  assert.equal(sendTo(fd, Buffer.of(1), sockaddr(LOOPBACK, port)), -1);
  assert.equal(errnoName(lastErrno()), "EPERM");
}

function run(command: string, args: readonly string[]): void {
  execFileSync(command, args, { env: { PATH: SYSTEM_PATH } });
}
