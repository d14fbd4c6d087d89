// Names of a swarm of three engines, each in a network namespace of its own, connected by VXLAN: what runs on other machines
// resolves as it does with Docker, through a rolling update, a drained machine, a machine that gossip does not reach, and a
// manager that goes away. Engines of three releases: the oldest forwards what others refuse to.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { dataOf, dig } from "../../support/client/dig.ts";
import { Container, runContainer } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { ensureImage } from "../../support/engine/image.ts";
import { createOverlay, createService, initSwarm } from "../../support/engine/swarm.ts";
import { type Dns11, dns11, startDns11, WITHOUT_KEEPER } from "../../support/program/dns11.ts";
import { startUpstream } from "../../support/servers/upstream.ts";
import { connectByWire } from "../../support/rig/wire.ts";
import { untilSame, waitFor } from "../../support/rig/wait.ts";

// A manager and two workers.
const SUITES = ["forky", "trixie", "bookworm"] as const;
const GOSSIP_PORT = 7946;
// Engines look for a machine that they have lost every now and then. A poll is a process in each container.
const GOSSIP = { timeoutMs: 180_000, everyMs: 250 } as const;

let engines: Engine[] = [];
let manager: Engine;
let worker: Engine;
let oldWorker: Engine;
let wire: AsyncDisposable;
let clients: Container[] = [];
let near: Container;
let far: Container;
let old: Container;
let instances: Dns11[] = [];

before(async () => {
  engines = await Promise.all(SUITES.map(async (suite) => await startEngine({ suite })));
  [manager, worker, oldWorker] = engines as [Engine, Engine, Engine];
  wire = await connectByWire(new Map(engines.map(({ id }, at) => [id, `${addressOf(at)}/24`])));
  await initSwarm(manager, addressOf(0));
  const token = await manager.docker("swarm", "join-token", "--quiet", "worker");
  const join = async (each: Engine, at: number): Promise<void> => {
    await ensureImage(each);
    await each.docker("swarm", "join", "--token", token, "--advertise-addr", addressOf(at), `${addressOf(0)}:2377`);
  };
  await Promise.all([join(worker, 1), join(oldWorker, 2)]);
  await createOverlay(manager, "mesh");
  await createService(manager, "web", { networks: ["name=mesh,alias=front"], replicas: 2 });
  const onHost = ["--mode", "global", "--publish", "mode=host,target=80,published=8081"];
  await createService(manager, "agent", { networks: ["mesh"], args: onHost });
  await createService(manager, "rr", { networks: ["mesh"], replicas: 2, args: ["--endpoint-mode", "dnsrr"] });
  clients = await Promise.all(
    engines.map(async (engine, at) => {
      const name = ["near", "far", "old"][at] ?? "";
      return await runContainer(engine, { name, networks: [{ name: "mesh", aliases: ["all"] }] });
    }),
  );
  [near, far, old] = clients as [Container, Container, Container];
  instances = await Promise.all(engines.map(async (engine) => await startDns11(engine, { env: WITHOUT_KEEPER })));
});
after(async () => {
  for (const each of [...instances, wire, ...engines]) await each[Symbol.asyncDispose]();
});

function addressOf(at: number): string {
  return `192.168.77.${at + 1}`;
}

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

// The address that a service's task has on one machine.
async function tasksOn(service: string, engine: Engine): Promise<string[]> {
  const ids = await engine.docker("ps", "--quiet", "--filter", `label=com.docker.swarm.service.name=${service}`);
  const found = ids.split("\n").map(async (id) => (await Container.of(engine, id)).address("mesh"));
  return await Promise.all(found);
}

// In the machine's own namespace, as a firewall would.
async function cutGossip(engine: Engine): Promise<void> {
  const rules = ["input", "output"].flatMap((hook) => [
    `add chain inet cut ${hook} { type filter hook ${hook} priority -300; }`,
    `add rule inet cut ${hook} meta l4proto { tcp, udp } th dport ${GOSSIP_PORT} drop`,
    `add rule inet cut ${hook} meta l4proto { tcp, udp } th sport ${GOSSIP_PORT} drop`,
  ]);
  const { code, stderr } = await engine.enter("nft", [["add table inet cut", ...rules].join("; ")]);
  assert.equal(code, 0, stderr);
}

