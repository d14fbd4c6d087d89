/**
 * Engines with settings that change what a container's network namespace is: without Docker's own firewall rules on the host, and
 * with containers in a user namespace. Each is served, answered by the kernel, and handed back.
 */
import assert from "node:assert/strict";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { dataOf, dig } from "../support/client/dig.ts";
import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { stdoutOf } from "../support/program/command.ts";
import { WITHOUT_KEEPER, startDns11 } from "../support/program/dns11.ts";
import { Internet, LINK, connectTo } from "../support/rig/internet.ts";
import { waitFor } from "../support/rig/wait.ts";
import { startUpstream } from "../support/servers/upstream.ts";

const DOCKERS_TTL = 600;
const DNS11S_TTL = 5;
/** Of "nobody", who owns the containers' files. */
const NOBODY = "65534:65534";
const FIRST_MAPPED = 100_000;

/** Docker's user namespaces take a range of ids in files of the host, which are in memory here, and a folder that they may enter. */
async function startWithUserNamespaces(): Promise<Engine> {
  const engine = await startEngine();
  await engine.stopDaemon();
  chmodSync(engine.folder, 0o711);
  const ranges = `printf 'nobody:${FIRST_MAPPED}:65536\n' | tee /etc/subuid > /etc/subgid`;
  const inMounts = ["--target", String(engine.hostPid), "--mount", "--", "sh", "-c", ranges];
  assert.equal((await engine.exec("nsenter", inMounts)).code, 0);
  writeFileSync(join(engine.folder, "daemon.json"), JSON.stringify({ "userns-remap": NOBODY }));
  await engine.startDaemon();
  return engine;
}

async function ttlIn(asker: Container): Promise<number | undefined> {
  return (await dig(asker, "other")).answer[0]?.ttl;
}

async function isServedAndHandedBack(engine: Engine): Promise<void> {
  await createNetwork(engine, "n1");
  const web = await runContainer(engine, { name: "web", networks: ["n1"] });
  const other = await runContainer(engine, { name: "other", networks: ["n1"] });
  await using instance = await startDns11(engine, { env: WITHOUT_KEEPER });
  await instance.waitFor("web", "attached");
  await instance.waitForKernel();
  assert.deepEqual((await instance.container("web"))?.answers, { by: "kernel" });
  // The first answer of a name is the process's, the next one the kernel's.
  for (const _ of [1, 2]) {
    const reply = await dig(web, "other");
    assert.deepEqual([dataOf(reply), reply.answer[0]?.ttl], [[other.address("n1")], DNS11S_TTL]);
  }
  instance.kill("SIGKILL");
  await waitFor("Docker's resolver to answer", async () => ((await ttlIn(web)) === DOCKERS_TTL ? true : undefined));
}

test("without firewall rules of Docker (iptables: false)", async () => {
  await using engine = await startEngine({ daemonJson: { iptables: false, ip6tables: false } });
  await isServedAndHandedBack(engine);
});

test("with containers in a user namespace (userns-remap)", async () => {
  await using engine = await startWithUserNamespaces();
  assert.match(await engine.docker("info", "--format", "{{json .SecurityOptions}}"), /name=userns/);
  await isServedAndHandedBack(engine);
});

const POLICY = `version: 1
policies:
  agents:
    for: [network=agents]
    mode: enforce
    addresses: enforce
    allow: [a1.ok.test]
`;

test("a policy holds a container with NET_ADMIN in a user namespace, where no link of the host is within its reach", async () => {
  await using engine = await startWithUserNamespaces();
  await createNetwork(engine, "agents");
  await using _internet = await Internet.connect(engine.id);
  await using _upstream = await startUpstream(engine);
  const agent = await runContainer(engine, { name: "agent", networks: ["agents"], args: ["--cap-add=NET_ADMIN"] });
  const file = join(engine.folder, "dns11.yaml");
  writeFileSync(file, POLICY);
  await using instance = await startDns11(engine, { args: ["--config", file], env: WITHOUT_KEEPER });
  await instance.waitFor("agent", "attached");
  assert.deepEqual(dataOf(await dig(agent, "a1.ok.test")), ["192.0.2.1"]);
  assert.equal(await connectTo(agent, "192.0.2.1", 443), "open");
  assert.equal(await connectTo(agent, "192.0.2.99", 443), "refused");
  // By the number that its namespace has for the host's, it would leave by the host's own link.
  const shown = stdoutOf(await engine.enter("ip", ["-json", "link", "show", "dev", LINK]), "ip");
  const [{ ifindex }] = JSON.parse(shown) as [{ readonly ifindex: number }];
  const link = `ip link add link if${ifindex} link-netnsid 0 name way-out type macvlan`.split(" ");
  const { State } = (await engine.api(`/containers/${agent.id}/json`)) as { readonly State: { readonly Pid: number } };
  const inside = ["--target", String(State.Pid), "--net", "--user", "--preserve-credentials", "--", ...link];
  const refused = await engine.exec("nsenter", inside);
  assert.match(refused.stderr, /Operation not permitted/);
  // The machine's root may.
  const [command = "", ...args] = link;
  stdoutOf(await agent.enter(command, args), "ip");
});
