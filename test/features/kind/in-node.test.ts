/**
 * dns11 inside a node, as a node image would start it: without an engine, with Docker's resolver as its upstream. The rig uses
 * plain namespaces, and dnsmasq plays Docker's resolver.
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import type { Explanation, Lookup } from "../../../src/api/names.ts";
import type { Status } from "../../../src/api/status.ts";
import type { UpstreamReport } from "../../../src/api/upstreams.ts";
import { PROGRAM } from "../../support/program/built.ts";
import { SYSTEM_PATH } from "../../support/program/command.ts";
import { dataOf, dig } from "../../support/client/dig.ts";
import type { DockerRules } from "../../support/engine/docker-rules.ts";
import { startPod } from "../../support/kind/pod.ts";
import {
  SIMULATED_NETWORK,
  type SimulatedNetwork,
  type SimulatedNode,
  startSimulatedNetwork,
} from "../../support/kind/simulated-network.ts";
import { inTime, untilSame, waitFor } from "../../support/rig/wait.ts";

const VIP = `@${SIMULATED_NETWORK.gateway}`;
const WEB = [SIMULATED_NETWORK.names.web];
const TRANSPORTS = ["+notcp", "+tcp"] as const;

/** Runs `dns11 kind` in the node. */
function kind(node: SimulatedNode, ...args: string[]): ReturnType<SimulatedNode["enter"]> {
  return node.enter(process.execPath, [PROGRAM, "kind", ...args]);
}

/** Runs `dns11 run --in-node` there. */
function inNode(node: SimulatedNode, ...args: string[]): ReturnType<SimulatedNode["enter"]> {
  return node.enter(process.execPath, [PROGRAM, "run", "--in-node", ...args]);
}

/** The doctor's findings in the node that are not ok, each with the interface or detail. */
async function diagnosed(
  node: SimulatedNode,
): Promise<{ readonly code: number | null; readonly wrong: readonly string[] }> {
  const { code, stdout, stderr } = await kind(node, "doctor", "--in-node", "--json");
  assert.equal(stderr, "");
  const [report] = JSON.parse(stdout) as { findings: { code: string; state: string; detail: string }[] }[];
  const wrong = report?.findings.filter(({ state }) => state !== "ok") ?? [];
  return { code, wrong: wrong.map((each) => `${each.code}: ${/ on ([^:]*):/.exec(each.detail)?.[1] ?? each.detail}`) };
}

class Staying implements AsyncDisposable {
  readonly #child: ChildProcess;
  log = "";

  constructor(node: SimulatedNode, ...args: string[]) {
    const words = ["run", "--in-node", "--log-level", "debug", ...args];
    const [command = "", ...rest] = [...node.prefix, process.execPath, PROGRAM, ...words];
    this.#child = spawn(command, rest, {
      stdio: ["ignore", "ignore", "pipe"],
      env: { ...process.env, PATH: SYSTEM_PATH },
    });
    this.#child.stderr?.on("data", (chunk: Buffer) => (this.log += chunk.toString()));
  }

  async prints(what: RegExp): Promise<void> {
    try {
      await waitFor(`dns11 in the node to print ${what}`, () => (what.test(this.log) ? true : undefined));
    } catch (error) {
      throw new Error(this.log, { cause: error });
    }
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, "exit");
    this.#child.kill(signal);
    await inTime(ended, "dns11 in the node to end");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end("SIGKILL");
  }
}

async function staying(node: SimulatedNode, ...args: string[]): Promise<Staying> {
  const instance = new Staying(node, ...args);
  await instance.prints(/serving the node and its pods/);
  // It follows once a query from the node has been answered; a probe lost on a busy machine is sent again.
  await waitFor("resolv.conf to name the gateway", async () =>
    (await node.resolvConf()).includes(SIMULATED_NETWORK.gateway) ? true : undefined,
  );
  return instance;
}

async function linesOf(node: SimulatedNode, command: string, ...args: string[]): Promise<string> {
  return (await node.enter(command, args)).stdout;
}