// All clients resolve it to as many addresses, the same ones.
async function agreed(name: string, count: number): Promise<readonly string[]> {
  return await waitFor(
    `${count} addresses of ${name} on all machines`,
    async () => {
      const [one = [], ...others] = await Promise.all(clients.map(async (client) => await addresses(client, name)));
      const isComplete = one.length === count && one.every((each) => /^\d/.test(each));
      return isComplete && others.every((other) => other.join(" ") === one.join(" ")) ? one : undefined;
    },
    GOSSIP,
  );
}

// Waits until the doctor says this of a machine; returns all that it says.
async function verdictOf(at: number, wanted: RegExp): Promise<string> {
  const place = ["-H", engines[at]?.host ?? "", "--state-dir", instances[at]?.stateDir ?? ""];
  // Of one container; what it says of the swarm is the same, and takes a fraction of the time.
  const args = ["doctor", clients[at]?.name ?? "", "--all", ...place];
  const read = async (): Promise<string | undefined> => {
    const text = (await dns11(args)).stdout.replaceAll(/\s+/g, " ");
    return wanted.test(text) ? text : undefined;
  };
  return await waitFor(`the doctor to say ${wanted.source}`, read, { ...GOSSIP, everyMs: 1_000 });
}

test("tasks, services and containers of other machines resolve on all, and so do names that all have", async () => {
  for (const { containers } of await Promise.all(instances.map(async (each) => await each.status())))
    assert.deepEqual([...new Set(containers.map(({ state }) => state))], ["attached"]);
  const all = clients.map(async (client) => {
    assert.deepEqual(await agreed(client.name, 1), [client.address("mesh")]);
    const pointers = async (): Promise<unknown> =>
      await Promise.all(clients.map(async (from) => await addresses(from, "-x", client.address("mesh"))));
    await untilSame(
      "the pointers on each machine",
      pointers,
      clients.map(() => [`${client.name}.mesh.`]),
    );
  });
  await Promise.all(all);
  assert.deepEqual(await agreed("all", 3), clients.map((client) => client.address("mesh")).toSorted());
  const tasks = await agreed("tasks.web", 2);
  assert.deepEqual(await tasksOf(worker, "web"), tasks);
  assert.deepEqual(await agreed("tasks.front", 2), tasks);
  assert.equal(
    (await agreed("web", 1)).some((vip) => tasks.includes(vip)),
    false,
  );
  assert.equal((await agreed("tasks.agent", 3)).length, 3, "one on each machine, with a port of its host");
  assert.deepEqual(await agreed("rr", 2), await agreed("tasks.rr", 2));
});

test("ps and names show services with the tasks and machines of the whole swarm", async () => {
  const command = async (...args: string[]): Promise<string> =>
    (await dns11([...args, "-H", oldWorker.host, "--state-dir", instances[2]?.stateDir ?? ""])).stdout;
  const [vip = ""] = await agreed("agent", 1);
  await agreed("tasks.agent", 3);
  const row = new RegExp(`^agent\\.\\w+\\.\\w+ .* agent on mesh: ${vip}, 3 tasks on 3 machines$`, "m");
  // The engine's list is read every now and then, and may be from before gossip told of the last container.
  const shows = async (args: readonly string[], text: RegExp): Promise<void> => {
    await waitFor(
      `${args[0]} to show ${text.source}`,
      async () => text.test(await command(...args)) || undefined,
      GOSSIP,
    );
  };
  await shows(["ps"], row);
  await shows(["names", "--in", "old"], new RegExp(`^near +${near.address("mesh")}, on 192.168.77.1 `, "m"));
  await shows(
    ["explain", "far", "--in", "old"],
    new RegExp(`: ${far.address("mesh")}  far on machine 192.168.77.2$`, "m"),
  );
});

