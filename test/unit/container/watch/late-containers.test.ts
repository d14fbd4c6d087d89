// Proves when a container whose facts do not come is late, and when it is known again.

import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import type { NetworkJson } from "../../../../src/container/watch/engine-json.ts";
import { LateContainers } from "../../../../src/container/watch/late-containers.ts";

let told: string[];
let networks: Record<string, NetworkJson["Containers"]>;
let late: LateContainers;

beforeEach(() => {
  mock.timers.enable({ apis: ["setTimeout"] });
  told = [];
  networks = { n: { a: { IPv4Address: "172.18.0.2/16", IPv6Address: "" } }, m: { a: { IPv6Address: "fd00::2/64" } } };
  late = new LateContainers(
    {
      network: async (id) => {
        const found = networks[id];
        if (found === undefined) throw new Error("away");
        return await Promise.resolve({ Id: id, Name: id, Containers: found });
      },
    },
    {
      onLate: (id, endpoints) =>
        told.push(
          `${id} late ${endpoints
            .flatMap(({ ipv4, ipv6 }) => [ipv4, ipv6])
            .filter(Boolean)
            .join(" ")}`,
        ),
      onKnown: (id) => told.push(`${id} known`),
    },
  );
});
afterEach(() => mock.timers.reset());

async function pass(ms: number): Promise<void> {
  mock.timers.tick(ms);
  for (let round = 0; round < 5; round++) await new Promise((resolve) => setImmediate(resolve));
}

test("one that is known in time is nobody's business", async () => {
  late.connected("a", "n");
  const inspect = late.began("a");
  await pass(LIMITS.factsLateMs - 1);
  late.known("a", inspect);
  await pass(LIMITS.factsLateMs);
  assert.deepEqual(told, []);
});

test("one that is not has the addresses that its networks say, until an inspect ends that began after the last of them", async () => {
  late.connected("a", "n");
  const inspect = late.began("a");
  await pass(LIMITS.factsLateMs);
  assert.deepEqual(told, ["a late 172.18.0.2"]);
  late.connected("a", "m");
  late.known("a", inspect);
  await pass(LIMITS.factsLateMs);
  assert.deepEqual(told, ["a late 172.18.0.2", "a late 172.18.0.2 fd00::2"]);
  late.known("a", late.began("a"));
  assert.deepEqual(told.slice(2), ["a known"]);
});

test("a failed inspect makes it late at once; a network that cannot be read is read again", async () => {
  late.connected("a", "x");
  late.failed("a");
  await pass(0);
  assert.deepEqual(told, []);
  networks["x"] = { a: { IPv4Address: "172.19.0.2/16" } };
  await pass(LIMITS.factsLateMs);
  assert.deepEqual(told, ["a late 172.19.0.2"]);
});

test("what was listed before waits for its turn, and is late when its own inspect takes long", async () => {
  const listed = { Id: "b", NetworkSettings: { Networks: { n: { IPAddress: "172.18.0.9", GlobalIPv6Address: "" } } } };
  late.listed(listed);
  await pass(10 * LIMITS.factsLateMs);
  assert.deepEqual(told, []);
  const inspect = late.began("b");
  await pass(LIMITS.factsLateMs);
  assert.deepEqual(told, ["b late 172.18.0.9"]);
  late.known("b", inspect);
  late.failed("c");
  assert.deepEqual(told.slice(1), ["b known"]);
});
