/**
 * Kernel answers: plain queries for local names are answered at lo in the container's namespace,
 * with what the process says; every container sees its own names; and where the kernel cannot answer, the process does.
 */
import assert from "node:assert/strict";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import type { QueryReport } from "../../../src/api/queries.ts";
import type { AnsweredByReport } from "../../../src/base/model/answered-by.ts";
import { ControlClient } from "../../../src/api/control-client.ts";
import { keeperPath } from "../../../src/api/state-paths.ts";
import { type DigReply, dataOf, dig } from "../../support/client/dig.ts";
import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import type { CommandOptions, CommandResult } from "../../support/program/command.ts";
import { type Dns11, dns11, replaceDns11, startDns11 } from "../../support/program/dns11.ts";
import { SharedDns11 } from "../../support/program/shared-dns11.ts";
import { inTime, waitFor } from "../../support/rig/wait.ts";

const MARKED_QUERIES = join(import.meta.dirname, "../../support/client/marked-queries-main.js");
const PROGRAM_AT_LO = join(import.meta.dirname, "../../support/client/program-at-lo-main.js");
const SUCCESSOR = join(import.meta.dirname, "../../support/program/unready-successor-main.js");
const WITHOUT_BPF = join(import.meta.dirname, "../../support/program/without-bpf-main.js");
const BY_KERNEL = { answers: "kernel" };
const METRICS = ["--metrics-addr", "127.0.0.1:0"];
// dig's cookie is an option, which is left to the process.
const PLAIN = ["+noedns"];

let engine: Engine;
let web: Container;
let client: Container;
let stranger: Container;
let modest: Container;
const shared = new SharedDns11(() => engine);

