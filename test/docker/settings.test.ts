/**
 * Settings of a dns11 that runs: routes lead each name to its server, by domain, by network and by label; and SIGHUP has
 * it go by what the settings file says now, or leaves everything as it is where the file is wrong.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { dataOf, dig } from "../support/client/dig.ts";
import { type Dns11, startDns11 } from "../support/program/dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { type Upstream, startUpstream } from "../support/servers/upstream.ts";
import { waitFor } from "../support/rig/wait.ts";

// Each server by the word under which a test expects it.
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
// Enough for Node, and not for the largest cache beside it.
const MEMORY_BYTES = 2e9;

let files = 0;
let asked = 0;

before(async () => {
  engine = await startEngine();
  for (const [word, where] of Object.entries(SERVERS)) upstreams.set(word, await startUpstream(engine, where));
  for (const name of ["web", "backend"]) await createNetwork(engine, name);
  web = await runContainer(engine, { name: "web", networks: ["web"] });
  backend = await runContainer(engine, { name: "backend", networks: ["backend"] });
  upstreams.set("inside", await startUpstream(backend, { address: "127.1.0.1" }));
});
after(async () => {
  for (const upstream of upstreams.values()) await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

test("a name goes to the servers of its longest domain, at whatever address and port", async () => {
  await using _ = await startDns11(engine, { args: ["--config", file(ROUTES)] });
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
    assert.deepEqual(await whoAnswers(web, domain), [server], domain);
  }
  const local = await dig(web, "printer.lan");
  assert.equal(local.status, "NXDOMAIN");
  assert.deepEqual(await whoHeard("printer.lan"), []);
});

test("a network's servers are for the containers on it, and asked from inside", async () => {
  await using instance = await startDns11(engine, { args: ["--config", file(ROUTES)] });
  assert.deepEqual(await whoAnswers(backend, "ok.test"), ["inside"]);
  assert.deepEqual(await whoAnswers(backend, "corp.ok.test"), ["corp"]);
  assert.deepEqual(await whoAnswers(web, "ok.test"), ["hosts"]);
  const { upstreams: shown } = (await instance.container("backend")) ?? assert.fail();
  assert.ok(shown?.includes("127.1.0.1"), String(shown));
});

test("a container's label counts where the settings say nothing, is asked from inside, and what is wrong of it is told", async () => {
  const labels = { "io.dns11.dns": "10.53.0.2, /deep.ok.test/host /corp.ok.test/10.53.0.2 10.53" };
  await using labelled = await runContainer(engine, { name: "labelled", networks: ["web"], labels });
  await using instance = await startDns11(engine, { args: ["--config", file(ROUTES)] });
  for (const [domain, server] of [
    ["ok.test", "other"],
    ["deep.ok.test", "hosts"],
    ["corp.ok.test", "corp"],
    ["six.ok.test", "six"],
  ] as const) {
    assert.deepEqual(await whoAnswers(labelled, domain), [server], domain);
  }
  const { warning, upstreams: shown } = (await instance.container("labelled")) ?? assert.fail();
  assert.match(warning ?? "", /^invalid label io\.dns11\.dns: invalid nameserver "10\.53"/);
  assert.ok(shown?.includes("10.53.0.2"), String(shown));
  assert.match(instance.log, /container has a configuration problem/);
});

test("flags go before the environment, that before the file, and status says who said what", async () => {
  const args = ["--config", file("dns: [10.53.0.1:5353]\nttl: 7\n"), "--dns-opt", "ndots:1"];
  const env = { DNS11_DNS: "10.53.0.2", DNS11_TTL: "8", DNS11_DNS_OPT: "rotate" };
  await using instance = await startDns11(engine, { args, env });
  assert.deepEqual(await whoAnswers(web, "ok.test"), ["other"]);
  const [answer] = (await dig(web, "web")).answer;
  assert.equal(answer?.ttl, 8);
  const { settings, config } = await instance.status();
  assert.equal(config, args[1]);
  assert.deepEqual(settings["dns"], { value: ["10.53.0.2"], source: "environment" });
  assert.deepEqual(settings["dns-opt"], { value: ["ndots:1"], source: "flag" });
  assert.deepEqual(settings["cache.size"]?.source, "default");
  const dotless = await dig(web, "nowhere");
  assert.deepEqual([dotless.status, dotless.answer.length], ["NOERROR", 0]);
  assert.deepEqual(await whoHeard("nowhere"), []);
});

test("SIGHUP has a good file count at once, as a whole, and tells what changed", async () => {
  const path = file("dns: [/corp.ok.test/10.53.0.1:5353]\n");
  await using instance = await startDns11(engine, { args: ["--config", path] });
  assert.deepEqual(await whoAnswers(web, "corp.ok.test"), ["corp"]);
  write(path, "strict: true\nonly: [network=web]\ndns: [/corp.ok.test/10.53.0.2]\n");
  await reloaded(instance, /settings reloaded/);
  assert.match(instance.log, /"changed":\[[^\]]*"strict: false -> true"/);
  assert.deepEqual(await whoAnswers(web, "corp.ok.test"), ["other"]);
  const [answer] = (await dig(web, "web")).answer;
  assert.equal(answer?.ttl, 600);
  assert.equal((await instance.waitFor("backend", "skipped")).code, "not-selected");
  write(path, "");
  await reloaded(instance, /settings reloaded/);
  assert.deepEqual(await whoAnswers(web, "corp.ok.test"), ["hosts"]);
  await instance.waitFor("backend", "attached");
});

test("SIGHUP with a bad file tells where it is wrong, and changes nothing", async () => {
  const path = file("dns: [/corp.ok.test/10.53.0.1:5353]\n");
  await using instance = await startDns11(engine, { args: ["--config", path] });
  write(path, "dns: [/corp.ok.test/10.53.0.2]\nttl: long\nsrict: true\n");
  await reloaded(instance, /reload failed, keeping the previous settings/);
  assert.match(instance.log, new RegExp(`"reason":"${path}:3:6: ttl: [^\\n]*; ${path}:4:1: srict: `));
  assert.deepEqual(await whoAnswers(web, "corp.ok.test"), ["corp"]);
  rmSync(path);
  await reloaded(instance, /reload failed, keeping the previous settings/);
  assert.deepEqual(await whoAnswers(web, "corp.ok.test"), ["corp"]);
  write(path, "dns: [/corp.ok.test/10.53.0.2]\n");
  await reloaded(instance, /settings reloaded/);
  assert.deepEqual(await whoAnswers(web, "corp.ok.test"), ["other"]);
});

test("a cache for which the machine has no room is told, at the start and at SIGHUP, and changes nothing", async () => {
  const path = file("dns: [/corp.ok.test/10.53.0.1:5353]\n");
  const large = "dns: [/corp.ok.test/10.53.0.2]\ncache: {size: 4GiB}\n";
  const options = { args: ["--config", path], prefix: ["prlimit", `--data=${MEMORY_BYTES}`] };
  {
    await using instance = await startDns11(engine, options);
    write(path, large);
    await reloaded(
      instance,
      /[Nn]ot enough memory for a cache of 4096 MiB.*reload failed, keeping the previous settings/,
    );
    assert.deepEqual(await whoAnswers(web, "corp.ok.test"), ["corp"]);
    assert.equal((await instance.status()).settings["cache.size"]?.source, "default");
  }
  await assert.rejects(startDns11(engine, options), ({ message }: Error) => {
    assert.match(message, /[Nn]ot enough memory for a cache of 4096 MiB/);
    assert.match(message, /Choose a smaller cache.size/);
    return true;
  });
});

test("a query that is on its way when the settings change is answered", async () => {
  const path = file("");
  await using instance = await startDns11(engine, { args: ["--config", path] });
  const slow = dig(web, "+time=8", "1500.slow.test");
  await waitFor("the query to arrive", async () => ((await whoHeard("1500.slow.test")).length > 0 ? true : undefined));
  write(path, "strict: true\n");
  await reloaded(instance, /settings reloaded/);
  assert.deepEqual(dataOf(await slow), ["192.0.2.220"]);
});

test("SIGHUP without a settings file is told, and nothing else", async () => {
  await using instance = await startDns11(engine);
  await reloaded(instance, /cannot reload, there is no settings file/);
  assert.deepEqual(await whoAnswers(web, "ok.test"), ["hosts"]);
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

// Until it has said so once more than before.
async function reloaded(instance: Dns11, line: RegExp): Promise<void> {
  const count = (): number => instance.log.split("\n").filter((each) => line.test(each)).length;
  const already = count();
  instance.kill("SIGHUP");
  await waitFor(`dns11 to say ${line.source}`, () => (count() > already ? true : undefined));
}

// Which servers are asked for a name of this domain that nobody has asked for before, and that one of them answered.
async function whoAnswers(client: Container, domain: string): Promise<string[]> {
  const name = `n${(asked += 1)}.${domain}`;
  const reply = await dig(client, name);
  assert.equal(reply.status, "NOERROR", `${name}: ${reply.raw}`);
  return await whoHeard(name);
}

async function whoHeard(name: string): Promise<string[]> {
  const heard = await Promise.all(
    [...upstreams].map(async ([word, upstream]) => ((await upstream.askedFor(name)).length > 0 ? [word] : [])),
  );
  return heard.flat();
}
