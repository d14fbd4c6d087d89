/**
 * Foreign rules that keep queries from dns11. The probe, a real query, notices them; the namespace is handed back to
 * Docker's resolver, the culprit is named, and dns11 attaches again on its own when the rules are gone.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { LIMITS } from "../../src/base/limits.ts";
import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { dataOf, dig } from "../support/client/dig.ts";
import { type Dns11, startDns11 } from "../support/program/dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { waitFor } from "../support/rig/wait.ts";

let engine: Engine;
let dns11: Dns11;
let web: Container;

before(async () => {
  engine = await startEngine();
  await createNetwork(engine, "n1");
  web = await runContainer(engine, { name: "web", networks: ["n1"] });
  dns11 = await startDns11(engine);
});
after(async () => {
  await dns11[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

const STAGED = [
  {
    what: "a nat chain before dns11's",
    rules:
      "table ip early { chain out { type nat hook output priority -150; ip daddr 127.0.0.11 udp dport 53 dnat to 127.0.0.1:9; ip daddr 127.0.0.11 tcp dport 53 dnat to 127.0.0.1:9; }; }",
    table: "ip early",
    culprit: /chain "out" of table ip "early" \(hook output, priority -150\) translates addresses before dns11's rules/,
  },
  {
    what: "a drop in the output hook",
    // Our DNAT changes the port, so this chain runs before it.
    rules:
      "table inet wall { chain out { type filter hook output priority -250; udp dport 53 drop; tcp dport 53 drop; }; }",
    table: "inet wall",
    culprit:
      /chain "out" of table inet "wall" \(hook output, priority -250\), before connection tracking drops packets/,
  },
  {
    what: "a drop policy for input",
    rules: "table ip shut { chain in { type filter hook input priority 0; policy drop; }; }",
    table: "ip shut",
    culprit: /chain "in" of table ip "shut" \(hook input, priority 0\) drops packets/,
  },
] as const;

for (const staged of STAGED) {
  test(`${staged.what} is noticed and named, and dns11 attaches again when it is gone`, async () => {
    assert.equal((await web.enter("nft", [staged.rules])).code, 0);
    const broken = await dns11.waitFor("web", "failed");
    assert.equal(broken.code, "UNVERIFIED");
    assert.match(broken.reason ?? "", /queries do not reach dns11/);
    assert.match((broken.culprits ?? []).join("\n"), staged.culprit);
    // It retries on its own, but only with probes: no query of the container is redirected meanwhile.
    const redirect = /^\s*ip daddr 127\.0\.0\.11 (udp|tcp) dport 53 dnat to 127\.0\.0\.11:/m;
    assert.doesNotMatch((await web.enter("nft", ["list", "ruleset"])).stdout, redirect);
    assert.equal((await web.enter("nft", ["delete", "table", ...staged.table.split(" ")])).code, 0);
    await dns11.waitFor("web", "attached");
    assert.deepEqual(dataOf(await dig(web, "web")), [web.address("n1")]);
  });
}

test("notrack before or after our first chain has no effect: the zone that the chain sets still tracks the packet", async () => {
  for (const priority of [-301, -299]) {
    const rule = `ip daddr 127.0.0.11 notrack; ip saddr 127.0.0.11 notrack;`;
    await web.enter("nft", [`table ip quick { chain out { type filter hook output priority ${priority}; ${rule} }; }`]);
    const reply = await dig(web, "web");
    assert.deepEqual(dataOf(reply), [web.address("n1")], `priority ${priority}`);
    assert.equal(reply.answer[0]?.ttl, 5, "dns11 answered");
    await web.enter("nft", ["delete", "table", "ip", "quick"]);
  }
});

test("harmless foreign rules cause a probe and no change", async () => {
  const since = (await dns11.container("web"))?.since;
  const verified = (await dns11.container("web"))?.verified;
  await web.enter("nft", [
    "add table ip harmless { chain c { type filter hook output priority 0; udp dport 9999 accept; }; }",
  ]);
  await waitForNewer(verified);
  assert.equal((await dns11.container("web"))?.since, since, "it stayed attached");
  await web.enter("nft", ["delete", "table", "ip", "harmless"]);
});

test("nft flush ruleset and iptables -F by other programs do not remove our rules", async () => {
  await web.enter("iptables", ["-t", "nat", "-F"]);
  await web.enter("nft", ["flush", "ruleset"]);
  assert.match((await web.enter("nft", ["list", "ruleset"])).stdout, /table ip dns11/);
  const reply = await dig(web, "web");
  assert.equal(reply.answer[0]?.ttl, 5, "dns11 answers although Docker's rules are gone");
  const deletion = await web.enter("nft", ["delete", "table", "ip", "dns11"]);
  assert.notEqual(deletion.code, 0);
  assert.match(deletion.stderr, /not permitted/i);
});

test("a burst of rules in one namespace, as from a firewall, is noticed and the container stays attached", async () => {
  const verified = (await dns11.container("web"))?.verified;
  const rules = Array.from({ length: 20_000 }, (_, port) => `add rule ip big c udp dport ${port + 1000} counter drop`);
  const chain = "table ip big { chain c { type filter hook forward priority 0; }; }";
  const loaded = await web.enter("nft", ["-f", "-"], { input: `${chain}\n${rules.join("\n")}\n` });
  assert.equal(loaded.code, 0, loaded.stderr);
  await waitForNewer(verified);
  assert.equal((await dns11.container("web"))?.state, "attached");
  await web.enter("nft", ["delete", "table", "ip", "big"]);
});

test("while rules block queries, retries become less frequent", async () => {
  await web.enter("nft", ["table ip shut { chain in { type filter hook input priority 0; policy drop; }; }"]);
  const failures = new Set<string>();
  await waitFor("two retries", async () => {
    const { state, since = "" } = (await dns11.container("web")) ?? {};
    if (state === "failed") failures.add(since);
    return failures.size > 2 ? true : undefined;
  });
  const [, second = 0, third = 0] = [...failures].map((time) => Date.parse(time));
  // With a quarter less by jitter.
  const leastMs = 0.75 * 2 * LIMITS.retryFirstMs;
  assert.ok(third - second >= leastMs, `${third - second} ms between the second and the third failure`);
  await web.enter("nft", ["delete", "table", "ip", "shut"]);
  await dns11.waitFor("web", "attached");
});

test("our port for TCP also answers direct queries, as Docker's does", async () => {
  const { tcp } = (await dns11.container("web"))?.ports ?? assert.fail();
  assert.deepEqual(dataOf(await dig(web, "-p", String(tcp), "+tcp", "web")), [web.address("n1")]);
});

test("queries are answered after conntrack was flushed", async () => {
  await web.enter("conntrack", ["-F"]);
  assert.deepEqual(dataOf(await dig(web, "web")), [web.address("n1")]);
  assert.deepEqual(dataOf(await dig(web, "+tcp", "web")), [web.address("n1")]);
});

async function waitForNewer(verified: string | undefined): Promise<void> {
  await waitFor("a probe after a change of foreign rules", async () => {
    const now = (await dns11.container("web"))?.verified;
    return now !== undefined && now !== verified ? true : undefined;
  });
}
