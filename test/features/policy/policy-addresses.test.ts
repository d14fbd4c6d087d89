// Policies that enforce addresses, on a live engine. The meter is what arrives outside, never dns11's own word.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";

import type { PoliciesReport, PolicyContainer } from "../../../src/api/policies.ts";
import { dataOf, dig } from "../../support/client/dig.ts";
import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import type { CommandResult } from "../../support/program/command.ts";
import { type Dns11, dns11, replaceDns11, startDns11 } from "../../support/program/dns11.ts";
import { Internet, connectTo } from "../../support/rig/internet.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";

let engine: Engine;
let internet: Internet;
let upstream: Upstream;
let instance: Dns11;
let agent: Container;
let free: Container;
let db: Container;
let held: Container;
let unheld: Container;
/** A name server of the internet. */
const ELSEWHERE = "192.0.2.53";
const folder = mkdtempSync(join(tmpdir(), "d11-policy-addresses-"));
const file = join(folder, "dns11.yaml");

const POLICIES = `version: 1
policies:
  agents:
    for: [network=agents]
    mode: enforce
    addresses: enforce
    allow: ["a1.ok.test:443", "a2.ok.test", "**.wild.ok.test:22/tcp", "198.51.100.7:443", "a9.ok.test:443"]
    deny: [198.51.100.8]
`;

