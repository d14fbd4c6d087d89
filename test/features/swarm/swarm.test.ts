// Names of a swarm on one engine: what dns11 answers a container on an overlay network is what Docker's resolver behind it
// knows, nothing of it goes upstream, and it outlives dockerd for a while. With --strict every reply equals dockerd's.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { dataOf, dig } from "../../support/client/dig.ts";
import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { createOverlay, createService, initSwarm } from "../../support/engine/swarm.ts";
import { dns11 } from "../../support/program/dns11.ts";
import { SharedDns11 } from "../../support/program/shared-dns11.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";
import { LIMITS } from "../../../src/base/limits.ts";
import { pause, untilSame, waitFor } from "../../support/rig/wait.ts";
import { type Ports, portsAt } from "../../docker/differential/client.ts";
import { swarmQuestions } from "./questions.ts";
import { differences, queryBoth } from "../../docker/differential/run-both.ts";

interface VerboseNetwork {
  readonly Services: Readonly<
    Record<string, { readonly VIP: string; readonly Tasks: readonly { Name: string; EndpointIP: string }[] }>
  >;
}

/** Of each kind of question. */
const FLOOD = 150;
const UNHEALTHY = ["--health-cmd", "false", "--health-interval", "1s", "--health-retries", "1000"];

let engine: Engine;
let upstream: Upstream;
let client: Container;
let services: VerboseNetwork["Services"];
let docker: Ports;
const shared = new SharedDns11(() => engine);

