// Proves that missing EDNS support is remembered per container: the authoritative servers of a name may reject EDNS
// behind any server.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import { RandomIds } from "../../../../src/base/lib/random-ids.ts";
import { MessageBlock } from "../../../../src/kernel/message-block.ts";
import { PacketBatch } from "../../../../src/kernel/packet-batch.ts";
import { Nameserver } from "../../../../src/query/upstream/nameserver.ts";
import { ReplyBudget } from "../../../../src/query/upstream/udp-socket.ts";

const [ATTACKER, VICTIM] = [1, 2];

test("a server that rejected EDNS for one container is queried with EDNS for the others", () => {
  const nameserver = aNameserver();
  nameserver.markWithoutEdns(0, ATTACKER);
  assert.equal(nameserver.speaksEdns(1, ATTACKER), false);
  assert.equal(nameserver.speaksEdns(1, VICTIM), true);
  assert.equal(nameserver.speaksEdns(1), false, "the status report shows it");
  assert.equal(nameserver.speaksEdns(LIMITS.withoutEdnsMs, ATTACKER), true);
  assert.equal(nameserver.speaksEdns(LIMITS.withoutEdnsMs), true);
});

function aNameserver(): Nameserver {
  const parts = {
    block: new MessageBlock(1, 512),
    batch: new PacketBatch(),
    budget: new ReplyBudget(1),
    ids: new RandomIds(),
    now: () => 0,
    socketsMax: 1,
    pools: new Set<never>(),
    sockets: { open: 0 },
  };
  return new Nameserver({ address: "192.0.2.1", port: 53, from: "host" }, parts, () => undefined);
}