before(async () => {
  writeFileSync(file, POLICIES);
  engine = await startEngine();
  internet = await Internet.connect(engine.id);
  upstream = await startUpstream(engine);
  for (const network of ["agents", "open"]) await createNetwork(engine, network);
  agent = await runContainer(engine, { name: "agent", networks: ["agents"] });
  free = await runContainer(engine, { name: "free", networks: ["open"] });
  db = await runContainer(engine, { name: "db", networks: ["agents", "open"] });
  // What Docker's resolver forwards for these leaves from their own namespaces.
  held = await runContainer(engine, { name: "held", networks: ["agents"], dns: [ELSEWHERE] });
  unheld = await runContainer(engine, { name: "unheld", networks: ["open"], dns: [ELSEWHERE] });
  instance = await startDns11(engine, { args: ["--config", file] });
});
beforeEach(() => void internet.arrived());
after(async () => {
  rmSync(folder, { recursive: true });
  await instance[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await internet[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

async function command(...args: readonly string[]): Promise<CommandResult> {
  return await dns11([...args, "--state-dir", instance.stateDir, "-H", engine.host]);
}

test("an address is open once its name was answered, for the ports that the rule names", async () => {
  assert.equal(await connectTo(agent, "192.0.2.1", 443), "refused");
  assert.deepEqual(internet.arrived(), []);
  assert.deepEqual(dataOf(await dig(agent, "a1.ok.test")), ["192.0.2.1"]);
  assert.equal(await connectTo(agent, "192.0.2.1", 443), "open");
  assert.equal(await connectTo(agent, "192.0.2.1", 22), "refused");
  assert.deepEqual(dataOf(await dig(agent, "a2.ok.test")), ["192.0.2.2"]);
  for (const port of [443, 22]) assert.equal(await connectTo(agent, "192.0.2.2", port), "open");
  assert.deepEqual(dataOf(await dig(agent, "a3.wild.ok.test")), ["192.0.2.3"]);
  assert.equal(await connectTo(agent, "192.0.2.3", 22), "open");
  assert.equal(await connectTo(agent, "192.0.2.3", 443), "refused");
  assert.equal(await connectTo(agent, "192.0.2.99", 443), "refused");
});

test("blocks of the policy are open from the beginning, and names are nobody else's", async () => {
  assert.equal(await connectTo(agent, "198.51.100.7", 443), "open");
  assert.equal(await connectTo(agent, "198.51.100.7", 22), "refused");
  assert.equal(await connectTo(agent, "198.51.100.8", 443), "refused");
  // db is on that network, too, so the policy is for it.
  assert.equal(await connectTo(db, "192.0.2.2", 443), "refused");
  assert.equal(await connectTo(free, "192.0.2.99", 443), "open");
  assert.deepEqual(dataOf(await dig(free, "a77.ok.test")), ["192.0.2.77"]);
});

test("an address of a name that an operator allows is open, with every port", async () => {
  assert.equal((await dig(agent, "a55.ok.test")).status, "NXDOMAIN");
  const { code, stderr } = await command("policy", "allow", "a55.ok.test", "--in", "agent", "--for", "15m");
  assert.equal(code, 0, stderr);
  assert.deepEqual(dataOf(await dig(agent, "a55.ok.test")), ["192.0.2.55"]);
  for (const port of [443, 22]) assert.equal(await connectTo(agent, "192.0.2.55", port), "open");
});

test("a container that starts is closed before its first instruction, and open for what it asks at once", async () => {
  // Docker's resolver may answer the first query: then the address is not open yet, and the next one opens it.
  const script =
    "nc -w 2 192.0.2.66 443 </dev/null; until nslookup a9.ok.test >/dev/null 2>&1; nc -w 3 192.0.2.9 443 </dev/null; do :; done; echo ok; sleep 300";
  const started = await runContainer(engine, {
    name: "born",
    networks: ["agents"],
    command: ["sh", "-c", script],
  });
  await waitFor("its answer", async () => ((await engine.docker("logs", "born")).includes("ok") ? true : undefined));
  const arrived = internet.arrived();
  assert.ok(arrived.some((each) => each === "192.0.2.9:443/6"));
  assert.deepEqual(
    arrived.filter((each) => each.startsWith("192.0.2.66")),
    [],
  );
  await started.remove();
});

test("a container that is connected to its first network later is held there", async () => {
  const late = await runContainer(engine, {
    name: "connected",
    args: ["--network=none", "--label=io.dns11.policy=agents"],
  });
  await engine.docker("network", "disconnect", "none", "connected");
  await engine.docker("network", "connect", "open", "connected");
  await waitFor("its policy", async () =>
    (await connectTo(late, "192.0.2.88", 443)) === "refused" ? true : undefined,
  );
  await waitFor("an answer", async () => {
    await dig(late, "a1.ok.test");
    return (await connectTo(late, "192.0.2.1", 443)) === "open" ? true : undefined;
  });
  await late.remove();
});

for (const capability of ["SYS_ADMIN", "NET_ADMIN", "CAP_DAC_READ_SEARCH"]) {
  test(`a container with ${capability} cannot be held: it resolves nothing, and that is said`, async () => {
    const mighty = await runContainer(engine, {
      name: `with-${capability}`,
      networks: ["agents"],
      args: [`--cap-add=${capability}`],
    });
    await waitFor("the refusal", async () =>
      /not enforceable/.test((await dig(mighty, "a1.ok.test")).raw) ? true : undefined,
    );
    const reply = await dig(mighty, "a1.ok.test");
    assert.equal(reply.status, "NXDOMAIN");
    assert.match(reply.raw, /EDE: 15 \(Blocked\).*not enforceable: it may do what root/);
    assert.equal((await dig(mighty, "db")).status, "NXDOMAIN");
    await instance.logs(new RegExp(`with-${capability}.*a policy is not enforceable`));
    assert.equal(await connectTo(mighty, "192.0.2.1", 443), "refused");
    await mighty.remove();
  });
}

test("a container cannot be held while one that shares its namespace may do what root may do", async () => {
  const own = await runContainer(engine, { name: "own", networks: ["agents"] });
  await waitFor("an answer", async () => ((await dig(own, "a1.ok.test")).status === "NOERROR" ? true : undefined));
  const tool = await runContainer(engine, {
    name: "tool",
    args: [`--network=container:${own.id}`, "--cap-add=NET_ADMIN"],
  });
  const refusal = await waitFor("the refusal", async () => {
    const { raw } = await dig(own, "a1.ok.test");
    return /not enforceable/.test(raw) ? raw : undefined;
  });
  assert.match(refusal, /not enforceable: tool, which shares its network namespace, may do what root/);
  assert.equal(await connectTo(own, "192.0.2.9", 443), "refused");
  await tool.remove();
  await waitFor("an answer again", async () =>
    (await dig(own, "a1.ok.test")).status === "NOERROR" ? true : undefined,
  );
  await own.remove();
});

test("the list says what is held, when it is closed, and what was refused", async () => {
  assert.equal(await connectTo(agent, "192.0.2.94", 5432), "refused");
  const { stdout } = await command("policy", "--json");
  const { containers } = JSON.parse(stdout) as PoliciesReport;
  const found = containers.find(({ container }) => container === "agent") ?? assert.fail(stdout);
  assert.equal(found.addresses?.state, "enforced");
  assert.ok(found.addresses.refused.includes("192.0.2.94:5432/tcp"), stdout);
  const momentsOf = ({ birth, life, death }: PolicyContainer): boolean[] =>
    [birth, life, death].map((each) => each.isClosed);
  assert.deepEqual(momentsOf(found), [false, false, false]);
  assert.match(found.birth.because, /Docker's own resolver forwards any name for it, from the host/);
  const fromInside = containers.find(({ container }) => container === "held") ?? assert.fail(stdout);
  assert.deepEqual(momentsOf(fromInside), [true, true, true]);
  assert.match(
    (await command("policy")).stdout,
    /agent .*\n  refused connections in the last day: [\d.]+:\d+\/tcp, .* and \d+ more\n/,
  );
  const checked = async (name: string): Promise<number> => (await command("policy", "check", name, "agent")).code;
  assert.deepEqual(
    [await checked("a1.ok.test:443"), await checked("a1.ok.test:22"), await checked("a2.ok.test:22")],
    [0, 1, 0],
  );
  assert.deepEqual([await checked("a1.ok.test:443/udp"), await checked("a2.ok.test:443/udp")], [1, 0]);
  assert.deepEqual([await checked("198.51.100.7:443"), await checked("198.51.100.7:80")], [0, 1]);
});

test("a container that is gone leaves nothing in the kernel", async () => {
  const gone = await runContainer(engine, { name: "gone", networks: ["agents"] });
  const rules = async (): Promise<string> => (await engine.enter("nft", ["list", "ruleset"])).stdout;
  // Docker's resolver may answer before dns11 has attached.
  await waitFor("its rules", async () => {
    await dig(gone, "a1.ok.test");
    return (await rules()).includes(`judge-${gone.id.slice(0, 24)}`) ? true : undefined;
  });
  await gone.remove();
  await waitFor("its rules to go", async () => ((await rules()).includes(gone.id.slice(0, 24)) ? undefined : true));
});

test("what is open stays open for the process that replaces this one, and what is closed stays closed", async () => {
  await dig(agent, "a1.ok.test");
  let isDone = false;
  const attempts = (async (): Promise<string[]> => {
    const seen: string[] = [];
    while (!isDone) {
      seen.push(await connectTo(agent, "192.0.2.1", 443));
      seen.push(await connectTo(agent, "192.0.2.98", 443));
    }
    return seen;
  })();
  instance = await replaceDns11(engine, instance, { args: ["--config", file] });
  isDone = true;
  const seen = await attempts;
  assert.deepEqual(new Set(seen.filter((_each, index) => index % 2 === 0)), new Set(["open"]));
  assert.deepEqual(new Set(seen.filter((_each, index) => index % 2 === 1)), new Set(["refused"]));
  assert.deepEqual(dataOf(await dig(agent, "a12.wild.ok.test")), ["192.0.2.12"]);
  assert.equal(await connectTo(agent, "192.0.2.12", 22), "open");
  assert.deepEqual(
    internet.arrived().filter((each) => each.startsWith("192.0.2.98")),
    [],
  );
});

test("the tables outlive their process, and the next one goes on with them", async () => {
  await dig(agent, "a1.ok.test");
  instance.kill("SIGKILL");
  await instance.ended();
  assert.equal(await connectTo(agent, "192.0.2.1", 443), "open");
  assert.equal(await connectTo(agent, "192.0.2.97", 443), "refused");
  // Docker's resolver answers again; what it forwards is judged where it leaves.
  await waitFor("a query that is forwarded", async () => {
    await dig(unheld, "+time=1", "evil.ok.test");
    return internet.arrived().includes(`${ELSEWHERE}:53/17`) ? true : undefined;
  });
  await dig(held, "+time=1", "byheld.evil.ok.test");
  // Docker's resolver may repeat the other one's query meanwhile.
  assert.deepEqual(
    internet.arrivals().filter(({ bytes }) => bytes.includes("byheld")),
    [],
  );
  const late = await runContainer(engine, { name: "late", networks: ["agents"] });
  assert.equal(await connectTo(late, "192.0.2.1", 443), "refused");
  const { stateDir } = instance;
  instance = await startDns11(engine, { args: ["--config", file], stateDir });
  assert.equal(await connectTo(agent, "192.0.2.1", 443), "open");
  assert.deepEqual(dataOf(await dig(late, "a1.ok.test")), ["192.0.2.1"]);
  assert.equal(await connectTo(late, "192.0.2.1", 443), "open");
  assert.deepEqual(
    internet.arrived().filter((each) => each.startsWith("192.0.2.97")),
    [],
  );
  await late.remove();
});

test("an engine that is restarted finds its containers as closed as before", async () => {
  await engine.restartDaemon();
  await agent.start();
  assert.notEqual(await connectTo(agent, "192.0.2.96", 443), "open");
  await waitFor("dns11 to answer it again", async () => {
    await dig(agent, "a1.ok.test");
    return (await connectTo(agent, "192.0.2.1", 443)) === "open" ? true : undefined;
  });
  assert.deepEqual(
    internet.arrived().filter((each) => each.startsWith("192.0.2.96")),
    [],
  );
});

test("cleanup removes what holds containers only if it is told so, and says what opens", async () => {
  instance.kill("SIGKILL");
  await instance.ended();
  const { stateDir } = instance;
  const refused = await dns11(["cleanup", "--state-dir", stateDir, "-H", engine.host]);
  assert.notEqual(refused.code, 0);
  assert.match(refused.stderr, /Policies hold containers, and would not any more: .*agent.*--policies/s);
  assert.equal(await connectTo(agent, "192.0.2.93", 443), "refused");
  const done = await dns11(["cleanup", "--policies", "--state-dir", stateDir, "-H", engine.host]);
  assert.match(done.stdout, /agent: removed its policy, it reaches every address now/, done.stderr);
  assert.equal(await connectTo(agent, "192.0.2.93", 443), "open");
  instance = await startDns11(engine, { args: ["--config", file] });
  await waitFor("the policy", async () =>
    (await connectTo(agent, "192.0.2.92", 443)) === "refused" ? true : undefined,
  );
});

test("where tables cannot be one process's own, as before Linux 6.9, a flush of nftables closes what it has opened", async () => {
  const { stateDir } = instance;
  instance.kill("SIGKILL");
  await instance.ended();
  await dns11(["cleanup", "--policies", "--state-dir", stateDir, "-H", engine.host]);
  // The kernel makes none its own that are there already.
  for (const family of ["inet", "netdev"]) await engine.enter("nft", ["add", "table", family, "dns11-policy"]);
  instance = await startDns11(engine, { args: ["--config", file] });
  await waitFor("the policy", async () =>
    (await connectTo(agent, "192.0.2.91", 443)) === "refused" ? true : undefined,
  );
  assert.deepEqual(dataOf(await dig(agent, "a1.ok.test")), ["192.0.2.1"]);
  for (const family of ["inet", "netdev"])
    assert.equal((await engine.enter("nft", ["delete", "table", family, "dns11-policy"])).code, 0);
  await instance.logs(/another program has removed the tables of policies, and they are made again/);
  await waitFor("the policy again", async () =>
    (await connectTo(agent, "192.0.2.90", 443)) === "refused" ? true : undefined,
  );
  // Its network is closed until the container is applied again, with what was open.
  await waitFor("the address that was open", async () =>
    (await connectTo(agent, "192.0.2.1", 443)) === "open" ? true : undefined,
  );
  assert.deepEqual(dataOf(await dig(agent, "a2.ok.test")), ["192.0.2.2"]);
  assert.equal(await connectTo(agent, "192.0.2.2", 443), "open");
});

test("without the policy everything is open again", async () => {
  writeFileSync(file, "version: 1\n");
  await instance.reload();
  await waitFor("an open address", async () =>
    (await connectTo(agent, "192.0.2.95", 443)) === "open" ? true : undefined,
  );
});

test("a process that replaces this one, without the policy, removes what it held", async () => {
  writeFileSync(file, POLICIES);
  await instance.reload();
  await waitFor("the policy", async () =>
    (await connectTo(agent, "192.0.2.89", 443)) === "refused" ? true : undefined,
  );
  writeFileSync(file, "version: 1\n");
  instance = await replaceDns11(engine, instance, { args: ["--config", file] });
  await waitFor("an open address", async () =>
    (await connectTo(agent, "192.0.2.89", 443)) === "open" ? true : undefined,
  );
  await waitFor("the tables to go", async () =>
    (await engine.enter("nft", ["list", "tables"])).stdout.includes("dns11-policy") ? undefined : true,
  );
});
