/**
 * Settings of a running dns11: routes forward each name to its server, by domain, network and label; SIGHUP reloads the
 * settings file, or keeps the previous settings if the file is invalid.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { dataOf, dig } from "../support/client/dig.ts";
import type { CommandResult } from "../support/program/command.ts";
import { type Dns11, dns11, startDns11 } from "../support/program/dns11.ts";
import { SharedDns11 } from "../support/program/shared-dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { type Upstream, startUpstream } from "../support/servers/upstream.ts";
import { waitFor } from "../support/rig/wait.ts";

// Each server by the key that the tests use for it.
const SERVERS = {
  hosts: { address: "127.0.0.1" },
  corp: { address: "10.53.0.1", port: 5353 },
  other: { address: "10.53.0.2" },
  six: { address: "fd53::1", port: 5353 },
  link: { address: "fe80::53%lo" },
} as const;

const ROUTES = `
dns:
  - /corp.ok.test/10.53.0.1:5353
  - /deep.corp.ok.test/other.corp.ok.test/10.53.0.2
  - /six.ok.test/[fd53::1]:5353
  - /link.ok.test/fe80::53%lo
  - /back.corp.ok.test/host
  - /lan/
networks:
  backend:
    dns: [container:127.1.0.1]
`;

const folder = mkdtempSync(join(tmpdir(), "d11-settings-"));
const upstreams = new Map<string, Upstream>();
let engine: Engine;
let web: Container;
let backend: Container;
// Enough for Node, but not also for the largest cache.
const MEMORY_BYTES = 2e9;

const shared = new SharedDns11(() => engine);
let files = 0;
let names = 0;

before(async () => {
  engine = await startEngine({ suite: "bookworm" });
  for (const [word, where] of Object.entries(SERVERS)) upstreams.set(word, await startUpstream(engine, where));
  for (const name of ["web", "backend"]) await createNetwork(engine, name);
  web = await runContainer(engine, { name: "web", networks: ["web"] });
  backend = await runContainer(engine, { name: "backend", networks: ["backend"] });
  upstreams.set("inside", await startUpstream(backend, { address: "127.1.0.1" }));
});
after(async () => {
  await shared[Symbol.asyncDispose]();
  for (const upstream of upstreams.values()) await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

test("a name is forwarded to the servers of its longest matching domain, at any address and port", async () => {
  await shared.under(ROUTES);
  for (const [domain, server] of [
    ["ok.test", "hosts"],
    ["corp.ok.test", "corp"],
    ["CORP.ok.test", "corp"],
    ["a.b.corp.ok.test", "corp"],
    ["deep.corp.ok.test", "other"],
    ["other.corp.ok.test", "other"],
    ["back.corp.ok.test", "hosts"],
    ["notcorp.ok.test", "hosts"],
    ["six.ok.test", "six"],
    ["link.ok.test", "link"],
  ] as const) {
    assert.deepEqual(await serversFor(web, domain), [server], domain);
  }
  const local = await dig(web, "printer.lan");
  assert.equal(local.status, "NXDOMAIN");
  assert.deepEqual(await serversQueriedFor("printer.lan"), []);
});

test("servers of a network are used for its containers, and queried from inside them", async () => {
  const instance = await shared.under(ROUTES);
  assert.deepEqual(await serversFor(backend, "ok.test"), ["inside"]);
  assert.deepEqual(await serversFor(backend, "corp.ok.test"), ["corp"]);
  assert.deepEqual(await serversFor(web, "ok.test"), ["hosts"]);
  const { upstreams: shown } = (await instance.container("backend")) ?? assert.fail();
  assert.ok(shown?.includes("127.1.0.1"), String(shown));
});

test("a container's label applies where the settings have no route, its servers are queried from inside, and mistakes are reported", async () => {
  const labels = { "io.dns11.dns": "10.53.0.2, /deep.ok.test/host /corp.ok.test/10.53.0.2 10.53" };
  await using labelled = await runContainer(engine, { name: "labelled", networks: ["web"], labels });
  const instance = await shared.under(ROUTES);
  for (const [domain, server] of [
    ["ok.test", "other"],
    ["deep.ok.test", "hosts"],
    ["corp.ok.test", "corp"],
    ["six.ok.test", "six"],
  ] as const) {
    assert.deepEqual(await serversFor(labelled, domain), [server], domain);
  }
  const { warning, upstreams: shown } = (await instance.container("labelled")) ?? assert.fail();
  assert.match(warning ?? "", /^invalid label io\.dns11\.dns: invalid nameserver "10\.53"/);
  assert.ok(shown?.includes("10.53.0.2"), String(shown));
  await instance.logs(/container has a configuration problem/);
});

test("what only a restart puts in force is not said to be done: by reload, and by status until then", async () => {
  await shared.stop();
  const path = file("answers: auto\nttl: 7\n");
  await using instance = await startDns11(engine, { args: ["--config", path] });
  const at = ["-H", engine.host, "--state-dir", instance.stateDir];
  write(path, "answers: process\nttl: 8\n");
  const { code, stdout, stderr } = await dns11(["reload", ...at]);
  assert.equal(code, 0, stderr);
  const [head, now, waits, later] = stdout.split("\n");
  assert.equal(head, `reloaded ${path}:`);
  assert.match(now ?? "", /^ {2}ttl: /);
  assert.match(waits ?? "", /^not in force until dns11 is started again \(systemctl restart dns11, /);
  assert.equal(later, '  answers: "auto" -> "process"');
  assert.match((await dns11(["status", ...at])).stdout, /^settings .*answers \(file, after a restart\), /m);
  assert.match((await dns11(["reload", ...at])).stdout, /; nothing changed\nnot in force until/);
});

test("systemctl reload fails where the file is invalid, and names the line; the previous settings stay", async () => {
  const unit = readFileSync("scripts/systemd/dns11.service", "utf8");
  const [, command = ""] = /^ExecReload=\/usr\/bin\/dns11 (.*)$/m.exec(unit) ?? [];
  const path = file("ttl: 7\n");
  await using instance = await startDns11(engine, { args: ["--config", path] });
  const words = command.replace("$MAINPID", String(instance.pid)).split(" ");
  const systemctlReload = async (): Promise<CommandResult> =>
    await dns11(words, { env: { DNS11_STATE_DIR: instance.stateDir, DOCKER_HOST: "unix:///nonexistent.sock" } });
  assert.equal((await systemctlReload()).code, 0);
  write(path, "ttl: soon\n");
  const { code, stderr } = await systemctlReload();
  assert.equal(code, 1, stderr);
  assert.match(stderr, /Reload failed, the previous settings stay in force:\n.*settings-\d+\.yaml:2:\d+: ttl/);
});

test("a reload that replaces the cache keeps back no more descriptors than before", async () => {
  // Those that are kept back are of this file, and nothing else opens it again and again.
  const { rdev } = statSync("/dev/null");
  const keptBy = (pid: number): number =>
    readdirSync(`/proc/${pid}/fd`).filter(
      (fd) => statSync(`/proc/${pid}/fd/${fd}`, { throwIfNoEntry: false })?.rdev === rdev,
    ).length;
  const counts: number[] = [];
  for (const size of [1, 2, 3]) {
    const instance = await shared.under(`cache: { size: ${size}MiB }`);
    counts.push(keptBy((await instance.status()).pid));
  }
  assert.deepEqual(counts, [counts[0], counts[0], counts[0]]);
});

test("a second instance with another state directory says at its start that it serves nothing", async () => {
  await using _first = await startDns11(engine);
  await using second = await startDns11(engine);
  await second.logs(/"level":"error".*another dns11 serves the containers, so this one serves none/);
});

test("flags take precedence over the environment, and that over the file; status shows the source of each setting", async () => {
  await shared.stop();
  const args = ["--config", file("dns: [10.53.0.1:5353]\nttl: 7\n"), "--ttl", "9"];
  const env = { DNS11_DNS: "10.53.0.2", DNS11_TTL: "8", DNS11_FORWARD_DOMAIN_NEEDED: "yes" };
  await using instance = await startDns11(engine, { args, env });
  assert.deepEqual(await serversFor(web, "ok.test"), ["other"]);
  const [answer] = (await dig(web, "web")).answer;
  assert.equal(answer?.ttl, 9);
  const { settings, config } = await instance.status();
  assert.equal(config, args[1]);
  assert.deepEqual(settings["dns"], { value: ["10.53.0.2"], source: "environment" });
  assert.deepEqual(settings["ttl"], { value: "9s", source: "flag" });
  assert.deepEqual(settings["cache.size"]?.source, "default");
  const dotless = await dig(web, "nowhere");
  assert.deepEqual([dotless.status, dotless.answer.length], ["NXDOMAIN", 0]);
  assert.deepEqual(await serversQueriedFor("nowhere"), []);
});

describe("reloads of one instance", () => {
  let path: string;
  let instance: Dns11;

  before(async () => {
    await shared.stop();
    path = file("dns: [/corp.ok.test/10.53.0.1:5353]\n");
    instance = await startDns11(engine, { args: ["--config", path] });
  });
  after(async () => await instance[Symbol.asyncDispose]());

  test("SIGHUP with an invalid file logs where the mistakes are, and changes nothing", async () => {
    write(path, "dns: [/corp.ok.test/10.53.0.2]\nttl: long\nsrict: true\n");
    await reload(instance, /reload failed, keeping the previous settings/);
    await instance.logs(new RegExp(`"reason":"${path}:3:6: ttl: [^\\n]*; ${path}:4:1: srict: `));
    assert.deepEqual(await serversFor(web, "corp.ok.test"), ["corp"]);
    rmSync(path);
    await reload(instance, /reload failed, keeping the previous settings/);
    assert.deepEqual(await serversFor(web, "corp.ok.test"), ["corp"]);
    write(path, "dns: [/corp.ok.test/10.53.0.2]\n");
    await reload(instance, /settings reloaded/);
    assert.deepEqual(await serversFor(web, "corp.ok.test"), ["other"]);
  });

  test("a valid file is applied at once and as a whole, what changed is logged, and a query in flight is answered", async () => {
    write(path, "dns: [/corp.ok.test/10.53.0.1:5353]\n");
    await reload(instance, /settings reloaded/);
    assert.deepEqual(await serversFor(web, "corp.ok.test"), ["corp"]);
    const slow = dig(web, "+time=30", "1500.slow.test");
    await waitFor("the query to arrive", async () =>
      (await serversQueriedFor("1500.slow.test")).length > 0 ? true : undefined,
    );
    write(path, "strict: true\nonly: [network=web]\ndns: [/corp.ok.test/10.53.0.2]\n");
    await reload(instance, /settings reloaded/);
    await instance.logs(/"changed":\[[^\]]*"strict: false -> true"/);
    assert.deepEqual(await serversFor(web, "corp.ok.test"), ["other"]);
    const [answer] = (await dig(web, "web")).answer;
    assert.equal(answer?.ttl, 600);
    assert.deepEqual(dataOf(await slow), ["192.0.2.220"]);
    assert.equal((await instance.waitFor("backend", "skipped")).code, "not-selected");
    write(path, "");
    await reload(instance, /settings reloaded/);
    assert.deepEqual(await serversFor(web, "corp.ok.test"), ["hosts"]);
    await instance.waitFor("backend", "attached");
  });
});

test("a cache that exceeds the memory is refused at the start, and at SIGHUP keeps the previous settings", async () => {
  const path = file("dns: [/corp.ok.test/10.53.0.1:5353]\n");
  const large = "dns: [/corp.ok.test/10.53.0.2]\ncache: {size: 4GiB}\n";
  const options = { args: ["--config", path], prefix: ["prlimit", `--data=${MEMORY_BYTES}`] };
  {
    await using instance = await startDns11(engine, options);
    write(path, large);
    await reload(
      instance,
      /[Nn]ot enough memory for a cache of 4096 MiB.*reload failed, keeping the previous settings/,
    );
    assert.deepEqual(await serversFor(web, "corp.ok.test"), ["corp"]);
    assert.equal((await instance.status()).settings["cache.size"]?.source, "default");
  }
  await assert.rejects(startDns11(engine, options), ({ message }: Error) => {
    assert.match(message, /[Nn]ot enough memory for a cache of 4096 MiB/);
    assert.match(message, /Set a smaller cache\.size/);
    return true;
  });
});

test("SIGHUP without a settings file is logged and has no effect", async () => {
  await using instance = await startDns11(engine);
  await reload(instance, /cannot reload, there is no settings file/);
  assert.deepEqual(await serversFor(web, "ok.test"), ["hosts"]);
  assert.equal(await instance.stop(), 0);
});

function file(text: string): string {
  const path = join(folder, `settings-${(files += 1)}.yaml`);
  write(path, text);
  return path;
}

function write(path: string, text: string): void {
  writeFileSync(path, `version: 1\n${text}`);
}

// Reloads, and waits until the log has one more such line.
async function reload(instance: Dns11, line: RegExp): Promise<void> {
  const count = (): number => instance.log.split("\n").filter((each) => line.test(each)).length;
  const already = count();
  instance.kill("SIGHUP");
  await waitFor(`dns11 to log ${line.source}`, () => (count() > already ? true : undefined));
}

// The servers that receive a query for a new name in this domain; it must be answered.
async function serversFor(client: Container, domain: string): Promise<string[]> {
  const name = `n${(names += 1)}.${domain}`;
  const reply = await dig(client, name);
  assert.equal(reply.status, "NOERROR", `${name}: ${reply.raw}`);
  return await serversQueriedFor(name);
}

async function serversQueriedFor(name: string): Promise<string[]> {
  const found = await Promise.all(
    [...upstreams].map(async ([word, upstream]) => ((await upstream.queriesFor(name)).length > 0 ? [word] : [])),
  );
  return found.flat();
}