before(async () => {
  engine = await startEngine({ liveRestore: false, resolvConf: "nameserver 127.0.0.1\n" });
  upstream = await startUpstream(engine);
  await initSwarm(engine);
  // With IPv6 addresses, which Docker tells nobody: each machine chooses them for itself.
  await createOverlay(engine, "mesh", ["--ipv6"]);
  await createNetwork(engine, "n1");
  await createService(engine, "web", { networks: ["name=mesh,alias=front,alias=Odd.Name_1"], replicas: 2 });
  await createService(engine, "rr", { networks: ["mesh"], args: ["--endpoint-mode", "dnsrr"] });
  await createService(engine, "sick", { networks: ["mesh"], args: UNHEALTHY });
  await createService(engine, "open", { args: ["--publish", "8080:80"] });
  await runContainer(engine, { name: "db", networks: ["n1"] });
  client = await runContainer(engine, { name: "client", networks: ["n1", { name: "mesh", aliases: ["me"] }] });
  // Before there is a second resolver in its namespace.
  docker = portsAt(client.pid);
  services = await waitFor("the tasks", async () => {
    const { Services: listed } = (await engine.api("/networks/mesh?verbose=true")) as VerboseNetwork;
    return listed["web"]?.Tasks.length === 2 && listed["rr"]?.Tasks.length === 1 ? listed : undefined;
  });
});
after(async () => {
  await shared[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

function tasksOf(service: string): string[] {
  return (services[service]?.Tasks ?? []).map((task) => task.EndpointIP).toSorted();
}

async function addresses(name: string, ...args: string[]): Promise<string[]> {
  const reply = await dig(client, name, ...args);
  return reply.status === "NOERROR" ? dataOf(reply).toSorted() : [reply.status];
}

test("names of a swarm come from Docker's resolver, and nothing of them goes upstream", async () => {
  const instance = await shared.under();
  const states = (await instance.status()).containers.map(({ name, state }) => [name.split(".")[0], state]);
  assert.deepEqual([...new Set(states.map(([, state]) => state))], ["attached"]);
  await upstream.forget();
  const vip = services["web"]?.VIP ?? "";
  const [task = assert.fail()] = services["web"]?.Tasks ?? [];
  const expected: Record<string, string[]> = {
    web: [vip],
    WEB: [vip],
    "web.mesh": [vip],
    "WEB.Mesh": [vip],
    front: [vip],
    "front.mesh": [vip],
    rr: tasksOf("rr"),
    "tasks.web": tasksOf("web"),
    "tasks.front": tasksOf("web"),
    "tasks.web.mesh": tasksOf("web"),
    [task.Name]: [task.EndpointIP],
    [`${task.Name}.mesh`]: [task.EndpointIP],
    client: [client.address("mesh")],
    me: [client.address("mesh")],
    db: [dataOf(await dig(client, "db.n1"))[0] ?? ""],
  };
  const found = async (): Promise<unknown> =>
    Object.fromEntries(
      await Promise.all(Object.keys(expected).map(async (name) => [name, await addresses(name)] as const)),
    );
  await untilSame("the names", found, expected);
  for (const name of ["web", "tasks.web", task.Name, "client"])
    assert.deepEqual(await addresses(name, "AAAA"), [], `${name}: no IPv6 address, but it exists`);
  assert.deepEqual(await addresses("web", "TXT"), []);
  assert.deepEqual(await addresses("-x", task.EndpointIP), [`${task.Name}.mesh.`]);
  assert.deepEqual(await addresses("-x", vip), ["NXDOMAIN"]);
  const ipv6 = client.address6("mesh");
  assert.deepEqual(await addresses("-x", ipv6), ["client.mesh."]);
  assert.deepEqual(await addresses("-x", ipv6.replace(/[^:]*$/, "ffff")), ["NXDOMAIN"], "nobody's");
  const ttl = (await dig(client, "web")).answer[0]?.ttl ?? assert.fail();
  assert.ok(ttl <= 2, `TTL ${ttl}`);
  assert.deepEqual(await upstream.queries(), []);
  const slot = task.Name.slice(0, task.Name.lastIndexOf("."));
  await waitFor("the engine's list", async () => ((await addresses(slot))[0] === task.EndpointIP ? true : undefined));
  assert.deepEqual(await addresses(`${slot}.mesh`), [task.EndpointIP]);
  assert.deepEqual(await addresses("sick"), ["NXDOMAIN"], "a service without a healthy task");
  assert.deepEqual(await addresses("tasks.sick"), ["NXDOMAIN"]);
  assert.deepEqual(await addresses("web.7"), ["NXDOMAIN"], "a slot without a task");
});

test("names, ps, explain and doctor show what the engine lists, and who answers", async () => {
  const instance = await shared.under();
  const command = async (...args: string[]): Promise<string> =>
    (await dns11([...args, "-H", engine.host, "--state-dir", instance.stateDir])).stdout;
  const vip = (services["web"]?.VIP ?? "").replaceAll(".", "\\.");
  const listed = await waitFor("the engine's list", async () => {
    const text = await command("names", "--in", "client");
    return text.includes("swarm service") ? text : undefined;
  });
  assert.match(listed, new RegExp(`^web +${vip}, virtual, 2 tasks on 1 machine .* swarm service on mesh$`, "m"));
  assert.match(listed, /^web\.1 +10\.\S+, on 127\.0\.0\.1 .* swarm task on mesh$/m);
  assert.match(listed, /^client .* n1$/m);
  // A dotted alias is only known from the list.
  for (const name of ["odd.name_1", "Odd.Name_1.mesh"])
    assert.deepEqual(await addresses(name), [services["web"]?.VIP], name);
  const explained = await command("explain", "web", "--in", "client", "-v");
  assert.match(explained, /a name of the swarm, from Docker's resolver/);
  assert.match(explained, new RegExp(`: ${vip}  swarm service web, 2 tasks on 1 machine$`, "m"));
  const [task = assert.fail()] = services["web"]?.Tasks ?? [];
  const shown = await command("ps");
  assert.match(shown, new RegExp(`^${task.Name} .* web on mesh: ${vip}, 2 tasks on 1 machine$`, "m"));
  assert.match(shown, /^rr\.1\.\w+ .* rr on mesh: 1 task on 1 machine$/m);
  assert.match(await command("names"), new RegExp(`^mesh +tasks\\.web +10\\.\\S+ 10\\.\\S+ 2 tasks on 1 machine`, "m"));
  assert.match(
    await command("explain", "sick", "--in", "client"),
    /"sick" has no running, healthy task on mesh.*\n.*docker service ps sick/,
  );
  assert.match(await command("explain", "web.9", "--in", "client"), /"web" has no running, healthy task on mesh/);
  const diagnosed = await command("doctor", "--all");
  assert.match(diagnosed, /network "mesh": \d services and \d tasks or containers on 1 machine/);
  // Of tasks without a name, and with the rules that a published port has.
  assert.equal(diagnosed.match(/ a reply; Docker has no name for the container$/gm)?.length, 2 * 2, diagnosed);
  assert.doesNotMatch(diagnosed, /drops packets|does not know Docker's names|docker restart/);
});

test("a name that neither knows is forwarded by dns11, and never by Docker's resolver", async () => {
  const instance = await shared.under();
  await upstream.forget();
  await dig(client, "nobody");
  await dig(client, "ok.example.org");
  const names = (await upstream.queries()).map(({ name }) => name.toLowerCase().replace(/\.$/, ""));
  // A query that a busy machine does not answer at once is sent again.
  assert.deepEqual([...new Set(names)].toSorted(), ["nobody", "ok.example.org"]);
  assert.match(engine.logs(), /empty alpn-id.*nobody/, "Docker's resolver refused to forward it");
  assert.doesNotMatch(engine.logs(), /empty alpn-id.*example/);
  assert.equal(instance.log.includes("internal error"), false, instance.log);
});

test("a container that floods with names, slots and addresses that nobody has is limited, and no other container", async () => {
  const attacker = await runContainer(engine, { name: "attacker", networks: ["mesh"] });
  await shared.under();
  const vip = services["web"]?.VIP ?? "";
  const subnet = vip.slice(0, vip.lastIndexOf("."));
  const list = join(engine.folder, "flood");
  const questions = Array.from({ length: FLOOD }, (_, n) => [
    `flood${n} A`,
    `flood${n}.mesh A`,
    `web.${n + 9} A`,
    `${(n % 50) + 200}.${subnet.split(".").toReversed().join(".")}.in-addr.arpa PTR`,
  ]);
  writeFileSync(list, `${questions.flat().join("\n")}\n`);
  await upstream.forget();
  const logged = refusalsIn(engine.logs());
  const startMs = performance.now();
  const flood = attacker.enter("dig", ["@127.0.0.11", "+tries=1", "+noall", "+comments", "-f", list]);
  let isOver = false;
  void flood.finally(() => (isOver = true)).catch(() => undefined);
  do {
    assert.deepEqual(await addresses("web"), [vip]);
    await pause(LIMITS.askedFreshMs / 4);
  } while (!isOver);
  await flood;
  const seconds = (performance.now() - startMs) / 1_000;
  const { burst, perSecond } = LIMITS.askedUnknown;
  const asked = refusalsIn(engine.logs()) - logged;
  assert.ok(asked >= burst && asked <= burst + perSecond * seconds + 1, `${asked} in ${seconds} s`);
  const forwarded = new Set((await upstream.queries()).map(({ name }) => name.toLowerCase()));
  assert.ok(forwarded.size <= asked, `${forwarded.size} forwarded, ${asked} asked for`);
  await waitFor("its share", async () => (dataOf(await dig(attacker, "web"))[0] === vip ? true : undefined));
  await attacker.remove();
});

// Docker's resolver has refused to forward.
function refusalsIn(log: string): number {
  return log.match(/empty alpn-id/g)?.length ?? 0;
}

test("with --strict, every reply to a container on a swarm network is the one that dockerd gives, octet by octet", async () => {
  const instance = await shared.under("strict: true");
  const { containers } = await instance.status();
  assert.equal(containers.find(({ name }) => name === "client")?.state, "attached");
  const [task = assert.fail()] = services["web"]?.Tasks ?? [];
  const own = [client.address("n1"), client.address("mesh"), client.address6("mesh")];
  const addressesOf = [task.EndpointIP, services["web"]?.VIP ?? "", ...own];
  const questions = swarmQuestions("client", task.Name, addressesOf);
  const project = new Map([["client", await client.inspect()]]);
  const resolvers = new Map([["client", { docker, ours: { udp: 53, tcp: 53 } }]]);
  const results = await queryBoth(project, resolvers, questions);
  const answered = results.filter(({ docker: { replies } }) => replies.length > 0).length;
  assert.ok(answered > questions.length / 2, `${answered} of ${questions.length} questions have a reply`);
  let left = differences(results, new Map());
  // What a busy machine has delayed is sent again.
  for (let tries = 0; tries < 4 && left.some(({ isByTime }) => isByTime); tries++) {
    const late = left.filter(({ isByTime }) => isByTime).map(({ question }) => question);
    const again = differences(await queryBoth(project, resolvers, late), new Map());
    left = [...left.filter(({ isByTime }) => !isByTime), ...again];
  }
  assert.deepEqual(
    left.map(({ report }) => report),
    [],
  );
});

test("while Docker's resolver is silent, its last answers stand in, and nothing is forwarded in its place", async () => {
  // It has asked nothing yet.
  await shared.stop();
  const instance = await shared.under();
  const vip = services["web"]?.VIP ?? "";
  assert.deepEqual(await addresses("web"), [vip]);
  await upstream.forget();
  await engine.kill("SIGSTOP");
  try {
    // From now on it has to ask again.
    await pause(LIMITS.askedFreshMs);
    assert.deepEqual(await addresses("web"), [vip]);
    const [own] = await addresses("db");
    assert.match(own ?? "", /^\d+\./, "the name of a container of this engine");
    assert.deepEqual(await addresses("rr"), ["SERVFAIL"], "never asked before");
    assert.deepEqual(await addresses("nobody"), ["SERVFAIL"]);
    assert.deepEqual(await upstream.queries(), []);
    await dig(client, "ok.example.org");
    assert.deepEqual(
      [...new Set((await upstream.queries()).map(({ name }) => name.replace(/\.$/, "")))],
      ["ok.example.org"],
    );
  } finally {
    await engine.kill("SIGCONT");
  }
  await waitFor("Docker's resolver", async () => ((await addresses("front"))[0] === vip ? true : undefined));
  assert.equal(instance.log.includes("internal error"), false, instance.log);
});

test("while dockerd is dead, last answers are served and nothing is forwarded; after its start, all is as before", async () => {
  const instance = await shared.under();
  const vip = services["web"]?.VIP ?? "";
  const tasks = tasksOf("web");
  assert.deepEqual([await addresses("web"), await addresses("tasks.web")], [[vip], tasks]);
  await upstream.forget();
  await engine.kill("SIGKILL");
  assert.deepEqual(
    [await addresses("web"), await addresses("tasks.web"), await addresses("web.mesh")],
    [[vip], tasks, ["SERVFAIL"]],
  );
  for (const name of ["rr", "nobody", "tasks.nobody"]) assert.deepEqual(await addresses(name), ["SERVFAIL"], name);
  assert.deepEqual(await addresses("-x", vip), ["SERVFAIL"]);
  const place = ["-H", engine.host, "--state-dir", instance.stateDir];
  const explained = await dns11(["explain", "web.mesh", "--in", "client", ...place]);
  assert.match(
    explained.stdout,
    /"web\.mesh" may be a name of the swarm, so it is not forwarded while Docker's resolver/,
  );
  assert.deepEqual(await upstream.queries(), []);
  await engine.startDaemon();
  // Not before the engine is a machine of its swarm again.
  await waitFor("the container to start", async () => {
    const { code } = await engine.dockerCommand(["start", "client"]);
    return code === 0 ? true : undefined;
  });
  await client.inspect();
  await instance.waitFor("client", "attached");
  await waitFor("the service", async () => ((await addresses("web"))[0] === vip ? true : undefined));
  const now = await waitFor("new tasks", async () => {
    const found = await addresses("tasks.web");
    return found.length === 2 && found.every((each) => each.startsWith("10.")) ? found : undefined;
  });
  assert.equal(now.length, 2);
  assert.equal(instance.log.includes("internal error"), false, instance.log);
});
