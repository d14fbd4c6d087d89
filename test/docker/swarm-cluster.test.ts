// Names of a swarm of two engines, each in a network namespace of its own, connected by VXLAN: what runs on the other
// machine resolves as it does with Docker, through a rolling update, a drained machine and a manager that goes away.
// Engines of two releases, so that a question with and one without a guard are both asked.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { dataOf, dig } from "../support/client/dig.ts";
import { type Container, runContainer } from "../support/engine/container.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { ensureImage } from "../support/engine/image.ts";
import { createOverlay, createService, initSwarm } from "../support/engine/swarm.ts";
import { type Dns11, startDns11 } from "../support/program/dns11.ts";
import { connectByWire } from "../support/rig/wire.ts";
import { waitFor } from "../support/rig/wait.ts";

const ADDRESSES = ["192.168.77.1", "192.168.77.2"] as const;

let manager: Engine;
let worker: Engine;
let wire: AsyncDisposable;
let near: Container;
let far: Container;
let nearDns: Dns11;
let farDns: Dns11;

before(async () => {
  [manager, worker] = await Promise.all([startEngine({ suite: "forky" }), startEngine({ suite: "trixie" })]);
  wire = await connectByWire(new Map([manager, worker].map(({ id }, at) => [id, `${ADDRESSES[at] ?? ""}/24`])));
  await ensureImage(worker);
  await initSwarm(manager, ADDRESSES[0]);
  const token = await manager.docker("swarm", "join-token", "--quiet", "worker");
  await worker.docker("swarm", "join", "--token", token, "--advertise-addr", ADDRESSES[1], `${ADDRESSES[0]}:2377`);
  await createOverlay(manager, "mesh");
  await createService(manager, "web", { networks: ["name=mesh,alias=front"], replicas: 2 });
  await createService(manager, "agent", { networks: ["mesh"], args: ["--mode", "global"] });
  await createService(manager, "rr", { networks: ["mesh"], replicas: 2, args: ["--endpoint-mode", "dnsrr"] });
  const options = (name: string): object => ({ name, networks: [{ name: "mesh", aliases: ["both"] }] });
  near = await runContainer(manager, options("near"));
  far = await runContainer(worker, options("far"));
  nearDns = await startDns11(manager);
  farDns = await startDns11(worker);
});
after(async () => {
  for (const each of [nearDns, farDns, wire, manager, worker]) await each[Symbol.asyncDispose]();
});

async function addresses(client: Container, name: string, ...args: string[]): Promise<string[]> {
  const reply = await dig(client, name, ...args);
  return reply.status === "NOERROR" ? dataOf(reply).toSorted() : [reply.status];
}

// What gossip has told the machine of a client.
async function tasksOf(engine: Engine, service: string): Promise<string[]> {
  const { Services: services = {} } = (await engine.api("/networks/mesh?verbose=true")) as {
    readonly Services?: Readonly<Record<string, { readonly Tasks: readonly { readonly EndpointIP: string }[] }>>;
  };
  return (services[service]?.Tasks ?? []).map((task) => task.EndpointIP).toSorted();
}

// Both clients resolve it to as many addresses, the same ones.
async function agreed(name: string, count: number): Promise<readonly string[]> {
  return await waitFor(`${count} addresses of ${name} on both machines`, async () => {
    const [one, other] = await Promise.all([addresses(near, name), addresses(far, name)]);
    const isComplete = one.length === count && one.every((each) => /^\d/.test(each));
    return isComplete && one.join(" ") === other.join(" ") ? one : undefined;
  });
}

test("tasks, services and containers of the other machine resolve on both, and so do names that both have", async () => {
  for (const { containers } of [await nearDns.status(), await farDns.status()])
    assert.deepEqual([...new Set(containers.map(({ state }) => state))], ["attached"]);
  assert.deepEqual(await agreed("near", 1), [near.address("mesh")]);
  assert.deepEqual(await agreed("far", 1), [far.address("mesh")]);
  assert.deepEqual(await agreed("both", 2), [near.address("mesh"), far.address("mesh")].toSorted());
  const tasks = await agreed("tasks.web", 2);
  assert.deepEqual(await tasksOf(worker, "web"), tasks);
  assert.deepEqual(await agreed("tasks.front", 2), tasks);
  assert.equal(
    (await agreed("web", 1)).some((vip) => tasks.includes(vip)),
    false,
  );
  assert.equal((await agreed("tasks.agent", 2)).length, 2, "one on each machine");
  assert.deepEqual(await agreed("rr", 2), await agreed("tasks.rr", 2));
  assert.deepEqual(await addresses(near, "-x", far.address("mesh")), ["far.mesh."]);
  assert.deepEqual(await addresses(far, "-x", near.address("mesh")), ["near.mesh."]);
});

test("a drained machine and a rolling update: names follow, and the name of the service never fails", async () => {
  const vip = await agreed("web", 1);
  const node = (await worker.docker("info", "--format", "{{.Swarm.NodeID}}")).trim();
  await manager.docker("node", "update", "--availability", "drain", node);
  await waitFor("the tasks to move", async () => {
    assert.deepEqual(await addresses(near, "web"), vip);
    const agents = await addresses(near, "tasks.agent");
    return agents.length === 1 && /^\d/.test(agents[0] ?? "") ? true : undefined;
  });
  await manager.docker("node", "update", "--availability", "active", node);
  await agreed("tasks.agent", 2);
  const old = await agreed("tasks.web", 2);
  await manager.docker("service", "update", "--detach", "--quiet", "--force", "web");
  await waitFor("new tasks", async () => {
    assert.deepEqual(await addresses(near, "web"), vip);
    const now = await addresses(near, "tasks.web");
    return now.length === 2 && !now.some((each) => old.includes(each)) ? true : undefined;
  });
  assert.equal(
    (await agreed("tasks.web", 2)).some((each) => old.includes(each)),
    false,
  );
});

test("a manager that goes away takes no name of the other machine with it", async () => {
  const vip = await agreed("web", 1);
  await manager.stopDaemon();
  assert.deepEqual(await addresses(far, "web"), vip);
  assert.deepEqual(await addresses(far, "far"), [far.address("mesh")]);
  await waitFor("the tasks of the other machine to be gone", async () => {
    const agents = await addresses(far, "tasks.agent");
    return agents.length === 1 && /^\d/.test(agents[0] ?? "") ? true : undefined;
  });
});
