// Proves that the queries of lookup, explain and doctor appear nowhere as a container's: not in its history, counters and
// failures, not in the metrics; and that a container cannot make its own queries look like them.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import type { ControlClient } from "../../src/api/control-client.ts";
import { locateControl } from "../../src/api/locate.ts";
import { LIMITS } from "../../src/base/limits.ts";
import { dig } from "../support/client/dig.ts";
import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { page, sumOf } from "../support/program/scrape.ts";
import { type Dns11, dns11, startDns11 } from "../support/program/dns11.ts";
import { waitFor } from "../support/rig/wait.ts";
import { type Upstream, startUpstream } from "../support/servers/upstream.ts";

let engine: Engine;
let upstream: Upstream;
let instance: Dns11;
let app: Container;
let client: ControlClient;

before(async () => {
  engine = await startEngine({ resolvConf: "nameserver 127.0.0.1\n" });
  upstream = await startUpstream(engine);
  await createNetwork(engine, "n1");
  app = await runContainer(engine, { name: "app", networks: ["n1"], args: ["--dns-search", "corp.nx.test"] });
  instance = await startDns11(engine);
  client = instance.client;
});
after(async () => {
  await instance[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

/** Everything that users see of queries. */
async function seen(): Promise<object> {
  const { text } = await page(await locateControl(instance.stateDir, engine.host), "/metrics");
  const { hits, misses } = await client.cache();
  return {
    counters: await client.counters(),
    queries: (await client.queries({ container: "app" })).queries.map(({ name }) => name),
    failures: (await client.failures({ container: "app" })).failures.map(({ name }) => name),
    requests: sumOf(text, "dns11_dns_requests_total"),
    cache: [hits, misses],
  };
}

async function command(...args: string[]): Promise<string> {
  const { stdout, stderr } = await dns11([...args, "-H", engine.host, "--state-dir", instance.stateDir]);
  return stdout + stderr;
}

test("what lookup, explain and doctor query appears nowhere", async () => {
  await dig(app, "own.nx.test");
  const earlier = await seen();
  assert.match(JSON.stringify(earlier), /own\.nx\.test/);
  assert.match(await command("lookup", "asked.nx.test", "--in", "app"), /NXDOMAIN/);
  assert.match(await command("lookup", "app", "--in", "app", "--tcp"), new RegExp(app.address("n1")));
  assert.match(await command("explain", "asked.servfail.test", "--in", "app"), /SERVFAIL/);
  assert.match(await command("doctor", "app"), /healthy/);
  const queried = await upstream.queriesFor("asked.nx.test");
  assert.ok(queried.length > 0, "the lookup was a real query");
  assert.deepEqual(await seen(), earlier);
  assert.doesNotMatch(instance.log, /asked\.servfail\.test/, "nor in the log");
});

test("a container cannot hide a query: an announced port is good for one query, and a name for none", async () => {
  const port = 40_111;
  const ask = async (name: string): Promise<void> => {
    await app.enter("dig", ["-r", "-b", `0.0.0.0#${port}`, "@127.0.0.11", "+tries=1", name]);
  };
  const names = async (): Promise<(string | null)[]> =>
    (await client.queries({ container: "app" })).queries.map(({ name }) => name);
  let round = 0;
  // An announcement lasts a few seconds, and on a busy machine the query may come later.
  const hidden = await waitFor("a query to be taken for the announced one", async () => {
    const [first, second] = [`first-${(round += 1)}.nx.test`, `second-${round}.nx.test`];
    await client.announceProbes({ container: "app", udp: [port], tcp: [] });
    for (const name of [first, second]) await ask(name);
    const all = await names();
    assert.ok(all.includes(second), all.join());
    return all.includes(first) ? undefined : first;
  });
  const pretended = "dns11-doctor-0123456789abcdef.nx.test";
  await ask(pretended);
  assert.ok((await names()).includes(pretended));
  const failing = await waitFor("its failures", async () => {
    const { failures } = await client.failures({ container: "app" });
    return failures.some(({ name }) => name === pretended) ? failures : undefined;
  });
  assert.equal(
    failing.some(({ name }) => name === hidden),
    false,
  );
});

test("invalid announcements are refused", async () => {
  const many = Array.from({ length: LIMITS.ownQueries + 1 }, (_, index) => index + 1);
  for (const udp of [[0], [65_536], [1.5], ["53" as unknown as number], many]) {
    await assert.rejects(client.announceProbes({ container: "app", udp, tcp: [] }), { code: "BAD_BODY" });
  }
  await assert.rejects(client.announceProbes({ container: "nobody", udp: [], tcp: [] }), { code: "NO_SUCH_CONTAINER" });
});