/** Everything of a node that dns11 may change. */
interface NodeState {
  readonly rules: string;
  readonly addresses: string;
  readonly localnet: string;
  readonly resolvConf: string;
}

async function stateOf(rig: SimulatedNetwork): Promise<NodeState> {
  const { node } = rig;
  return {
    rules: await linesOf(node, "nft", "-s", "list", "ruleset"),
    addresses: await linesOf(node, "ip", "-o", "addr", "show", "dev", "lo"),
    localnet: await linesOf(node, "sh", "-c", "cat /proc/sys/net/ipv4/conf/*/route_localnet"),
    resolvConf: await node.resolvConf(),
  };
}

/** The kernel removes the interface of a pod a moment after its namespace. The masquerading rules of pods belong to the rig. */
async function untilUntouched(rig: SimulatedNetwork, untouched: NodeState): Promise<void> {
  const left = async (): Promise<NodeState> => ({ ...(await stateOf(rig)), rules: "" });
  await untilSame("the node to be as it was", left, { ...untouched, rules: "" });
  assert.doesNotMatch((await stateOf(rig)).rules, /dns11/);
}

async function assertWorking(node: SimulatedNode): Promise<void> {
  const shown = await waitFor("the node to work", async () => {
    const { stdout } = await kind(node, "status", "--json");
    const [first] = JSON.parse(stdout) as { node: { state: string; advertised: string[] } }[];
    return first?.node.state === "working" ? first : undefined;
  });
  assert.deepEqual(shown.node.advertised, [SIMULATED_NETWORK.gateway]);
}

/** The shape of rules with which every command is tried; what does not depend on the shape is tried with no other. */
const WHOLE = "iptables-nft";

