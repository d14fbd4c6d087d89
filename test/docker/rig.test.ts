// The test rig itself: the other tests depend on it. dns11 does not run here; every resolver is dockerd's own.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { check } from "../support/program/command.ts";
import { createNetwork, runContainer } from "../support/engine/container.ts";
import { dataOf, dig } from "../support/client/dig.ts";
import { startEngine } from "../support/engine/engine.ts";
import { startInnerEngine, whyNoInnerEngine, whyNoMachineInside } from "../support/engine/inner-engine.ts";
import { cgroupsNamed, type Leftovers, processesOf } from "../support/rig/leftovers.ts";
import { Netns } from "../support/rig/netns.ts";
import type { Suite } from "../support/engine/suite.ts";
import { startUpstream } from "../support/servers/upstream.ts";
import { waitFor } from "../support/rig/wait.ts";

const VERSIONS: Readonly<Record<Suite, RegExp>> = {
  bookworm: /^20\.10\./,
  trixie: /^26\.1\./,
  forky: /^(2[89]|[3-9]\d)\./,
};

for (const [suite, version] of Object.entries(VERSIONS) as [Suite, RegExp][]) {
  await test(`an engine of ${suite} resolves container names, also after a restart`, async () => {
    const resources = await useEngine(suite, version);
    await assertNothingLeft(resources);
  });
}

async function useEngine(suite: Suite, version: RegExp): Promise<Resources> {
  await using engine = await startEngine({ suite, liveRestore: true });
  assert.match(engine.version, version);
  await using upstream = await startUpstream(engine);
  await createNetwork(engine, "one");
  await createNetwork(engine, "two", { ipv6: true });
  const first = await runContainer(engine, { name: "first", networks: ["one"], hostname: "host1" });
  const second = await runContainer(engine, {
    name: "second",
    networks: [{ name: "one", aliases: ["other"], links: ["first:linked"] }, "two"],
    labels: { colour: "blue" },
  });

  assert.deepEqual(dataOf(await dig(first, "second")), [second.address("one")]);
  assert.deepEqual(dataOf(await dig(first, "other", "+tcp")), [second.address("one")]);
  assert.deepEqual(dataOf(await dig(second, "linked")), [first.address("one")]);
  assert.match(second.address6("two"), /^fd11:/);
  assert.equal((await second.inspect()).Config.Labels["colour"], "blue");
  assert.equal((await first.exec("hostname")).stdout, "host1\n");
  assert.match(await first.readFile("/etc/resolv.conf"), /^nameserver 127\.0\.0\.11$/m);

  assert.deepEqual(dataOf(await dig(first, "Name7.OK.test")), ["192.0.2.7"]);
  assert.deepEqual(
    (await upstream.queriesFor("name7.ok.test")).map(({ name, type, transport }) => ({ name, type, transport })),
    [{ name: "Name7.OK.test", type: 1, transport: "udp" }],
  );

  const throughDockerd = statSync(`/proc/${engine.pid}/root${first.sandboxKey}`);
  assert.equal(throughDockerd.ino, statSync(first.netnsPath).ino);
  const { pid } = first;
  await engine.kill("SIGKILL");
  await engine.startDaemon();
  assert.equal((await first.inspect()).State.Pid, pid);
  assert.deepEqual(dataOf(await dig(second, "first")), [first.address("one")]);
  return resourcesOf({ id: engine.id, folder: engine.folder });
}

test("where the machine lacks a capability that a newer engine needs inside a container, tests of it say so", () => {
  assert.match(whyNoInnerEngine(29, false) || "", /^Docker 29 inside a container needs CAP_SYS_RESOURCE/);
  for (const [major, givesResources] of [
    [29, true],
    [28, false],
  ] as const) {
    assert.equal(whyNoInnerEngine(major, givesResources), false);
  }
});

const skip = await whyNoMachineInside();
await test("an engine inside a container serves its own containers", { skip }, async () => {
  const resources = await useInnerEngine();
  await assertNothingLeft(resources);
});

async function useInnerEngine(): Promise<Resources> {
  // An address that containers reach directly, unlike a loopback, where dockerd must forward for them.
  await using engine = await startEngine({ suite: "bookworm", resolvConf: "nameserver 10.53.0.1\n" });
  await using upstream = await startUpstream(engine, { address: "10.53.0.1" });
  await createNetwork(engine, "outside");
  const neighbour = await runContainer(engine, { name: "neighbour", networks: ["outside"] });
  const inner = await startInnerEngine(engine, { name: "inner", networks: ["outside"], mounts: [process.cwd()] });
  await createNetwork(inner, "inside");
  const first = await runContainer(inner, { name: "first", networks: ["inside"] });
  const second = await runContainer(inner, { name: "second", networks: ["inside"] });

  assert.deepEqual(dataOf(await dig(first, "second")), [second.address("inside")]);
  assert.deepEqual(dataOf(await dig(second, "first")), [first.address("inside")]);
  assert.deepEqual(dataOf(await dig(inner, "neighbour")), [neighbour.address("outside")]);
  assert.deepEqual(dataOf(await dig(first, "deep3.ok.test")), ["192.0.2.3"]);
  assert.equal((await upstream.queriesFor("deep3.ok.test")).length, 1);
  const node = await inner.exec(process.execPath, ["-p", "process.version"]);
  assert.equal(node.stdout, `${process.version}\n`);
  assert.equal((await inner.exec("ls", [process.cwd()])).code, 0);
  return resourcesOf({ id: engine.id, folder: engine.folder });
}

