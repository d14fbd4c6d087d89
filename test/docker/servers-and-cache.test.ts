// dns11 upstreams, cache and reload: reports on upstream servers and cache entries, flushing the cache, and reloads that wait
// for their result.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { EXIT } from "../../cmd/process/exit-code.ts";
import type { Upstream } from "../../src/api/upstreams.ts";
import type { CommandResult } from "../support/program/command.ts";
import { createNetwork, runContainer } from "../support/engine/container.ts";
import { dataOf, dig } from "../support/client/dig.ts";
import { type Dns11, dns11, startDns11 } from "../support/program/dns11.ts";
import { SharedDns11 } from "../support/program/shared-dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { type ScriptedServers, startScripted } from "../support/scripted/scripted.ts";
import { waitFor } from "../support/rig/wait.ts";
import { LOOPBACKS, startCase } from "./forwarding/case.ts";

const HOST_SERVERS = ["10.53.0.1", "10.53.0.2"] as const;
const folder = mkdtempSync(join(tmpdir(), "d11-servers-"));

let engine: Engine;
let host: ScriptedServers;
const shared = new SharedDns11(() => engine);

before(async () => {
  const resolvConf = HOST_SERVERS.map((address) => `nameserver ${address}\n`).join("");
  engine = await startEngine({ resolvConf });
  await createNetwork(engine, "n1");
  host = await startScripted(engine, "count", { addresses: HOST_SERVERS });
});
after(async () => {
  await shared[Symbol.asyncDispose]();
  await host[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

async function command(instance: Dns11, ...args: string[]): Promise<CommandResult> {
  return await dns11([...args, "-H", engine.host, "--state-dir", instance.stateDir]);
}

async function serverNamed(instance: Dns11, server: string, container?: string): Promise<Upstream> {
  const { upstreams } = await instance.client.upstreams();
  const found = upstreams.find((each) => each.server === server && each.container === (container ?? null));
  return found ?? assert.fail(`no ${server} among ${JSON.stringify(upstreams)}`);
}

test("cache entries and hits are counted, in total and per container", async () => {
  const instance = await shared.under();
  // The first queries of this instance.
  await using fixture = await startCase(engine, instance, { scenario: "count" });
  for (const name of ["a.test", "b.test", "a.test", "a.test"]) await fixture.dig(name);
  const report = await instance.client.cache();
  const { isCaching, entries, hits, misses, evictions, bytes, bytesMax } = report;
  assert.deepEqual([isCaching, entries, hits, misses, evictions], [true, 2, 2, 2, 0]);
  assert.ok(bytes > 0 && bytes < bytesMax);
  assert.deepEqual(report.containers, [{ container: fixture.container.name, entries: 2, bytes, hits: 2 }]);
  const { stdout } = await command(instance, "cache", "stats");
  assert.match(stdout, /^2 entries, [\d.]+ KiB of 32768 KiB\n2 hits \(50 %\), 2 misses, 0 stale/);
  const shown = await command(instance, "cache", "show", "a*");
  assert.match(
    shown.stdout,
    /^NAME +TYPE +EXPIRES +CONTAINER +SIZE +ANSWER\na\.test +A +\d+ s +\S+ +[\d.]+ KiB +A \S+\n$/,
  );
  assert.match((await command(instance, "cache", "show", "--limit", "1")).stdout, /\n1 more entry is not shown/);
  assert.equal((await command(instance, "cache", "show", "c*")).stdout, "no cached name matches c*\n");
});

test("what is asked again and again is answered by the kernel from the cache, and counted; a flush and new servers end it at once", async () => {
  await shared.stop();
  const path = join(folder, "popular.yaml");
  writeFileSync(path, "version: 1\nanswers: kernel\n");
  await using instance = await startDns11(engine, { args: ["--config", path] });
  await using fixture = await startCase(engine, instance, { scenario: "count" });
  await instance.waitForKernel();
  const { container } = fixture;
  const counted = async (): Promise<Readonly<Record<string, number>>> =>
    (await instance.container(container.name))?.counters ?? assert.fail();
  const byKernel = async (): Promise<void> => {
    await waitFor("the kernel to answer from the cache", async () => {
      const { kernelCached = 0 } = await counted();
      await dig(container, "+tries=1", "popular.test");
      return ((await counted())["kernelCached"] ?? 0) > kernelCached || undefined;
    });
  };
  await byKernel();
  const { cached = 0, forwarded = 0, kernelCached = 0 } = await counted();
  assert.ok(cached >= kernelCached && forwarded === 1);
  assert.equal((await command(instance, "cache", "flush", "popular.test")).code, EXIT.ok);
  await dig(container, "popular.test");
  assert.equal((await counted())["forwarded"], 2);
  await byKernel();
  writeFileSync(path, "version: 1\nanswers: kernel\ndns: [/popular.test/10.53.0.2]\n");
  await instance.reload();
  await dig(container, "popular.test");
  assert.equal((await counted())["forwarded"], 3);
});

test("the host's servers are listed once, a container's own servers per container, with their domains", async () => {
  await using one = await runContainer(engine, { name: "one", networks: ["n1"] });
  await using two = await runContainer(engine, { name: "two", networks: ["n1"], dns: [LOOPBACKS[0]] });
  const instance = await shared.under("dns: [/corp.test/10.53.0.2]");
  const first = await serverNamed(instance, "host(10.53.0.1)");
  const by = "the host's current resolv.conf";
  assert.deepEqual(first.uses, [{ domain: ".", by, containers: [one.name] }]);
  const second = await serverNamed(instance, "host(10.53.0.2)");
  assert.deepEqual(
    second.uses.map(({ domain, containers }) => [domain, containers]),
    [
      [".", [one.name]],
      ["corp.test", [one.name, two.name]],
    ],
  );
  const own = await serverNamed(instance, LOOPBACKS[0], two.name);
  assert.deepEqual([own.from, own.state, own.counters], ["container", "unknown", null]);
  await dig(one, "x.test");
  const used = await serverNamed(instance, "host(10.53.0.1)");
  // A busy machine may have let it send the query again.
  const { queries = 0, answers = 0, ...others } = used.counters ?? {};
  assert.deepEqual(
    [used.state, others, used.edns, used.isLooping],
    ["up", { useless: 0, unreachable: 0 }, true, false],
  );
  assert.ok(queries >= 1 && answers >= 1);
  assert.ok((used.rttMs ?? 0) > 0 && used.deviationMs !== null);
});

test("a closed server is down, with a time and a reason, and up again when it answers", async () => {
  const instance = await shared.under();
  await using fixture = await startCase(engine, instance, { scenario: "closed" });
  const { name } = fixture.container;
  const began = Date.now();
  await fixture.dig("x.test");
  const down = await serverNamed(instance, LOOPBACKS[0], name);
  assert.equal(down.state, "down");
  assert.match(down.reason ?? "", /ECONNREFUSED/);
  assert.ok((down.counters?.unreachable ?? 0) > 0);
  const since = Date.parse(down.since ?? "");
  assert.ok(since >= began - 10 && since <= Date.now(), `${down.since}`);
  assert.match(
    (await command(instance, "upstreams")).stdout,
    new RegExp(`127\\.1\\.0\\.1 +"${name}" +down \\([^)]*ECONNREFUSED`),
  );
  await fixture.servers.play("ok");
  const up = async (): Promise<true | undefined> => {
    await fixture.dig("+time=5", "y.test");
    return (await serverNamed(instance, LOOPBACKS[0], name)).state === "up" ? true : undefined;
  };
  await waitFor("the server to be up again", up);
  assert.equal((await serverNamed(instance, LOOPBACKS[0], name)).reason, "answers again");
});

test("a server without EDNS and a server that always fails are reported as such", async () => {
  const instance = await shared.under();
  await using fixture = await startCase(engine, instance, { scenario: "formerr-to-edns" });
  assert.equal((await fixture.dig("x.test")).status, "NOERROR");
  assert.equal((await serverNamed(instance, LOOPBACKS[0], fixture.container.name)).edns, false);
  await using failing = await startCase(engine, instance, { scenario: "servfail" });
  await failing.dig("x.test");
  const { counters } = await serverNamed(instance, LOOPBACKS[0], failing.container.name);
  assert.ok((counters?.useless ?? 0) > 0);
});

test("stale answers and evictions are counted", async () => {
  const instance = await shared.under("cache: {size: 64KiB}");
  await using fixture = await startCase(engine, instance, { scenario: "ttl 1\ncount" });
  await fixture.storm("many.test", 500, 10);
  assert.ok((await instance.client.cache()).evictions > 0);
  assert.equal((await fixture.dig("old.test")).status, "NOERROR");
  await fixture.servers.play("servfail");
  const stale = async (): Promise<true | undefined> => {
    await fixture.dig("old.test");
    return (await instance.client.cache()).stale > 0 ? true : undefined;
  };
  await waitFor("a stale answer", stale);
});

test("a flush removes one name with all types and servers, or everything", async () => {
  const instance = await shared.under();
  await using one = await startCase(engine, instance, { scenario: "ok" });
  await using two = await startCase(engine, instance, { scenario: "ok" });
  for (const fixture of [one, two]) for (const type of ["A", "AAAA"]) await fixture.dig("Gone.test", type);
  await one.dig("stays.test");
  const { replies, inFlight, name } = await instance.client.flushCache("gone.TEST");
  assert.deepEqual([replies, inFlight, name], [4, 0, "gone.TEST"]);
  const times = async (): Promise<number[]> =>
    await Promise.all([one, two].map(async (fixture) => await fixture.timesQueried("gone.test")));
  const [earlier, stayed] = [await times(), await one.timesQueried("stays.test")];
  for (const fixture of [one, two]) await fixture.dig("gone.test");
  await one.dig("stays.test");
  for (const [index, now] of (await times()).entries()) assert.ok(now > (earlier[index] ?? 0), "queried again");
  assert.equal(await one.timesQueried("stays.test"), stayed);
  assert.equal(
    (await command(instance, "cache", "flush", "nobody.test")).stdout,
    "0 entries for nobody.test removed\n",
  );
  const { code, stdout } = await command(instance, "cache", "flush");
  assert.deepEqual([code, stdout], [0, "3 entries removed\n"]);
  await one.dig("stays.test");
  assert.ok((await one.timesQueried("stays.test")) > stayed);
});

for (const what of ["its name", "everything"]) {
  test(`a query in flight when ${what} is flushed is answered, and its reply is not cached`, async () => {
    const instance = await shared.under();
    await using fixture = await startCase(engine, instance, { scenario: "slow 2s count" });
    const client = instance.client;
    let round = 0;
    // On a busy machine the query may have ended before the flush.
    const [name, reply] = await waitFor("a query in flight when it is flushed", async () => {
      const queried = `in-flight-${(round += 1)}.test`;
      const pending = fixture.dig(queried);
      await waitFor("the query to reach the server", async () =>
        (await fixture.timesQueried(queried)) > 0 ? true : undefined,
      );
      const { inFlight } = await client.flushCache(what === "everything" ? undefined : queried);
      const ended = await pending;
      return inFlight === 1 ? ([queried, ended] as const) : undefined;
    });
    assert.equal(reply.status, "NOERROR");
    await fixture.servers.play("count");
    const times = await fixture.timesQueried(name);
    await fixture.dig(name);
    assert.ok((await fixture.timesQueried(name)) > times, "queried again");
  });
}

test("with --strict there is no cache and no server health, and the reports say so", async () => {
  await using client = await runContainer(engine, { name: "client", networks: ["n1"] });
  const instance = await shared.under("strict: true");
  await dig(client, "x.test");
  const { tracksServers, upstreams } = await instance.client.upstreams();
  assert.equal(tracksServers, false);
  assert.deepEqual(
    upstreams.map(({ server, state }) => [server, state]),
    HOST_SERVERS.map((address) => [`host(${address})`, "unknown"]),
  );
  assert.equal((await instance.client.cache()).isCaching, false);
  assert.equal((await instance.client.flushCache()).isCaching, false);
  for (const verb of ["stats", "flush"]) {
    assert.match((await command(instance, "cache", verb)).stdout, /^the cache is off \(cache\.size: 0/);
  }
});

test("reload waits for the result, and reports what changed", async () => {
  await shared.stop();
  const path = join(folder, "reload.yaml");
  writeFileSync(path, "version: 1\nttl: 7\n");
  await using client = await runContainer(engine, { name: "client", networks: ["n1"] });
  await using instance = await startDns11(engine, { args: ["--config", path] });
  assert.equal((await dig(client, "client")).answer[0]?.ttl, 7);
  writeFileSync(path, "version: 1\nttl: 9\n");
  assert.deepEqual(await instance.client.reload(), {
    config: path,
    changed: ['ttl: "7s" -> "9s"'],
    afterRestart: [],
  });
  assert.equal((await dig(client, "client")).answer[0]?.ttl, 9);
  assert.equal((await command(instance, "reload")).stdout, `reloaded ${path}; nothing changed\n`);
  writeFileSync(path, "version: 1\nttl: long\nsrict: true\n");
  const { code, stderr } = await command(instance, "reload");
  assert.equal(code, EXIT.failure);
  assert.match(stderr, /the previous settings stay in force:\n/);
  assert.match(stderr, new RegExp(`^${path}:2:6: ttl: `, "m"));
  assert.match(stderr, new RegExp(`^${path}:3:1: srict: `, "m"));
  assert.equal((await dig(client, "client")).answer[0]?.ttl, 9);
  assert.deepEqual(dataOf(await dig(client, "client")), [client.address("n1")]);
});

test("reload fails without a settings file, and control commands fail if dns11 is not running", async () => {
  await using instance = await startDns11(engine);
  const { code, stderr } = await command(instance, "reload");
  assert.equal(code, EXIT.failure);
  assert.match(stderr, /There is no settings file to reload\n +Start dns11 with one/);
  await instance.stop();
  for (const args of [["reload"], ["upstreams"], ["cache", "stats"]]) {
    const result = await command(instance, ...args);
    assert.equal(result.code, EXIT.failure, args.join(" "));
    assert.match(result.stderr, /dns11 is not running for this engine/, args.join(" "));
  }
});
