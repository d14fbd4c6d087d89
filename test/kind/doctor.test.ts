/**
 * What people ask about nodes: dns11 kind status, doctor, detach and attach, on a real engine; and an instance outside that
 * meets one inside.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { PROGRAM } from "../support/program/built.ts";
import type { Diagnosis, Report } from "../../src/doctor/doctor.ts";
import { SYSTEM_PATH } from "../support/program/command.ts";
import { createNetwork, runContainer } from "../support/engine/container.ts";
import { dataOf, dig } from "../support/asking/dig.ts";
import { type Dns11, dns11, startDns11 } from "../support/program/dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { type KindNode, runKindNode } from "../support/kind/kind-node.ts";
import { startPod } from "../support/kind/pod.ts";
import { checkIn } from "../support/kind/pod-host.ts";
import { type Upstream, startUpstream } from "../support/servers/upstream.ts";
import { waitFor } from "../support/rig/wait.ts";

const NETWORK = "kind";
const GATEWAY = "10.77.0.1";
const UPSTREAM = "10.53.0.1";
const KIND = ["--kind", "auto"];

interface Finding {
  readonly what: string;
  readonly state: string;
  readonly detail: string;
}

let engine: Engine;
let upstream: Upstream;

before(async () => {
  engine = await startEngine({ resolvConf: `nameserver ${UPSTREAM}\n` });
  upstream = await startUpstream(engine, { address: UPSTREAM });
  await createNetwork(engine, NETWORK, { subnet: "10.77.0.0/24", args: ["--gateway", GATEWAY] });
});
after(async () => {
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

async function doctor(...args: string[]): Promise<{ code: number; nodes: Map<string, readonly Finding[]> }> {
  const { code, stdout, stderr } = await dns11(["kind", "doctor", "-H", engine.host, "--json", ...args]);
  assert.equal(stderr, "");
  const reports = JSON.parse(stdout) as { node: string; findings: Finding[] }[];
  return { code, nodes: new Map(reports.map(({ node, findings }) => [node, findings])) };
}

async function control(instance: Dns11, verb: string, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await dns11([
    "kind",
    verb,
    "-H",
    engine.host,
    "--state-dir",
    instance.stateDir,
    ...args,
  ]);
  return code === 0 ? stdout : `${code} ${stderr}`;
}

/** What a node is made of, as far as anybody may change it. */
// When no pod is there, neither a test's nor one that dns11 makes to ask from; the kernel takes their links away later.
async function quietStateOf(node: KindNode): Promise<Record<string, string>> {
  return await waitFor("the links of pods to be gone", async () => {
    const state = await stateOf(node);
    return /dns11-pod-|veth-p/.test(state["links"] ?? "") ? undefined : state;
  });
}

async function stateOf(node: KindNode): Promise<Record<string, string>> {
  const commands = {
    rules: ["nft", "-s", "list", "ruleset"],
    links: ["ip", "-o", "addr"],
    conntrack: ["sh", "-c", "conntrack -L 2>/dev/null | grep -c 169.254.54. || true"],
  };
  const entries = await Promise.all(
    Object.entries(commands).map(async ([key, [command = "", ...args]]) => {
      const { stdout } = await node.enter(command, args);
      return [key, stdout.replaceAll(/valid_lft \S+ preferred_lft \S+/g, "")] as const;
    }),
  );
  return { ...Object.fromEntries(entries), resolvConf: await node.resolvConf() };
}

test("a node whose resolv.conf names 127.0.0.11 is told to have no DNS for pods; with dns11 it is well (K51)", async () => {
  await using node = await runKindNode(engine, { name: "sick", networks: [NETWORK], entrypoint: "none" });
  const untouched = await stateOf(node);
  const sick = await doctor();
  assert.equal(sick.code, 1);
  const findings = sick.nodes.get("sick") ?? assert.fail();
  const conf = findings.find(({ what }) => what === "the node's resolv.conf");
  assert.deepEqual([conf?.state, /which in a pod is the pod itself/.test(conf?.detail ?? "")], ["problem", true]);
  assert.ok(
    findings.some(({ what, state }) => /the node itself asks 127\.0\.0\.11 by tcp/.test(what) && state === "ok"),
  );
  await using instance = await startDns11(engine, { args: KIND });
  const well = await doctor("sick");
  assert.deepEqual([well.code, well.nodes.get("sick")?.filter(({ state }) => state !== "ok")], [0, []], instance.log);
  assert.ok(well.nodes.get("sick")?.some(({ what }) => what === `a pod asks ${GATEWAY} by udp`));
  await instance.stop();
  assert.deepEqual(await stateOf(node), untouched);
});

