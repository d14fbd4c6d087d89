// What a list of a swarm network says beside its names: that all other machines have gone, which gossip may have lost.

import assert from "node:assert/strict";
import { test } from "node:test";

import { swarmList } from "../../../src/features/swarm/engine-lists.ts";
import { SWARM_LIMITS } from "../../../src/features/swarm/limits.ts";
import { SwarmLists } from "../../../src/features/swarm/swarm-lists.ts";

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
  nowMs += SWARM_LIMITS.serviceMs;
  assert.equal(lists.aloneForMs("mesh"), undefined, "it may be so on purpose");
});

test("a list that says the same in another order is no change, and what is no longer listed is a service for an hour", () => {
  let nowMs = 0;
  const lists = new SwarmLists(() => nowMs);
  const put = (...names: readonly string[]): boolean => {
    const Tasks = names.map((name) => ({
      Name: `${name}.1.x`,
      EndpointIP: "10.0.1.7",
      Info: { "Host IP": "192.0.2.1" },
    }));
    const Services = Object.fromEntries(
      ["API", ...names.toSorted()].map((name) => [name, { VIP: "10.0.1.200", Tasks }]),
    );
    return lists.put("mesh", swarmList("mesh", { Services }));
  };
  assert.deepEqual([put("web", "db"), put("db", "web"), put("db")], [true, false, true]);
  assert.deepEqual([lists.isService("mesh", "api"), lists.isService("mesh", "web")], [true, true]);
  nowMs = SWARM_LIMITS.serviceMs - 1;
  assert.equal(put("db"), false);
  assert.equal(lists.isService("mesh", "web"), true);
  nowMs++;
  assert.deepEqual([lists.isService("mesh", "web"), lists.isService("mesh", "db")], [false, true]);
  nowMs += SWARM_LIMITS.serviceMs;
  assert.equal(lists.isService("mesh", "db"), false, "the list is too old");
});
