// The engine's list of a swarm network was written by other machines: what is no name or address is left out, and what is
// too much, too.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { EngineRequest } from "../../../src/container/watch/engine.ts";
import {
  readManagers,
  readNetwork,
  readServices,
  readTasks,
  swarmList,
} from "../../../src/features/swarm/engine-lists.ts";
import { SWARM_LIMITS } from "../../../src/features/swarm/limits.ts";
import { apiThat } from "./api.ts";

test("services, tasks and machines are read in the forms of all releases", () => {
  const task = { Name: "web.1.x", EndpointIP: "10.0.1.3", Info: { "Host IP": "192.0.2.1" } };
  const Services = { web: { VIP: "10.0.1.2", Tasks: [task] }, rr: { VIP: "<nil>", Tasks: null }, late: { VIP: "" } };
  const { services, omitted } = swarmList("net", { Services });
  assert.equal(omitted, 0);
  assert.deepEqual(services, [
    {
      name: "web",
      virtualAddress: "10.0.1.2",
      aliases: [],
      tasks: [{ name: "web.1.x", address: "10.0.1.3", host: "192.0.2.1" }],
    },
    { name: "rr", virtualAddress: undefined, aliases: [], tasks: [] },
    { name: "late", virtualAddress: undefined, aliases: [], tasks: [] },
  ]);
  assert.deepEqual(swarmList("net", { Services: null }).services, []);
});

test("a manager adds aliases and services without a task, of this network alone", () => {
  const spec = (Name: string, Target: string): object => ({
    Name,
    TaskTemplate: { Networks: [{ Target, Aliases: ["a"] }] },
  });
  const services = [{ Spec: spec("web", "net") }, { Spec: spec("sick", "net") }, { Spec: spec("far", "other") }];
  const list = swarmList("net", { Services: { web: { VIP: "10.0.1.2", Tasks: [] } } }, services);
  assert.deepEqual(
    list.services.map(({ name, virtualAddress, aliases }) => [name, virtualAddress, aliases]),
    [
      ["web", "10.0.1.2", ["a"]],
      ["sick", undefined, ["a"]],
    ],
  );
});

test("lies of other machines are left out, and no list is longer than its limit", () => {
  const bad = [{}, { Name: "x", EndpointIP: "nowhere" }, { Name: "y".repeat(300), EndpointIP: "10.0.0.1" }];
  const host = { Name: "z", EndpointIP: "10.0.0.1", Info: { "Host IP": "\u001b[2J" } };
  const { services } = swarmList("net", { Services: { web: { Tasks: [...bad, host] }, ["s".repeat(300)]: {} } });
  assert.deepEqual(
    services.map(({ name, tasks }) => [name, tasks]),
    [["web", [{ name: "z", address: "10.0.0.1", host: "" }]]],
  );
  const tasks = Array.from({ length: SWARM_LIMITS.tasks + 5 }, (_, at) => ({ Name: `t${at}`, EndpointIP: "10.0.0.1" }));
  const many = Object.fromEntries(Array.from({ length: SWARM_LIMITS.services }, (_, at) => [`s${at}`, {}]));
  const full = swarmList("net", { Services: { web: { Tasks: tasks }, ...many } });
  assert.equal(full.services.length, SWARM_LIMITS.services);
  assert.equal(full.services[0]?.tasks.length, SWARM_LIMITS.tasks);
  assert.equal(full.omitted, 6);
});

test("what is requested: of machines that may write much, and that not every engine has", async () => {
  const requests: EngineRequest[] = [];
  const api = apiThat((request) => void requests.push(request));
  await readNetwork(api, "a/b");
  await readServices(api);
  await readTasks(api);
  assert.deepEqual(
    requests.map(({ path, options, notHere }) => [path, JSON.stringify(options), notHere]),
    [
      ["/networks/a%2Fb?", '{"verbose":true}', [404]],
      ["/services", "{}", [406, 503]],
      ["/tasks?", JSON.stringify({ filters: '{"desired-state":["running"]}' }), [406, 503]],
    ],
  );
  for (const { bytesMax } of requests) assert.equal(bytesMax, SWARM_LIMITS.listBytes);
});

test("the other managers are read without their ports; what is none is left out", async () => {
  const addresses = ["192.0.2.1:2377", "[2001:db8::7]:2377", "192.0.2.9:2377", "nonsense", undefined];
  const RemoteManagers = addresses.map((Addr) => (Addr === undefined ? {} : { Addr }));
  const engines = [{ Swarm: { RemoteManagers, NodeAddr: "192.0.2.9" } }, { Swarm: { RemoteManagers: null } }, {}];
  const found = await Promise.all(engines.map(async (info) => await readManagers(apiThat(() => info))));
  assert.deepEqual(found, [["192.0.2.1", "2001:db8::7"], [], []]);
});
