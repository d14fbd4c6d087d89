// What a list of a swarm network says beside its names: that all other machines have gone, which gossip may have lost.

import assert from "node:assert/strict";
import { test } from "node:test";

import { SwarmLists } from "../../../../../src/container/names/swarm/swarm-lists.ts";
import { LIMITS } from "../../../../../src/base/limits.ts";
import { swarmList } from "../../../../../src/container/watch/swarm-json.ts";

test("alone after there were others: for how long, and forgotten after a while", () => {
  let nowMs = 0;
  const lists = new SwarmLists(() => nowMs);
  const put = (...hosts: readonly string[]): void => {
    const Tasks = hosts.map((host, at) => ({
      Name: `web.${at}`,
      EndpointIP: `10.0.1.${at}`,
      Info: { "Host IP": host },
    }));
    lists.put("mesh", swarmList("mesh", { Services: { web: { VIP: "10.0.1.200", Tasks } } }));
  };
  assert.equal(lists.aloneForMs("mesh"), undefined, "never listed");
  put("192.0.2.1");
  assert.equal(lists.aloneForMs("mesh"), undefined, "there never were others");
  nowMs = 1_000;
  put("192.0.2.1", "192.0.2.2");
  nowMs = 60_000;
  assert.equal(lists.aloneForMs("mesh"), undefined, "the last list has others, however old it is");
  put("192.0.2.1");
  nowMs = 90_000;
  put("192.0.2.1");
  assert.equal(lists.aloneForMs("mesh"), 89_000);
  nowMs += LIMITS.swarmServiceMs;
  assert.equal(lists.aloneForMs("mesh"), undefined, "it may be so on purpose");
});