for (const rules of ["iptables-nft", "iptables-legacy", "nftables"] as const satisfies readonly DockerRules[]) {
  test(`long-running beside ${rules} rules: node and pods resolve, and nothing is left when it stops`, async () => {
    await using rig = await startSimulatedNetwork({ rules });
    const untouched = await stateOf(rig);
    {
      await using instance = await staying(rig.node);
      await using pod = await startPod(rig.node);
      assert.deepEqual(pod.nameservers, [SIMULATED_NETWORK.gateway]);
      for (const transport of TRANSPORTS) {
        assert.deepEqual(dataOf(await dig(pod, VIP, "web", transport)), WEB, instance.log);
        assert.deepEqual(dataOf(await dig(rig.node, VIP, "web", transport)), WEB);
        assert.deepEqual(dataOf(await dig(rig.node, "@127.0.0.11", "web", transport)), WEB);
      }
      if (rules === WHOLE) await assertWorking(rig.node);
      await pod[Symbol.asyncDispose]();
      await instance.end("SIGTERM");
    }
    await untilUntouched(rig, untouched);
  });

  test(`--once beside ${rules} rules: pods are redirected to Docker's resolver, and --undo restores the node`, async () => {
    await using rig = await startSimulatedNetwork({ rules });
    const untouched = await stateOf(rig);
    const made = await inNode(rig.node, "--once");
    assert.equal(made.code, 0, made.stderr);
    assert.match(made.stdout, /^pods query 10\.88\.0\.1, redirected to Docker's resolver \(udp 41053, tcp 41053\)\n$/);
    {
      await using pod = await startPod(rig.node);
      for (const transport of TRANSPORTS) {
        assert.deepEqual(dataOf(await dig(pod, VIP, "web", transport)), WEB);
        assert.deepEqual(dataOf(await dig(rig.node, VIP, "web", transport)), WEB);
        assert.deepEqual(dataOf(await dig(rig.node, "@127.0.0.11", "web", transport)), WEB);
      }
      const well = await diagnosed(rig.node);
      assert.deepEqual([well.code, well.wrong], [0, []]);
      const setting = `net.ipv4.conf.${pod.device}.route_localnet`;
      if (rules === WHOLE) await assertDiagnosed(rig.node, pod.device);
      const { stdout } = await inNode(rig.node, "--undo");
      // The interface is newer than --once and inherited the value from it.
      assert.match(stdout, new RegExp(`^restored route_localnet of ${pod.device} to 0$`, "m"));
      assert.equal(await linesOf(rig.node, "sysctl", "-n", setting), "0\n");
    }
    if (rules === WHOLE) {
      assert.equal((await inNode(rig.node, "--once")).code, 0);
      const undone = await inNode(rig.node, "--undo");
      assert.equal(undone.code, 0, undone.stderr);
      assert.match((await inNode(rig.node, "--undo")).stdout, /^nothing to undo$/m);
    }
    await untilUntouched(rig, untouched);
  });
}

/** After `--once`: what a second one, a doctor in the wrong place, and one that finds an interface shut print. */
async function assertDiagnosed(node: SimulatedNode, device: string): Promise<void> {
  const again = await inNode(node, "--once");
  assert.match(again.stdout, /^nothing done: .*was installed permanently from inside the node/);
  const lost = await kind(node, "doctor", "-H", "unix:///nowhere.sock");
  assert.deepEqual([lost.code, /dns11 kind doctor --in-node/.test(lost.stderr)], [1, true]);
  const setting = `net.ipv4.conf.${device}.route_localnet`;
  await node.setSysctl(setting, 0);
  const shut = await diagnosed(node);
  assert.deepEqual([shut.code, shut.wrong], [1, [`route-localnet: ${device}`]]);
  await node.setSysctl(setting, 1);
}

test("the commands of a run on a host work for one in a node, and SIGHUP reloads its settings", async () => {
  await using rig = await startSimulatedNetwork();
  const folder = await mkdtemp(join(tmpdir(), "d11-in-node-"));
  const config = join(folder, "dns11.yaml");
  try {
    await writeFile(config, "version: 1\n");
    await using instance = await staying(rig.node, "--config", config);
    const query = async (...words: string[]): Promise<unknown> => {
      const { code, stdout, stderr } = await rig.node.enter(process.execPath, [PROGRAM, ...words, "--json"]);
      assert.equal(code, 0, stderr);
      return JSON.parse(stdout);
    };
    const { containers, engine } = (await query("status")) as Status;
    const [node] = containers;
    assert.deepEqual([containers.length, engine], [1, null]);
    const explained = (await query("explain", "web", "--in", node?.name ?? "")) as Explanation;
    assert.deepEqual([explained.answeredBy, explained.reply?.answers.map(({ data }) => data)], ["servers", WEB]);
    const found = (await query("lookup", "web", "--in", node?.name ?? "")) as Lookup;
    assert.deepEqual([found.rcode, found.answers.map(({ data }) => data)], ["NOERROR", WEB]);
    const { upstreams } = (await query("upstreams")) as UpstreamReport;
    assert.ok(upstreams.some(({ from, state }) => from === "docker" && state === "up"));
    await writeFile(config, "version: 1\nqueries:\n  log: true\n");
    instance.signal("SIGHUP");
    await instance.prints(/settings reloaded/);
    assert.deepEqual(((await query("status")) as Status).settings["queries.log"]?.value, true);
    await dig(rig.node, "@127.0.0.11", "web");
    await instance.prints(/"name":"web".*"msg":"query"/);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("another kind mode after a reload: what the one before has switched on is off again", async () => {
  await using rig = await startSimulatedNetwork();
  const untouched = await stateOf(rig);
  const folder = await mkdtemp(join(tmpdir(), "d11-in-node-"));
  const config = join(folder, "dns11.yaml");
  try {
    await writeFile(config, "version: 1\nkind:\n  mode: loopback\n");
    await using instance = await staying(rig.node, "--config", config);
    const localnet = async (): Promise<string> => (await stateOf(rig)).localnet;
    assert.notEqual(await localnet(), untouched.localnet);
    await writeFile(config, "version: 1\nkind:\n  mode: listener\n");
    instance.signal("SIGHUP");
    await instance.prints(/settings reloaded/);
    await untilSame("route_localnet to be as it was", localnet, untouched.localnet);
    await assertWorking(rig.node);
    await using pod = await startPod(rig.node);
    assert.deepEqual(dataOf(await dig(pod, VIP, "web")), WEB);
    await pod[Symbol.asyncDispose]();
    await instance.end("SIGTERM");
    await untilUntouched(rig, untouched);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("--undo keeps a record that it cannot read, and says what to do", async () => {
  await using rig = await startSimulatedNetwork();
  const folder = await mkdtemp(join(tmpdir(), "d11-in-node-"));
  try {
    const place = ["--state-dir", folder];
    assert.equal((await inNode(rig.node, "--once", ...place)).code, 0);
    const files = await readdir(folder, { recursive: true });
    const record = join(folder, files.find((file) => /nodes\/.*\.json$/.test(file)) ?? assert.fail(files.join()));
    const text = await readFile(record, "utf8");
    await writeFile(record, text.slice(0, 40));
    const refused = await inNode(rig.node, "--undo", ...place);
    assert.deepEqual([refused.code, /is not known: ignored the damaged record/.test(refused.stderr)], [1, true]);
    await writeFile(record, text);
    const undone = await inNode(rig.node, "--undo", ...place);
    assert.deepEqual([undone.code, /restored resolv\.conf/.test(undone.stdout)], [0, true]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

test("Docker's resolver is found before and after KIND's entrypoint runs", async () => {
  await using rig = await startSimulatedNetwork();
  await rig.node.rewrite();
  await using _ = await staying(rig.node);
  await using pod = await startPod(rig.node);
  for (const transport of TRANSPORTS) {
    assert.deepEqual(dataOf(await dig(pod, VIP, "web", transport)), WEB);
    assert.deepEqual(dataOf(await dig(rig.node, "@127.0.0.11", "web", transport)), WEB);
  }
  await rig.node.rewrite();
  assert.deepEqual(dataOf(await dig(pod, VIP, "web")), WEB);
});

async function untilNoRules(node: SimulatedNode): Promise<void> {
  await waitFor("the rules to be gone", async () =>
    (await linesOf(node, "nft", "list", "tables")).includes("dns11") ? undefined : true,
  );
}

test("after a SIGKILL no rules are left, and --undo restores the rest", async () => {
  await using rig = await startSimulatedNetwork();
  const untouched = await stateOf(rig);
  await using instance = await staying(rig.node);
  await instance.end("SIGKILL");
  await untilNoRules(rig.node);
  const undone = await inNode(rig.node, "--undo");
  assert.match(undone.stdout, /^restored resolv\.conf$/m);
  await untilSame("the node to be as it was", async () => await stateOf(rig), untouched);
});

test("--undo reports its actions also if another program wrote resolv.conf", async () => {
  await using rig = await startSimulatedNetwork();
  await rig.node.rewrite();
  await using instance = await staying(rig.node);
  await instance.end("SIGKILL");
  await untilNoRules(rig.node);
  const undone = await inNode(rig.node, "--undo");
  assert.equal(undone.stdout, "removed 169.254.53.53, fd64:6e73:3131::53 from lo\n");
});

test("a second instance in the node is refused, and invalid options are errors", async () => {
  await using rig = await startSimulatedNetwork();
  await using _ = await staying(rig.node);
  const second = await inNode(rig.node);
  assert.deepEqual([second.code, /Another dns11 already serves/.test(second.stderr)], [4, true]);
  assert.match((await inNode(rig.node, "--once")).stdout, /^nothing done: .*another running instance/);
  const nothing = await kind(rig.node);
  assert.deepEqual([nothing.code, /Usage: dns11 kind/.test(nothing.stderr)], [2, true]);
});

test("without Docker's resolver --once fails and changes nothing", async () => {
  await using rig = await startSimulatedNetwork();
  await rig.resolver[Symbol.asyncDispose]();
  const untouched = await stateOf(rig);
  const refused = await inNode(rig.node, "--once");
  assert.deepEqual(
    [refused.code, /Docker's resolver does not listen on 127\.0\.0\.11/.test(refused.stderr)],
    [1, true],
  );
  assert.deepEqual(await stateOf(rig), untouched);
});
