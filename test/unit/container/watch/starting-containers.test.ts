// Proves which containers are known before their first instruction, and with what.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import type { ContainerFact, NetworkFact } from "../../../../src/container/facts/fact.ts";
import { LabelKeys } from "../../../../src/container/facts/label-keys.ts";
import type { BirthHooks } from "../../../../src/container/namespace/sandbox-births.ts";
import type { ContainerJson } from "../../../../src/container/watch/engine-json.ts";
import { splitConfig } from "../../../../src/container/watch/split-config.ts";
import { StartingContainers } from "../../../../src/container/watch/starting-containers.ts";

const SANDBOX = { path: "/run/docker/netns/1", pid: 7 };

let starting: StartingContainers;
let births: BirthHooks;
let labels: LabelKeys;
let containers: Map<string, ContainerJson>;
let networks: Map<string, NetworkFact>;
let started: ContainerFact[];
let inspected: string[];
let isWanted: boolean;

beforeEach(() => {
  [containers, networks, labels] = [new Map(), new Map(), new LabelKeys()];
  [started, inspected, isWanted] = [[], [], true];
  starting = new StartingContainers({
    engine: {
      labels,
      container: async (id) => {
        inspected.push(id);
        return await Promise.resolve(containers.get(id));
      },
      network: async (name) =>
        await Promise.resolve({
          Id: `id-${name}`,
          Name: name,
          Driver: "bridge",
          IPAM: { Config: [{ Gateway: "172.18.0.1" }] },
        }),
    },
    images: { split: async (json) => await Promise.resolve(splitConfig(json, undefined)) },
    hooks: {
      births: { arm: () => undefined, follow: (hooks) => (births = hooks) },
      isWanted: () => isWanted,
      networkNamed: (name) => [...networks.values()].find((network) => network.name === name),
      onStarting: (fact) => started.push(fact),
    },
    barredBy: (id) => (id === "barred" ? "it crashed dns11" : undefined),
    hasNetwork: (id) => networks.has(id),
    onNetwork: (fact) => networks.set(fact.id, fact),
  });
});

function put(id: string, change: Partial<ContainerJson> = {}, on: readonly string[] = ["app"]): void {
  const joined = Object.fromEntries(on.map((name) => [name, { Aliases: ["alias"] }]));
  const json = { Id: id, Name: `/${id}`, State: { Running: false }, NetworkSettings: { Networks: joined }, ...change };
  containers.set(id, json);
}

/** Its namespace is made. */
function bear(groups: string): void {
  const id = births.ownerOf(groups);
  if (id !== undefined) births.onBorn(id, SANDBOX);
}

test("a container that was created is known when its namespace is born: without addresses, names and servers", async () => {
  put("a", { Config: { Labels: { "io.dns11.enable": "false" } } });
  await starting.created("a");
  assert.equal(started.length, 0);
  bear("0::/docker/a");
  const [fact] = started;
  assert.deepEqual(
    [fact?.isStarting, fact?.sandboxKey, fact?.pid, fact?.nameservers.kind, fact?.imageLabels.labels],
    [true, SANDBOX.path, SANDBOX.pid, "unknown", { "io.dns11.enable": "false" }],
  );
  assert.deepEqual(
    fact?.endpoints.map(({ networkId, names, ipv4, ipv4Gateway }) => [networkId, names, ipv4, ipv4Gateway]),
    [["id-app", [], undefined, "172.18.0.1"]],
  );
});

test("so is one that has ended and is started again, until it is known to run", async () => {
  put("a");
  starting.stopped(containers.get("a") ?? assert.fail());
  await new Promise((resolve) => setImmediate(resolve));
  bear("/docker/a");
  assert.equal(started.length, 1);
  starting.forget("a");
  bear("/docker/a");
  assert.equal(started.length, 1);
});

test("no one else is", async () => {
  put("bridged", {}, ["bridge"]);
  put("shared", {}, []);
  put("late", { State: { Running: true } });
  put("barred");
  for (const id of ["bridged", "shared", "late", "barred", "gone"]) {
    await starting.created(id);
    bear(`/docker/${id}`);
  }
  assert.deepEqual(started, []);
  assert.deepEqual(inspected.includes("barred"), false);
});

test("a group that is named like two of them is of neither", async () => {
  for (const id of ["one", "two"]) {
    put(id);
    await starting.created(id);
  }
  bear("/docker/one/two");
  assert.deepEqual(started, []);
});

test("nothing is asked where nobody is to be served before the start, and nothing is served that was asked before", async () => {
  put("a");
  await starting.created("a");
  isWanted = false;
  bear("/docker/a");
  await starting.created("a");
  starting.stopped(containers.get("a") ?? assert.fail());
  assert.deepEqual([started, inspected], [[], ["a"]]);
});

test("what was read before somebody wanted to know further labels does not count, nor a network that is gone", async () => {
  put("a");
  await starting.created("a");
  labels.add(["team"]);
  bear("/docker/a");
  await starting.created("a");
  networks.clear();
  bear("/docker/a");
  assert.deepEqual(started, []);
});

test("one with a health check is not healthy yet", async () => {
  put("a", { Config: { Healthcheck: { Test: ["CMD", "true"] } } });
  put("b", { Config: { Healthcheck: { Test: ["NONE"] } } });
  for (const id of ["a", "b"]) {
    await starting.created(id);
    bear(`/docker/${id}`);
  }
  assert.deepEqual(
    started.map(({ health }) => health),
    ["starting", undefined],
  );
});

test("only so many are remembered", async () => {
  for (let index = 0; index <= LIMITS.startingContainers; index++) {
    put(`n${index}-`);
    await starting.created(`n${index}-`);
  }
  bear("/docker/n0-");
  assert.deepEqual(started, []);
  bear("/docker/n1-");
  assert.equal(started.length, 1);
});