await test("the upstream server replies as documented for each name", async () => {
  await using netns = await Netns.create();
  await using upstream = await startUpstream(netns, { address: "10.53.0.2" });
  const query = async (...args: string[]) => await dig(netns, "@10.53.0.2", ...args);

  assert.deepEqual(dataOf(await query("x9.ok.test", "AAAA")), ["2001:db8::9"]);
  assert.deepEqual(dataOf(await query("x9.cname.test")), ["x9.ok.test.", "192.0.2.9"]);
  assert.deepEqual((await query("x.nodata.test")).authority[0]?.type, "SOA");
  assert.equal((await query("x.nx.test")).status, "NXDOMAIN");
  assert.equal((await query("example.org")).status, "NXDOMAIN");
  assert.equal((await query("x.servfail.test")).status, "SERVFAIL");
  assert.equal((await query("x.refused.test")).status, "REFUSED");
  assert.equal((await query("x.silent.test", "+time=1")).timedOut, true);
  assert.equal((await query("x.wrongid.test", "+time=1")).timedOut, true);
  assert.equal((await query("x.garbage.test", "+time=1")).status, "");
  assert.deepEqual(dataOf(await query("x4.10.slow.test")), ["192.0.2.4"]);
  assert.equal((await query("x.tc.test", "+ignore")).flags.has("tc"), true);
  assert.equal((await query("x.tc.test")).tcp, true);
  assert.deepEqual(dataOf(await query("x.rr.test", "TYPE65280")), ["\\# 4 DEADBEEF"]);
  for (const type of ["A", "TXT", "TYPE65280"]) {
    assert.equal((await query("x.big.test", type, "+bufsize=1232")).size, 992, type);
    assert.equal((await query("x.big.test", type, "+noedns", "+ignore")).flags.has("tc"), true, type);
    assert.equal((await query("x.oversize.test", type, "+noedns")).size, 992, type);
  }
  const chaos = await query("Version.Bind", "TXT", "CH", "+dnssec", "+tcp");
  assert.deepEqual(chaos.question, { name: "Version.Bind.", class: "CH", type: "TXT" });
  const received = (await upstream.queriesFor("version.bind"))[0];
  assert.equal(received?.name, "Version.Bind");
  assert.equal(received.class, 3);
  assert.equal(received.id, chaos.id);
  assert.equal(received.transport, "tcp");
  assert.equal(received.opt?.dnssecOk, true);
  await upstream.forget();
  assert.deepEqual(await upstream.queries(), []);
});

await test("an engine that cannot start leaves nothing behind", async () => {
  await assert.rejects(startEngine({ suite: "bookworm", args: ["--no-such-flag"] }), /no-such-flag/);
  assert.deepEqual(createdBy(process.pid), []);
});

await test("a killed test leaves nothing behind", async () => {
  const engine = JSON.stringify(new URL("../support/engine/engine.js", import.meta.url).href);
  const container = JSON.stringify(new URL("../support/engine/container.js", import.meta.url).href);
  const program = `
    const { startEngine } = await import(${engine});
    const { runContainer } = await import(${container});
    const engine = await startEngine({ suite: "bookworm" });
    await runContainer(engine);
    console.log(JSON.stringify({ id: engine.id, folder: engine.folder }));
    setInterval(() => {}, 1000);
  `;
  const args = ["--input-type=module", "--eval", program];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const line = await createInterface({ input: child.stdout })[Symbol.asyncIterator]().next();
  const resources = resourcesOf(JSON.parse(String(line.value)) as Leftovers);
  child.kill("SIGKILL");
  await waitFor("the removal of what the test created", () => (createdBy(child.pid).length === 0 ? true : undefined));
  await assertNothingLeft(resources);
});

type Resources = { readonly leftovers: Leftovers; readonly pids: readonly number[] };

function resourcesOf(leftovers: Leftovers): Resources {
  const pids = processesOf(leftovers);
  assert.ok(pids.length > 2, "an engine has processes");
  return { leftovers, pids };
}

async function assertNothingLeft({ leftovers: { id, folder = "" }, pids }: Resources): Promise<void> {
  const alive = pids.filter((pid) => /^State:\s+[^Z]/m.test(textOf(`/proc/${pid}/status`)));
  assert.deepEqual(alive, [], "processes");
  // A program of another test may have been started just then.
  await waitFor("the mounts to be gone", () =>
    readdirSync("/proc").some((entry) => textOf(`/proc/${entry}/mountinfo`).includes(id)) ? undefined : true,
  );
  assert.doesNotMatch(await check("ip", ["netns", "list"]), new RegExp(`^${id}\\b`, "m"));
  assert.deepEqual(cgroupsNamed(id), [], "control groups");
  assert.equal(existsSync(folder), false);
}

// Everything with a name that contains the PID of a test process.
function createdBy(pid: number | undefined): string[] {
  const folders = ["/run/netns", tmpdir(), "/sys/fs/cgroup", "/sys/fs/cgroup/pids"].filter((folder) =>
    existsSync(folder),
  );
  return folders.flatMap((folder) => readdirSync(folder).filter((name) => name.startsWith(`d11-${pid}-`)));
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