before(async () => {
  engine = await startEngine();
  await createNetwork(engine, "n1");
  await createNetwork(engine, "n2");
  web = await runContainer(engine, { name: "web", networks: [{ name: "n1", aliases: ["shared"] }] });
  client = await runContainer(engine, { name: "client", networks: ["n1"] });
  stranger = await runContainer(engine, { name: "stranger", networks: [{ name: "n2", aliases: ["shared"] }] });
  modest = await runContainer(engine, {
    name: "modest",
    networks: ["n1"],
    labels: { "io.dns11.answers": "process" },
  });
});
after(async () => {
  await shared[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

async function kernelCount(instance: Dns11, name: string): Promise<number> {
  return (await instance.container(name))?.counters?.["kernel"] ?? 0;
}

async function answersOf(instance: Dns11, name: string): Promise<unknown> {
  return (await instance.container(name))?.answers;
}

async function isByKernel(instance: Dns11, name: string): Promise<boolean> {
  return ((await answersOf(instance, name)) as AnsweredByReport | undefined)?.by === "kernel";
}

async function tail(instance: Dns11, name: string): Promise<QueryReport[]> {
  const args = ["tail", name, "-n", "1000", "--json", "--state-dir", instance.stateDir];
  const { stdout } = await dns11([...args, "-H", engine.host]);
  return stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as QueryReport);
}

// The answer that the kernel has given, not the process.
async function kernelAnswer(instance: Dns11, from: Container, ...query: string[]): Promise<DigReply> {
  return await waitFor(`the kernel's answer to ${query.join(" ")}`, async () => {
    const counted = await kernelCount(instance, from.name);
    const reply = await dig(from, ...PLAIN, ...query);
    // The process answers the first query after a change of names.
    return (await kernelCount(instance, from.name)) > counted ? reply : undefined;
  });
}

// Runs a program until it is disposed. It has printed something by now.
async function running(start: (options: CommandOptions) => Promise<CommandResult>): Promise<Running> {
  let end = (): void => undefined;
  let onOutput = (): void => undefined;
  const until = new Promise<void>((resolve) => (end = resolve));
  const started = new Promise<void>((resolve) => (onOutput = resolve));
  const state = { isRunning: true };
  const ended = start({ until, onOutput: () => onOutput() }).finally(() => (state.isRunning = false));
  await inTime(Promise.race([started, ended]), "a program to start");
  return Object.assign(state, {
    [Symbol.asyncDispose]: async () => {
      end();
      await ended;
    },
  });
}

interface Running extends AsyncDisposable {
  readonly isRunning: boolean;
}

// Attaches a program that ends the chain at lo of a container.
async function programAtLo(container: Container): Promise<Running> {
  return await running(async (options) => await container.enter(process.execPath, [PROGRAM_AT_LO], options));
}

function folderOf({ stateDir }: Dns11): string {
  const [instance = ""] = readdirSync(stateDir);
  return join(stateDir, instance);
}

function controlOf(instance: Dns11): ControlClient {
  return new ControlClient(join(folderOf(instance), "control.sock"));
}

test("plain queries are answered by the kernel, all others by the process, and both say the same", async () => {
  const instance = await shared.with(METRICS, BY_KERNEL);
  await instance.waitForKernel();
  assert.deepEqual((await instance.status()).answers, { by: "kernel" });
  for (const { name } of [web, client, stranger]) assert.deepEqual(await answersOf(instance, name), { by: "kernel" });
  const reverse = `${web.address("n1").split(".").toReversed().join(".")}.in-addr.arpa`;
  for (const query of [["web"], ["WEB.n1"], ["web", "aaaa"], [reverse, "ptr"]]) {
    const byProcess = await dig(client, "+tcp", ...PLAIN, ...query);
    const byKernel = await kernelAnswer(instance, client, ...query);
    const of = ({ status, answer, authority }: DigReply): unknown => [status, answer, authority];
    assert.deepEqual(of(byKernel), of(byProcess), query.join(" "));
  }
  const reason = "label io.dns11.answers of the container";
  assert.deepEqual(await answersOf(instance, "modest"), { by: "process", reason, isMeant: true });
  for (let times = 0; times < 2; times++) assert.equal((await dig(modest, ...PLAIN, "web")).answer[0]?.ttl, 5);
  assert.equal(await kernelCount(instance, "modest"), 0);
  assert.doesNotMatch((await modest.enter("nft", ["list", "table", "ip", "dns11"])).stdout, /notrack/);
  const counted = await kernelCount(instance, "client");
  assert.deepEqual(dataOf(await dig(client, "+nsid", "web")), [web.address("n1")]);
  assert.equal((await dig(client, ...PLAIN, "web", "mx")).status, "NOERROR");
  assert.equal((await dig(client, ...PLAIN, "name.invalid")).status, "NXDOMAIN");
  assert.equal(await kernelCount(instance, "client"), counted);
  const { queries, local } = (await instance.container("client"))?.counters ?? {};
  assert.ok((queries ?? 0) >= (local ?? 0) && (local ?? 0) > counted, "they count as queries, too");
  const known = new Set((await tail(instance, "client")).map(({ seq }) => seq));
  await kernelAnswer(instance, client, "WeB.n1");
  const fresh = (await tail(instance, "client")).filter(({ seq }) => !known.has(seq));
  assert.ok(
    fresh.some(
      ({ name, type, addresses: [address] }) => name === "web.n1" && type === "A" && address === web.address("n1"),
    ),
    "a query that the kernel answered, with the name in lower case",
  );
  const requests = await fetch(`http://${(await instance.status()).metrics}/metrics`);
  const inMetrics = /^dns11_dns_requests_total\{proto="udp",family="1",type="PTR"\} (\d+)$/m.exec(
    await requests.text(),
  );
  const inHistory = (await tail(instance, "client")).filter(({ type }) => type === "PTR");
  assert.equal(Number(inMetrics?.[1]), inHistory.filter(({ transport }) => transport === "udp").length);
});

test("known names are answered while the process is stopped", async () => {
  const { answer } = await waitFor("an answer while it is stopped", async () => {
    // A keeper would end it, and Docker's resolver would answer; its own alarm ends it if this takes too long.
    const instance = await shared.with(METRICS, BY_KERNEL);
    await kernelAnswer(instance, client, "web");
    instance.kill("SIGSTOP");
    try {
      const reply = await dig(client, ...PLAIN, "+time=1", "web");
      // Names may have changed just before.
      return reply.answer.length > 0 ? reply : undefined;
    } finally {
      instance.kill("SIGCONT");
    }
  });
  assert.deepEqual([answer[0]?.data, answer[0]?.ttl], [web.address("n1"), 5]);
});

test("each container sees the names of its networks, and changes at once", async () => {
  const instance = await shared.with(METRICS, BY_KERNEL);
  const addresses = async (from: Container): Promise<string[]> =>
    dataOf(await kernelAnswer(instance, from, "shared")).toSorted();
  const [inOne, inTwo] = [web.address("n1"), stranger.address("n2")];
  assert.deepEqual([await addresses(client), await addresses(stranger)], [[inOne], [inTwo]]);
  const second = await runContainer(engine, { name: "second", networks: [{ name: "n1", aliases: ["shared"] }] });
  const both = [inOne, second.address("n1")].toSorted();
  await waitFor("both addresses", async () => ((await addresses(client)).length === 2 ? true : undefined));
  assert.deepEqual([await addresses(client), await addresses(stranger)], [both, [inTwo]]);
  await second[Symbol.asyncDispose]();
  await waitFor("one address", async () => ((await addresses(client)).length === 1 ? true : undefined));
  assert.deepEqual(await addresses(client), [inOne]);
  await client.connect("n2");
  await waitFor("a name of the other network", async () =>
    (await dig(client, ...PLAIN, "stranger")).answer.length === 1 ? true : undefined,
  );
  assert.deepEqual(dataOf(await kernelAnswer(instance, client, "stranger")), [inTwo]);
  await client.disconnect("n2");
  await waitFor("that name to be gone", async () =>
    (await dig(client, ...PLAIN, "stranger")).answer.length === 0 ? true : undefined,
  );
});

test("a container that sends packets with any mark learns only its own names", async () => {
  const instance = await shared.with(METRICS, BY_KERNEL);
  await kernelAnswer(instance, client, "shared");
  await kernelAnswer(instance, stranger, "shared");
  // Otherwise the kernel drops what arrives from loopback addresses without having been sent by a socket.
  await stranger.enter("sysctl", ["-qw", "net.ipv4.conf.all.route_localnet=1"]);
  const { stdout, stderr } = await stranger.enter(process.execPath, [MARKED_QUERIES, "shared", "2048"]);
  assert.notEqual(stdout, "", stderr);
  const { told, bySocket, byPacket } = JSON.parse(stdout) as MarkedReplies;
  assert.deepEqual(told, [stranger.address("n2")]);
  assert.ok(bySocket > 0 && byPacket > 0, stdout);
});

interface MarkedReplies {
  readonly told: readonly string[];
  readonly bySocket: number;
  readonly byPacket: number;
}

test("after SIGKILL Docker's resolver answers, and a new instance starts with the kernel again", async () => {
  await shared.stop();
  await using instance = await startDns11(engine, { settings: BY_KERNEL });
  await kernelAnswer(instance, client, "web");
  instance.kill("SIGKILL");
  await waitFor("Docker's answer", async () =>
    (await dig(client, ...PLAIN, "+time=1", "+tries=3", "web")).answer[0]?.ttl === 600 ? true : undefined,
  );
  await instance.exited;
  assert.doesNotMatch((await client.enter("nft", ["list", "tables"])).stdout, /dns11/);
  const { stateDir } = instance;
  await using next = await startDns11(engine, { settings: BY_KERNEL, stateDir });
  assert.equal((await kernelAnswer(next, client, "web")).answer[0]?.ttl, 5);
  assert.equal(await next.stop(), 0);
  assert.equal((await dig(client, ...PLAIN, "web")).answer[0]?.ttl, 600);
});

test("names are answered while the process is replaced, and a replacement has the kernel answer, too", async () => {
  await using instance = await startDns11(engine, { settings: BY_KERNEL });
  const asked = async (): Promise<string[]> => dataOf(await dig(client, ...PLAIN, "+time=1", "+tries=1", "web"));
  await waitFor("an answer while the process is paused", async () => {
    await kernelAnswer(instance, client, "web");
    await using successor = await running(
      async (options) => await engine.exec(process.execPath, [SUCCESSOR, keeperPath(folderOf(instance))], options),
    );
    const answer = await asked();
    // The keeper ends a process that does not serve in time.
    if (answer.length === 0 || !successor.isRunning) return undefined;
    assert.deepEqual(answer, [web.address("n1")]);
    await engine.docker("rename", "web", "renamed");
    await waitFor("the old name to be gone", async () => ((await asked()).length === 0 ? true : undefined));
    await engine.docker("rename", "renamed", "web");
    return true;
  });
  await using next = await replaceDns11(engine, instance, { settings: BY_KERNEL });
  assert.equal((await kernelAnswer(next, client, "web")).answer[0]?.ttl, 5);
  assert.deepEqual(await answersOf(next, "client"), { by: "kernel" });
});

test("where the kernel refuses bpf(2), the process answers, and status and doctor say why", async () => {
  const prefix = [process.execPath, WITHOUT_BPF];
  await using instance = await startDns11(engine, { settings: BY_KERNEL, prefix });
  const { answers } = await instance.status();
  assert.equal(answers?.by, "process");
  assert.match(answers.reason ?? "", /bpf MAP_CREATE .*EPERM/);
  assert.deepEqual(await answersOf(instance, "client"), answers);
  assert.deepEqual(dataOf(await dig(client, ...PLAIN, "web")), [web.address("n1")]);
  await instance.logs(/the kernel cannot answer queries, so the process does/);
  const { stdout } = await dns11(["doctor", "-H", engine.host, "--state-dir", instance.stateDir]);
  assert.match(stdout, /cannot answer queries, so the process does: bpf MAP_CREATE/);
});

test("where a firewall in the container wants tracked packets, the process answers there", async () => {
  const rules = "table inet wall { chain in { type filter hook input priority 0; ct state untracked drop; }; }";
  await stranger.enter("nft", ["-f", "-"], { input: rules });
  try {
    await using instance = await startDns11(engine, { settings: BY_KERNEL });
    await instance.waitForKernel();
    const { by, reason } = (await answersOf(instance, "stranger")) as AnsweredByReport;
    assert.equal(by, "process");
    assert.match(reason ?? "", /^an answer of the kernel did not arrive$/);
    assert.doesNotMatch((await stranger.enter("nft", ["list", "table", "ip", "dns11"])).stdout, /notrack/);
    assert.equal((await instance.container("stranger"))?.state, "attached");
    assert.deepEqual(dataOf(await dig(stranger, ...PLAIN, "shared")), [stranger.address("n2")]);
    assert.deepEqual(await answersOf(instance, "client"), { by: "kernel" });
    await stranger.enter("nft", ["delete", "table", "inet", "wall"]);
    await waitFor("the kernel to be tried again", async () => (await isByKernel(instance, "stranger")) || undefined);
    assert.deepEqual(dataOf(await kernelAnswer(instance, stranger, "shared")), [stranger.address("n2")]);
  } finally {
    await stranger.enter("nft", ["delete", "table", "inet", "wall"]);
  }
});

test("by default the kernel answers beside another program at lo; behind one that ends the chain, the process does", async () => {
  const settings = join(engine.folder, "kernel-answers.yaml");
  writeFileSync(settings, "version: 1\n");
  await using instance = await startDns11(engine, { args: ["--config", settings] });
  await instance.waitForKernel();
  assert.deepEqual(await answersOf(instance, "stranger"), { by: "kernel" });
  const doctor = async (): Promise<string> =>
    (await dns11(["doctor", "--all", "-H", engine.host, "--state-dir", instance.stateDir])).stdout;
  {
    await using _ = await programAtLo(stranger);
    // Without waiting for the next look: a verification finds it.
    assert.deepEqual(await controlOf(instance).repair("stranger"), { name: "stranger", outcome: "verified" });
    const { by, reason } = (await answersOf(instance, "stranger")) as AnsweredByReport;
    assert.equal(by, "process");
    assert.match(reason ?? "", /^udp: /);
    assert.deepEqual(dataOf(await dig(stranger, ...PLAIN, "shared")), [stranger.address("n2")]);
    assert.match(await doctor(), /does not answer in stranger: udp: /);
  }
  // A reload tries again.
  await controlOf(instance).reload();
  await waitFor("the kernel to answer", async () => (await isByKernel(instance, "stranger")) || undefined);
  {
    await using _ = await programAtLo(stranger);
    await using next = await replaceDns11(engine, instance, { args: ["--config", settings], settings: BY_KERNEL });
    // It takes the place of its predecessor's program. A new one comes before all others.
    await waitFor("the process to answer", async () => ((await isByKernel(next, "stranger")) ? undefined : true));
    await controlOf(next).reload();
    await waitFor("the kernel to answer", async () => (await isByKernel(next, "stranger")) || undefined);
    assert.deepEqual(dataOf(await kernelAnswer(next, stranger, "shared")), [stranger.address("n2")]);
    assert.doesNotMatch(await doctor(), /does not answer in/);
  }
});

test("with answers: process, the process answers, and no program is attached", async () => {
  await using instance = await startDns11(engine, { settings: { answers: "process" } });
  const status = await instance.status();
  assert.equal(status.answers, undefined);
  assert.equal(await answersOf(instance, "client"), undefined);
  // With the program, the reply would come from port 53.
  const { udp } = (await instance.container("client"))?.ports ?? assert.fail();
  assert.deepEqual(dataOf(await dig(client, "-p", String(udp), "web")), [web.address("n1")]);
  assert.doesNotMatch((await client.enter("nft", ["list", "table", "ip", "dns11"])).stdout, /notrack/);
});
