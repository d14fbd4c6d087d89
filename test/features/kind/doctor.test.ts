/**
 * The commands for nodes: dns11 kind status, doctor, detach and attach, on a real engine; and an instance outside a node that
 * finds one running inside.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { PROGRAM } from "../../support/program/built.ts";
import type { Diagnosis, Report } from "../../../src/doctor/problems.ts";
import { SYSTEM_PATH } from "../../support/program/command.ts";
import { createNetwork, runContainer } from "../../support/engine/container.ts";
import { dataOf, dig } from "../../support/client/dig.ts";
import { type Dns11, dns11, startDns11 } from "../../support/program/dns11.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { moveDockerRulesToNftables } from "../../support/engine/docker-rules.ts";
import { type KindNode, runKindNode } from "../../support/kind/kind-node.ts";
import { startPod } from "../../support/kind/pod.ts";
import { checkIn } from "../../support/kind/pod-host.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";
import { untilSame, waitFor } from "../../support/rig/wait.ts";

const NETWORK = "kind";
const GATEWAY = "10.77.0.1";
const UPSTREAM = "10.53.0.1";
const KIND = ["--kind", "auto"];
/** Its start costs processor time, and it has no part in this. */
const WITHOUT_KEEPER = { DNS11_KEEPER: "off" };

interface Finding {
  readonly what: string;
  readonly state: string;
  readonly detail: string;
}

let engine: Engine;
let upstream: Upstream;