test("an engine before 24 forwards what may be the swarm's and is not, as it does without dns11; no other name", async () => {
  assert.match(oldWorker.version, /^20\.10\./);
  await using upstream = await startUpstream(oldWorker);
  for (const name of ["nobody", "nobody.mesh", "ok.example.org", "web", "tasks.web.mesh"]) await dig(old, name);
  const received = (await upstream.queries()).map(({ name }) => name.toLowerCase().replace(/\.$/, ""));
  assert.deepEqual([...new Set(received)].toSorted(), ["nobody", "nobody.mesh", "ok.example.org"]);
  for (const name of ["nobody", "nobody.mesh"])
    assert.ok(received.filter((each) => each === name).length >= 2, `${name}: by Docker's resolver, and by dns11`);
});

test("a machine that gossip does not reach: the doctor names what is missing, and after that all agree again", async () => {
  const agents = await agreed("tasks.agent", 3);
  const vip = await agreed("web", 1);
  const [agent = assert.fail()] = await tasksOn("agent", worker);
  await cutGossip(worker);
  await manager.docker("service", "scale", "--detach", "rr=3");
  await waitFor(
    "gossip to give up the machine",
    async () => ((await addresses(near, "tasks.agent")).length === 2 ? true : undefined),
    GOSSIP,
  );
  const verdict = await verdictOf(0, /network "mesh": the machines disagree, gossip here lacks /);
  assert.match(verdict, /7946\/tcp, 7946\/udp/);
  await verdictOf(1, /only this machine is known here, and gossip does not reach 192\.168\.77\.1 at 7946\/tcp/);
  assert.deepEqual(await addresses(far, "tasks.agent"), [agent], "it knows its own task");
  const place = ["-H", worker.host, "--state-dir", instances[1]?.stateDir ?? ""];
  await waitFor("explain to know it", async () => {
    const { stdout } = await dns11(["explain", "near", "--in", "far", ...place]);
    return /gossip has brought none on mesh/.test(stdout.replaceAll(/\s+/g, " ")) ? true : undefined;
  });
  assert.deepEqual(await addresses(near, "web"), vip);
  await worker.enter("nft", ["delete", "table", "inet", "cut"]);
  assert.deepEqual(await agreed("tasks.agent", 3), agents);
  await agreed("tasks.rr", 3);
  await verdictOf(0, /network "mesh": 3 services and \d+ tasks or containers on 3 machines, as the manager has them/);
});

test("a drained machine and a rolling update: names follow, and the name of the service never fails", async () => {
  const vip = await agreed("web", 1);
  const node = (await worker.docker("info", "--format", "{{.Swarm.NodeID}}")).trim();
  await manager.docker("node", "update", "--availability", "drain", node);
  await waitFor("the tasks to move", async () => {
    assert.deepEqual(await addresses(near, "web"), vip);
    const agents = await addresses(near, "tasks.agent");
    return agents.length === 2 && /^\d/.test(agents[0] ?? "") ? true : undefined;
  });
  await manager.docker("node", "update", "--availability", "active", node);
  await agreed("tasks.agent", 3);
  const last = await agreed("tasks.web", 2);
  await manager.docker("service", "update", "--detach", "--quiet", "--force", "web");
  await waitFor("new tasks", async () => {
    assert.deepEqual(await addresses(near, "web"), vip);
    const now = await addresses(near, "tasks.web");
    return now.length === 2 && !now.some((each) => last.includes(each)) ? true : undefined;
  });
  assert.equal(
    (await agreed("tasks.web", 2)).some((each) => last.includes(each)),
    false,
  );
});

test("a manager that goes away takes no name of the other machines with it", async () => {
  const vip = await agreed("web", 1);
  await manager.stopDaemon();
  assert.deepEqual(await addresses(far, "web"), vip);
  assert.deepEqual(await addresses(far, "far"), [far.address("mesh")]);
  assert.deepEqual(await addresses(far, "old"), [old.address("mesh")]);
  await waitFor("its task to be gone", async () => {
    const agents = await addresses(far, "tasks.agent");
    return agents.length === 2 && /^\d/.test(agents[0] ?? "") ? true : undefined;
  });
});