test("where only pods fail the doctor sees it, and what the node itself gets does not hide it (K51)", async () => {
  await using node = await runKindNode(engine, { name: "half", networks: [NETWORK] });
  await node.waitForEntrypoint();
  assert.deepEqual([(await doctor("half")).code, node.vip], [1, GATEWAY], "127.0.0.11 is dead, as KIND leaves it");
  await node.setSysctl("net.ipv4.conf.all.route_localnet", 0);
  const { code, nodes } = await doctor("half");
  assert.equal(code, 1);
  const states = new Map(nodes.get("half")?.map(({ what, state }) => [what, state]));
  assert.equal(states.get(`the node itself asks ${GATEWAY} by udp`), "ok");
  assert.equal(states.get(`a pod asks ${GATEWAY} by udp`), "problem");
  assert.equal(states.get("route_localnet"), "problem");
});

test("a node that leaves no address for a pod to ask from is said to, and what the node itself gets stands", async () => {
  await using node = await runKindNode(engine, { name: "crowded", networks: [NETWORK] });
  await node.waitForEntrypoint();
  const taken = Array.from({ length: 128 }, (_, pair) => `address add 169.254.54.${2 * pair}/32 dev lo`);
  await checkIn(node.netnsPath, "ip", ["-batch", "-"], taken.join("\n"));
  const findings = (await doctor("crowded")).nodes.get("crowded") ?? assert.fail();
  const pod = findings.find(({ what }) => what === "a pod");
  assert.equal(pod?.state, "unknown");
  assert.match(pod?.detail ?? "", /no pod could be made to ask from: All addresses .*169\.254\.54\.0\/24.* are taken/);
  assert.ok(findings.some(({ what, state }) => what === `the node itself asks ${GATEWAY} by udp` && state === "ok"));
});