before(async () => {
  engine = await startEngine({ suite: "bookworm", resolvConf: `nameserver ${UPSTREAM}\n` });
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

// The state without the links of pods, of tests and of dns11, which the kernel removes later.
async function quietStateOf(node: KindNode): Promise<Record<string, string>> {
  return await waitFor("the links of pods to be gone", async () => {
    const state = await stateOf(node);
    return /dns11-pod-|veth-p/.test(state["links"] ?? "") ? undefined : state;
  });
}

/** Everything in a node that dns11 may change. */
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

test("a node whose resolv.conf names 127.0.0.11 has no DNS for pods; with dns11 it has no findings (K51)", async () => {
  await using node = await runKindNode(engine, { name: "sick", networks: [NETWORK], entrypoint: "none" });
  const untouched = await stateOf(node);
  const sick = await doctor();
  assert.equal(sick.code, 1);
  const findings = sick.nodes.get("sick") ?? assert.fail();
  const conf = findings.find(({ what }) => what === "node resolv.conf");
  assert.deepEqual([conf?.state, /so a pod queries itself/.test(conf?.detail ?? "")], ["problem", true]);
  assert.ok(
    findings.some(({ what, state }) => /query from the node to 127\.0\.0\.11 \(tcp\)/.test(what) && state === "ok"),
  );
  await using instance = await startDns11(engine, { args: KIND, env: WITHOUT_KEEPER });
  const well = await doctor("sick");
  assert.deepEqual([well.code, well.nodes.get("sick")?.filter(({ state }) => state !== "ok")], [0, []], instance.log);
  assert.ok(well.nodes.get("sick")?.some(({ what }) => what === `query from a pod to ${GATEWAY} (udp)`));
  await instance.stop();
  await untilSame("the node to be as it was", async () => await stateOf(node), untouched);
});

test("a failure of pods only is found, although the node itself resolves names (K51)", async () => {
  await using node = await runKindNode(engine, { name: "half", networks: [NETWORK] });
  await node.waitForEntrypoint();
  assert.deepEqual([(await doctor("half")).code, node.vip], [1, GATEWAY], "KIND leaves 127.0.0.11 dead");
  await node.setSysctl("net.ipv4.conf.all.route_localnet", 0);
  const { code, nodes } = await doctor("half");
  assert.equal(code, 1);
  const states = new Map(nodes.get("half")?.map(({ what, state }) => [what, state]));
  assert.equal(states.get(`query from the node to ${GATEWAY} (udp)`), "ok");
  assert.equal(states.get(`query from a pod to ${GATEWAY} (udp)`), "problem");
  assert.equal(states.get("route_localnet"), "problem");
});

test("a node without a free address for a test pod is reported, with the results of the node itself", async () => {
  await using node = await runKindNode(engine, { name: "crowded", networks: [NETWORK] });
  await node.waitForEntrypoint();
  const taken = Array.from({ length: 128 }, (_, pair) => `address add 169.254.54.${2 * pair}/32 dev lo`);
  await checkIn(node.netnsPath, "ip", ["-batch", "-"], taken.join("\n"));
  const findings = (await doctor("crowded")).nodes.get("crowded") ?? assert.fail();
  const pod = findings.find(({ what }) => what === "test pod");
  assert.equal(pod?.state, "unknown");
  assert.match(pod?.detail ?? "", /no test pod could be created: All addresses .*169\.254\.54\.0\/24.* are taken/);
  assert.ok(findings.some(({ what, state }) => what === `query from the node to ${GATEWAY} (udp)` && state === "ok"));
});

test("the doctor prints findings as text, and reports what it cannot check", async () => {
  await using _ = await runKindNode(engine, { name: "seen", networks: [NETWORK], entrypoint: "none" });
  const { code, stdout } = await dns11(["kind", "doctor", "-H", engine.host]);
  assert.equal(code, 1);
  assert.match(stdout, /^seen\nSTATE +CHECK +FINDING\n/);
  assert.match(
    stdout,
    /problem +node resolv\.conf +only loopback nameservers \(127\.0\.0\.11\)[\s\S]*dns11 run --kind auto/,
  );
  const nobody = await dns11(["kind", "doctor", "-H", engine.host, "nobody"]);
  assert.equal(nobody.code, 2, "a missing node cannot be checked");
  assert.match(nobody.stderr, /^dns11: No running container named "nobody"\n {2}Use a node name/);
  const none = await dns11(["kind", "doctor", "-H", engine.host, "--kind", "name=no*"]);
  assert.deepEqual([none.code, none.stdout], [0, "no KIND nodes found\n"]);
});

test("a dns11 that runs without nodes: status and doctor say how it gets them, which it does", async () => {
  await using _ = await runKindNode(engine, { name: "later", networks: [NETWORK], entrypoint: "none" });
  const folder = mkdtempSync(join(tmpdir(), "d11-kind-"));
  const path = join(folder, "dns11.yaml");
  writeFileSync(path, "version: 1\n");
  try {
    await using instance = await startDns11(engine, { args: ["--config", path], env: WITHOUT_KEEPER });
    const text = `dns11 runs, and its settings select no nodes. Add \`kind: {nodes: [auto]}\` to ${path}, then run: dns11 reload.`;
    assert.equal(await control(instance, "status"), `no KIND nodes are served\n${text}\n`);
    const at = ["-H", engine.host, "--state-dir", instance.stateDir];
    const { stdout } = await dns11(["kind", "doctor", ...at]);
    assert.ok(stdout.includes(text), stdout);
    writeFileSync(path, "version: 1\nkind: {nodes: [auto]}\n");
    assert.equal((await dns11(["reload", ...at])).code, 0);
    await waitFor("the node to be served", async () =>
      (await control(instance, "status")).includes("later") ? true : undefined,
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("dns11 doctor runs the node checks for nodes, and --fix switches route_localnet on again in kind mode loopback", async () => {
  await using node = await runKindNode(engine, { name: "shut", networks: [NETWORK], entrypoint: "none" });
  await using instance = await startDns11(engine, {
    args: KIND,
    settings: { "kind.mode": "loopback" },
    env: WITHOUT_KEEPER,
  });
  const runDoctor = async (...args: string[]): Promise<{ code: number; report: Report }> => {
    const where = ["-H", engine.host, "--state-dir", instance.stateDir];
    const { code, stdout, stderr } = await dns11(["doctor", "shut", "--json", ...where, ...args]);
    assert.equal(stderr, "");
    return { code, report: (JSON.parse(stdout) as Diagnosis).containers[0] ?? assert.fail() };
  };
  const wrong = ({ findings }: Report): string[] =>
    findings.filter(({ state }) => state === "problem").map(({ code }) => code);
  const well = await runDoctor();
  assert.deepEqual([well.code, wrong(well.report)], [0, []]);
  assert.ok(well.report.findings.some(({ what }) => what === `query from a pod to ${GATEWAY} (udp)`));
  const libc = well.report.findings.find(({ code }) => code === "libc");
  assert.match(libc?.detail ?? "", /^glibc 2\.\d+: queries the nameservers one after the other/);
  // dns11 switches it on again once by itself; the second time it may be intended.
  const key = "net.ipv4.conf.default.route_localnet";
  await node.setSysctl(key, 0);
  await waitFor("route_localnet to be on again", async () =>
    (await checkIn(node.netnsPath, "sysctl", ["-n", key])).trim() === "1" ? true : undefined,
  );
  // It would do so again only after a minute, in which this machine may not have come far.
  const shut = await waitFor("the doctor to find it off", async () => {
    await node.setSysctl(key, 0);
    const found = await runDoctor();
    return wrong(found.report).length > 0 ? found : undefined;
  });
  assert.equal(shut.code, 1);
  assert.ok(wrong(shut.report).includes("route-localnet"), JSON.stringify(shut.report));
  const fixed = await runDoctor("--fix");
  assert.deepEqual([fixed.code, wrong(fixed.report)], [0, []]);
  assert.match(fixed.report.did.join("\n"), /reinstalled the rules; queries get through/);
});

for (const tool of ["kind", "k3d", "minikube"] as const) {
  test(`a node of ${tool} whose cluster has lost DNS, because dockerd writes its rules with nftables, is found and served`, async () => {
    await using node = await runKindNode(engine, { name: "dead", networks: [NETWORK], entrypoint: "none", tool });
    await moveDockerRulesToNftables(node.netnsPath);
    await node.rewrite();
    const untouched = await stateOf(node);
    const { code, nodes } = await doctor();
    assert.deepEqual([code, [...nodes.keys()]], [1, ["dead"]]);
    const findings = nodes.get("dead") ?? assert.fail();
    const docker = findings.find(({ what }) => what === "Docker's resolver in the node");
    assert.equal(docker?.state, "problem");
    assert.match(
      docker?.detail ?? "",
      /^answers at 127\.0\.0\.11, and nobody at 10\.77\.0\.1, .*nftables.*neither the node nor its pods/s,
    );
    for (const client of ["the node", "a pod"])
      assert.ok(
        findings.some(({ what, state }) => what === `query from ${client} to ${GATEWAY} (udp)` && state === "problem"),
      );
    await using instance = await startDns11(engine, { args: KIND, env: WITHOUT_KEEPER });
    const well = await doctor("dead");
    assert.deepEqual(
      [well.code, well.nodes.get("dead")?.filter(({ state }) => state === "problem")],
      [0, []],
      instance.log,
    );
    await using pod = await startPod(node);
    assert.deepEqual(dataOf(await dig(pod, `@${GATEWAY}`, "dead")), [node.address(NETWORK)]);
    await pod[Symbol.asyncDispose]();
    await instance.stop();
    const left = await quietStateOf(node);
    assert.deepEqual({ ...left, rules: "" }, { ...untouched, rules: "" });
    assert.doesNotMatch(left["rules"] ?? "", /table ip6? dns11/);
  });
}

test("a node of k3d whose kube-proxy does not run resolves names, and its pods time out: the doctor says what is off", async () => {
  await using node = await runKindNode(engine, { name: "agent", networks: [NETWORK], tool: "k3d" });
  await node.waitForEntrypoint();
  const states = new Map((await doctor("agent")).nodes.get("agent")?.map(({ what, state }) => [what, state]));
  assert.equal(states.get("Docker's resolver in the node"), "ok");
  assert.equal(states.get(`query from the node to ${GATEWAY} (udp)`), "ok");
  assert.equal(states.get(`query from a pod to ${GATEWAY} (udp)`), "problem");
  assert.equal(states.get("route_localnet"), "problem");
});

test("another process that listens on the address for pods is a problem of the node", async () => {
  await using node = await runKindNode(engine, { name: "both", networks: [NETWORK], entrypoint: "none" });
  await using instance = await startDns11(engine, { args: KIND, settings: { "kind.ip": "node" }, env: WITHOUT_KEEPER });
  await node.container.exec("sh", ["-c", "busybox nc -l -p 53 >/dev/null 2>&1 &"]);
  await waitFor("the other process to listen", async () =>
    /:53\s/.test(await checkIn(node.netnsPath, "ss", ["-Hlnt"])) ? true : undefined,
  );
  const { code, nodes } = await doctor("both");
  assert.equal(code, 1, instance.log);
  const port = nodes.get("both")?.find(({ what }) => what === "node port 53");
  assert.match(
    port?.detail ?? "",
    /a process in the node listens on port 53 of 10\.77\.0\.\d+ over tcp, but dns11 receives/,
  );
});

test("status shows nodes; detach restores one, attach and a restart serve it again (K52, K55)", async () => {
  await using node = await runKindNode(engine, { name: "worker", networks: [NETWORK], entrypoint: "none" });
  await using other = await runContainer(engine, { name: "plain", networks: [NETWORK] });
  const untouched = await stateOf(node);
  await using instance = await startDns11(engine, { args: KIND, env: WITHOUT_KEEPER });
  assert.match(
    await control(instance, "status"),
    /\nworker +working +10\.77\.0\.1 +169\.254\.53\.53 .* written by dns11\n$/,
  );
  assert.equal(await control(instance, "detach", "worker"), "worker is restored to its original state\n");
  await untilSame("the node to be as it was", async () => await stateOf(node), untouched);
  assert.deepEqual(dataOf(await dig(node, "plain")), [other.address(NETWORK)], "by Docker's resolver");
  assert.match(await control(instance, "status"), /\nworker +skipped .*detached/);
  assert.match(await control(instance, "detach", "plain"), /^2 dns11: "plain" is not a KIND node served by this dns11/);
  assert.match(await control(instance, "detach", "nobody"), /^2 dns11: No running container or service named "nobody"/);
  assert.equal(await control(instance, "attach", "worker"), "worker is served again\n");
  await instance.waitFor("worker", "attached");
  await control(instance, "detach", "worker");
  await instance.waitFor("worker", "skipped");
  await node.restart();
  await instance.waitFor("worker", "attached");
  await control(instance, "detach", "worker");
  await instance.waitFor("worker", "skipped");
  assert.match(await control(instance, "status"), /\nworker +skipped .*or when it or dns11 starts again/);
  const { stateDir } = instance;
  await instance.stop();
  await using next = await startDns11(engine, { args: KIND, env: WITHOUT_KEEPER, stateDir });
  await next.waitFor("worker", "attached");
});

test("an instance outside a node that finds one inside reports it and does not attach", async () => {
  await using node = await runKindNode(engine, { name: "baked", networks: [NETWORK], entrypoint: "none" });
  const stateDir = mkdtempSync(join(tmpdir(), "d11-inner-"));
  // The node's namespaces and its resolv.conf, with the host's programs.
  const script = `mount --bind /proc/${node.container.pid}/root/etc/resolv.conf /etc/resolv.conf && exec "$@"`;
  const inner = ["--mount", "sh", "-c", script, "inner", process.execPath, PROGRAM];
  const args = [`--net=${node.netnsPath}`, "--", "unshare", ...inner, "run", "--in-node", "--state-dir", stateDir];
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
    await using instance = await startDns11(engine, { args: KIND, env: WITHOUT_KEEPER });
    const { code, reason } = await instance.waitFor("baked", "failed");
    assert.deepEqual([code, /another running instance/.test(reason ?? "")], ["OWNED_ELSEWHERE", true]);
    await instance.logs(/"OWNED_ELSEWHERE".*not attached, served by another dns11/);
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