test("the doctor tells people the same, and what it cannot look at", async () => {
  await using _ = await runKindNode(engine, { name: "seen", networks: [NETWORK], entrypoint: "none" });
  const { code, stdout } = await dns11(["kind", "doctor", "-H", engine.host]);
  assert.equal(code, 1);
  assert.match(stdout, /^seen\nSTATE +WHAT +FOUND\n/);
  assert.match(stdout, /problem +the node's resolv\.conf +names 127\.0\.0\.11.*Start dns11 with --kind auto/);
  const nobody = await dns11(["kind", "doctor", "-H", engine.host, "nobody"]);
  assert.equal(nobody.code, 2, "what is not there cannot be looked at");
  assert.match(nobody.stderr, /^dns11: The engine has no running container "nobody"\n {2}Name a node/);
  const none = await dns11(["kind", "doctor", "-H", engine.host, "--kind", "name=no*"]);
  assert.deepEqual([none.code, none.stdout], [0, "there is no KIND node\n"]);
});

test("dns11 doctor looks at nodes as at nodes, and --fix has route_localnet set again where it is ours", async () => {
  await using node = await runKindNode(engine, { name: "shut", networks: [NETWORK], entrypoint: "none" });
  await using instance = await startDns11(engine, { args: [...KIND, "--kind-mode", "loopback"] });
  const look = async (...args: string[]): Promise<{ code: number; report: Report }> => {
    const where = ["-H", engine.host, "--state-dir", instance.stateDir];
    const { code, stdout, stderr } = await dns11(["doctor", "shut", "--json", ...where, ...args]);
    assert.equal(stderr, "");
    return { code, report: (JSON.parse(stdout) as Diagnosis).containers[0] ?? assert.fail() };
  };
  const wrong = ({ findings }: Report): string[] =>
    findings.filter(({ state }) => state === "problem").map(({ code }) => code);
  const well = await look();
  assert.deepEqual([well.code, wrong(well.report)], [0, []]);
  assert.ok(well.report.findings.some(({ what }) => what === `a pod asks ${GATEWAY} by udp`));
  const libc = well.report.findings.find(({ code }) => code === "libc");
  assert.match(libc?.detail ?? "", /^glibc 2\.\d+: it asks the servers one after the other/);
  // What is switched off once is switched on again without being asked; the second time somebody may mean it.
  const key = "net.ipv4.conf.default.route_localnet";
  await node.setSysctl(key, 0);
  await waitFor("route_localnet to be on again", async () =>
    (await checkIn(node.netnsPath, "sysctl", ["-n", key])).trim() === "1" ? true : undefined,
  );
  await node.setSysctl(key, 0);
  const shut = await look();
  assert.equal(shut.code, 1);
  assert.ok(wrong(shut.report).includes("route-localnet"), JSON.stringify(shut.report));
  const fixed = await look("--fix");
  assert.deepEqual([fixed.code, wrong(fixed.report)], [0, []]);
  assert.match(fixed.report.did.join("\n"), /dns11 made its rules anew, and queries come through/);
});

test("who else listens where pods ask is a problem of the node", async () => {
  await using node = await runKindNode(engine, { name: "both", networks: [NETWORK], entrypoint: "none" });
  await using instance = await startDns11(engine, { args: [...KIND, "--kind-ip", "node"] });
  await node.container.exec("sh", ["-c", "busybox nc -l -p 53 >/dev/null 2>&1 &"]);
  const { code, nodes } = await doctor("both");
  assert.equal(code, 1, instance.log);
  const port = nodes.get("both")?.find(({ what }) => what === "port 53 of the node");
  assert.match(port?.detail ?? "", /somebody in the node listens at 10\.77\.0\.\d+ by tcp, and gets no query/);
});

test("status shows nodes; detach puts one back as it was, attach and a new start serve it again (K52, K55)", async () => {
  await using node = await runKindNode(engine, { name: "worker", networks: [NETWORK], entrypoint: "none" });
  await using other = await runContainer(engine, { name: "plain", networks: [NETWORK] });
  const untouched = await stateOf(node);
  await using instance = await startDns11(engine, { args: KIND });
  assert.match(
    await control(instance, "status"),
    /\nworker +working +10\.77\.0\.1 +169\.254\.53\.53 .* written by dns11\n$/,
  );
  assert.equal(await control(instance, "detach", "worker"), "worker is restored to its original state\n");
  await waitFor("the node to be as it was", async () =>
    JSON.stringify(await stateOf(node)) === JSON.stringify(untouched) ? true : undefined,
  );
  assert.deepEqual(await stateOf(node), untouched);
  assert.deepEqual(dataOf(await dig(node, "plain")), [other.address(NETWORK)], "by Docker's resolver");
  assert.match(await control(instance, "status"), /\nworker +skipped .*detached/);
  assert.match(await control(instance, "detach", "plain"), /^1 dns11: "plain" is no KIND node to this dns11/);
  assert.match(await control(instance, "detach", "nobody"), /^1 dns11: No running container named "nobody"/);
  assert.equal(await control(instance, "attach", "worker"), "worker is served again\n");
  await instance.waitFor("worker", "attached");
  await control(instance, "detach", "worker");
  await instance.waitFor("worker", "skipped");
  await node.restart();
  await instance.waitFor("worker", "attached");
});

test("an instance outside that meets one in the node says so and leaves the node to it", async () => {
  await using node = await runKindNode(engine, { name: "baked", networks: [NETWORK], entrypoint: "none" });
  const stateDir = mkdtempSync(join(tmpdir(), "d11-inner-"));
  // The node's namespaces and its resolv.conf, the machine's programs.
  const script = `mount --bind /proc/${node.container.pid}/root/etc/resolv.conf /etc/resolv.conf && exec "$@"`;
  const inner = ["--mount", "sh", "-c", script, "inner", process.execPath, PROGRAM];
  const args = [`--net=${node.netnsPath}`, "--", "unshare", ...inner, "kind", "--in-node", "--state-dir", stateDir];
  const child = spawn("nsenter", args, {
    stdio: ["ignore", "ignore", "pipe"],
    env: { ...process.env, PATH: SYSTEM_PATH },
  });
  const ended = once(child, "exit");
  let log = "";
  child.stderr.on("data", (chunk: Buffer) => (log += chunk.toString()));
  try {
    await waitFor("the one inside to serve", () => (log.includes("serving the node") ? true : undefined));
    const served = await quietStateOf(node);
    await using instance = await startDns11(engine, { args: KIND });
    const { code, reason } = await instance.waitFor("baked", "failed");
    assert.deepEqual([code, /another running instance/.test(reason ?? "")], ["OWNED_ELSEWHERE", true]);
    assert.match(instance.log, /"OWNED_ELSEWHERE".*not attached; another dns11 serves it/);
    await using pod = await startPod(node);
    assert.deepEqual(dataOf(await dig(pod, `@${GATEWAY}`, "baked")), [node.address(NETWORK)]);
    await pod[Symbol.asyncDispose]();
    await instance.stop();
    const { rules: _, ...left } = await quietStateOf(node);
    const { rules: __, ...expected } = served;
    assert.deepEqual(left, expected);
  } finally {
    child.kill("SIGTERM");
    await ended;
    rmSync(stateDir, { recursive: true });
  }
});
