// Policies on a live engine: what is refused, to whom, and how. The meter of leaks is the log of the upstream server, never dns11's
// own word: what is not allowed never gets there, and what is allowed always does.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { type DigReply, dataOf, dig, digMany } from "../../support/client/dig.ts";
import { askAtPorts } from "../../support/client/resolver-ports.ts";
import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import type { CommandResult } from "../../support/program/command.ts";
import { type Dns11, dns11, startDns11 } from "../../support/program/dns11.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";

let engine: Engine;
let upstream: Upstream;
let agent: Container;
let audited: Container;
let free: Container;
let db: Container;
let instance: Dns11;
const folder = mkdtempSync(join(tmpdir(), "d11-policy-"));
const file = join(folder, "dns11.yaml");

const POLICIES = `version: 1
answers: kernel
records:
  alias.shop.test: {cname: out.ok.test}
  allowed.shop.test: {cname: exact.ok.test}
  hidden.shop.test: {cname: secret}
policies:
  agents:
    for: [network=agents]
    mode: enforce
    allow:
      - exact.ok.test
      - "**.wild.ok.test"
      - "*.cname.test"
      - "**.at.test"
      - 10.9.9.0/24
      - "1500.slow.test"
    deny: [no.wild.ok.test, secret.ok.test, secret, 192.0.2.66]
    new-names-per-minute: 40
  watch:
    for: [label=audit]
    mode: audit
    allow: [exact.ok.test]
`;

before(async () => {
  writeFileSync(file, POLICIES);
  engine = await startEngine({ suite: "bookworm" });
  upstream = await startUpstream(engine);
  for (const network of ["agents", "open"]) await createNetwork(engine, network);
  agent = await runContainer(engine, { name: "agent", networks: ["agents"] });
  audited = await runContainer(engine, { name: "audited", networks: ["open"], labels: { audit: "1" } });
  free = await runContainer(engine, { name: "free", networks: ["open"] });
  db = await runContainer(engine, { name: "db", networks: ["agents", "open"] });
  await runContainer(engine, { name: "secret", networks: ["agents"] });
  instance = await startDns11(engine, { args: ["--config", file] });
  await instance.waitForKernel();
});
after(async () => {
  rmSync(folder, { recursive: true });
  await instance[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

/** Names that the upstream server has seen since the last call. */
async function leaked(): Promise<readonly string[]> {
  const seen = (await upstream.queries()).map(({ name }) => name.toLowerCase());
  await upstream.forget();
  return seen.filter((name) => name !== "");
}

function errorOf({ raw }: DigReply): string | undefined {
  return /^; EDE: (.*)$/m.exec(raw)?.[1];
}

test("a name that no rule allows does not exist, says why, and never leaves the machine", async () => {
  await leaked();
  for (const args of [["evil.ok.test"], ["evil.ok.test", "AAAA"], ["+tcp", "evil.ok.test"], ["evil.ok.test", "TXT"]]) {
    const reply = await dig(agent, ...args);
    assert.equal(reply.status, "NXDOMAIN", args.join(" "));
    assert.equal(reply.authority[0]?.type, "SOA");
    assert.match(errorOf(reply) ?? "", /^15 \(Blocked\).*policy agents: no rule allows it \(.*dns11\.yaml:8:3\)/);
  }
  assert.deepEqual(await leaked(), []);
  assert.equal((await dig(free, "evil.ok.test")).status, "NOERROR");
  assert.deepEqual(await leaked(), ["evil.ok.test"]);
  // What another one has put into the cache is not for it, either.
  assert.equal((await dig(agent, "evil.ok.test")).status, "NXDOMAIN");
});

test("what a rule allows is forwarded, and what a container sees of others stays", async () => {
  assert.deepEqual(dataOf(await dig(agent, "exact.ok.test")), ["192.0.2.1"]);
  assert.deepEqual(dataOf(await dig(agent, "EXACT.ok.TEST")), ["192.0.2.1"]);
  assert.deepEqual(dataOf(await dig(agent, "a7.wild.ok.test")), ["192.0.2.7"]);
  assert.deepEqual(dataOf(await dig(agent, "a7.b.c.wild.ok.test")), ["192.0.2.7"]);
  assert.deepEqual(dataOf(await dig(agent, "db")), [db.address("agents")]);
  assert.deepEqual(dataOf(await dig(agent, "-x", db.address("agents"))), ["db.agents."]);
  assert.deepEqual(dataOf(await dig(agent, "localhost")), ["127.0.0.1"]);
  assert.equal((await dig(agent, "wild.ok.test")).status, "NXDOMAIN");
});

test("deny wins, also for names of this machine", async () => {
  await leaked();
  const reply = await dig(agent, "no.wild.ok.test");
  assert.equal(reply.status, "NXDOMAIN");
  assert.match(errorOf(reply) ?? "", /deny no\.wild\.ok\.test \(.*dns11\.yaml:18\)/);
  assert.equal((await dig(agent, "secret")).status, "NXDOMAIN");
  assert.equal((await dig(agent, "secret.ok.test")).status, "NXDOMAIN");
  assert.deepEqual(await leaked(), []);
});

test("a CNAME leads where it likes, but not to what is denied, and an own one is judged at its end", async () => {
  assert.equal((await dig(agent, "other.cname.test")).status, "NOERROR");
  const denied = await dig(agent, "secret.cname.test");
  assert.deepEqual([denied.status, denied.answer.length], ["NXDOMAIN", 0]);
  await leaked();
  assert.equal((await dig(agent, "alias.shop.test")).status, "NXDOMAIN");
  assert.equal((await dig(agent, "hidden.shop.test")).status, "NXDOMAIN");
  assert.deepEqual(await leaked(), []);
  const reply = await dig(agent, "allowed.shop.test");
  assert.deepEqual(dataOf(reply).at(-1), "192.0.2.1");
});

test("an answer with an address that is not public is refused, wherever it is in", async () => {
  const addresses = [
    ...["10-0-0-1", "127-0-0-1", "169-254-169-254", "100-64-0-1", "192-168-1-1", "172-16-0-1", "0-0-0-0"],
    ...["100-100-100-200", "192-0-0-192", "224-0-0-1"],
  ];
  for (const each of addresses) {
    for (const type of ["A", "HTTPS"]) {
      const reply = await dig(agent, `${each}.at.test`, type);
      assert.deepEqual([reply.status, reply.answer.length], ["NXDOMAIN", 0], `${each} ${type}`);
      assert.match(errorOf(reply) ?? "", /private: deny/);
    }
  }
  for (const each of [
    "0--1",
    "fd00--1",
    "fe80--1",
    "0--ffff-a00-1",
    "64-ff9b--a9fe-a9fe",
    "2002-a00-1--",
    "fd00-ec2--254",
  ]) {
    for (const type of ["AAAA", "HTTPS"])
      assert.equal((await dig(agent, `${each}.at.test`, type)).status, "NXDOMAIN", each);
  }
  assert.deepEqual(dataOf(await dig(agent, "198-51-100-7.at.test")), ["198.51.100.7"]);
  assert.deepEqual(dataOf(await dig(agent, "64-ff9b--c633-6407.at.test", "AAAA")), ["64:ff9b::c633:6407"]);
  // A rule for the address allows it, and one that denies it wins.
  assert.deepEqual(dataOf(await dig(agent, "10-9-9-5.at.test")), ["10.9.9.5"]);
  assert.equal((await dig(agent, "a66.wild.ok.test")).status, "NXDOMAIN");
});

test("an audited container gets what it asks, and what would have been refused is recorded", async () => {
  await leaked();
  assert.deepEqual(dataOf(await dig(audited, "other.ok.test")), ["192.0.2.1"]);
  assert.deepEqual(await leaked(), ["other.ok.test"]);
  await instance.logs(/a policy would have refused a name.*other\.ok\.test|other\.ok\.test.*would have refused/);
});

async function command(...args: string[]): Promise<CommandResult> {
  return await dns11([...args, "--state-dir", instance.stateDir, "-H", engine.host]);
}

test("commands say what a policy says, by the code that decides", async () => {
  const allowed = await command("policy", "check", "a7.wild.ok.test:443", "agent");
  assert.equal(allowed.code, 0, allowed.stderr);
  assert.match(
    allowed.stdout,
    /a7\.wild\.ok\.test:443 in agent: allowed\n {2}policy agents: allow \*\*\.wild\.ok\.test \(.*:13\)/,
  );
  const refused = await command("policy", "check", "evil.ok.test", "agent");
  assert.equal(refused.code, 1);
  assert.match(refused.stdout, /refused\n {2}policy agents: no rule allows it/);
  const local = await command("policy", "check", "db", "agent", "--json");
  assert.equal((JSON.parse(local.stdout) as { verdict: string }).verdict, "allowed");
  assert.match((await command("policy", "check", "evil.ok.test", "audited")).stdout, /only recorded/);
  assert.match((await command("policy", "check", "evil.ok.test", "free")).stdout, /not filtered/);
  assert.match((await command("policy", "check", "a.wild.ok.test", "agent", "-t", "TXT")).stdout, /refused/);
  assert.match((await command("policy", "check", "10.9.9.5:22", "agent")).stdout, /allowed/);
  const list = await command("policy");
  assert.equal(list.code, 0, list.stdout);
  assert.match(list.stdout, /agent +agents +enforce +\d+/);
  assert.match(list.stdout, /open at death: if dns11 ends, its keeper refuses what is asked/);
});

test("a refusal is told with the command that allows the name, and that command does", async () => {
  const name = "wanted.ok.test";
  assert.equal((await dig(agent, name)).status, "NXDOMAIN");
  const failures = await command("failures", "agent");
  assert.match(failures.stdout, /wanted\.ok\.test[^]*policy agents: no rule allows it/);
  const fix = /dns11 (policy allow wanted\.ok\.test --in agent --for 15m)/.exec(failures.stdout)?.[1];
  assert.ok(fix !== undefined, failures.stdout);
  const explained = await command("explain", name, "--in", "agent");
  assert.match(explained.stdout, /policy agents: no rule allows it/);
  const log = await command("policy", "log", "agent");
  assert.match(log.stdout, /agent refused wanted\.ok\.test A.*: policy agents: no rule allows it/);
  await leaked();
  const allow = await command(...fix.split(" "));
  assert.equal(allow.code, 0, allow.stderr);
  assert.deepEqual(dataOf(await dig(agent, name)), ["192.0.2.1"]);
  assert.deepEqual(await leaked(), [name]);
  assert.match((await command("policy")).stdout, /wanted\.ok\.test is allowed until/);
  assert.match((await command("policy", "check", name, "agent")).stdout, /allowed/);
  await instance.logs(/an operator allows a name/);
  // Nobody else may.
  assert.match(
    (await command("policy", "allow", name, "--in", "free", "--for", "1m")).stderr,
    /No policy is for "free"/,
  );
  // It opens nothing but what is asked by its name.
  for (const what of ["192.0.2.1", "10.0.0.0/8", `${name}:443`]) {
    const { code, stderr } = await command("policy", "allow", what, "--in", "agent", "--for", "1m");
    assert.notEqual(code, 0, what);
    assert.match(stderr, /use a name without a port; the settings allow addresses/);
  }
  assert.match(
    (await command("policy", "check", "10.9.9.0/24", "agent")).stderr,
    /use an address, not a block of them/,
  );
  // A shorter time replaces the longer one, and ends by itself.
  await command("policy", "allow", name, "--in", "agent", "--for", "1ms");
  await waitFor("the grant to end", async () => ((await dig(agent, name)).status === "NXDOMAIN" ? true : undefined));
});

test("names that carry data are refused under a wildcard, and allowed for a name that is listed", async () => {
  await leaked();
  for (const type of ["TXT", "NULL", "ANY", "DNSKEY", "TYPE65280", "CAA"]) {
    assert.equal((await dig(agent, "a7.wild.ok.test", type)).status, "NXDOMAIN", type);
  }
  const long = `${"a".repeat(60)}.${"b".repeat(60)}.wild.ok.test`;
  assert.equal((await dig(agent, long)).status, "NXDOMAIN");
  assert.deepEqual(await leaked(), []);
  assert.equal((await dig(agent, "exact.ok.test", "TXT")).status, "NOERROR");
  assert.deepEqual(await leaked(), ["exact.ok.test"]);
  // Classes other than IN are no names of the policy.
  assert.notEqual((await dig(agent, "-c", "CH", "version.bind", "TXT")).status, "NOERROR");
  assert.deepEqual(await leaked(), []);
});

test("only so many new names in a minute pass a wildcard; those that are known do still", async () => {
  const askMany = async (prefix: string): Promise<{ seen: ReadonlySet<string>; answered: number }> => {
    await leaked();
    const names = Array.from({ length: 90 }, (_, index) => [`${prefix}${index}.wild.ok.test`]);
    const replies = await digMany(agent, "127.0.0.11", names);
    const answered = replies.filter(({ status }) => status === "NOERROR").length;
    return { seen: new Set(await leaked()), answered };
  };
  let { seen, answered } = await askMany("new");
  // A minute that earlier names had begun may have ended in between; then the next one has just begun.
  if (seen.size > 40) ({ seen, answered } = await askMany("newer"));
  assert.ok(seen.size <= 40, [...seen].join(" "));
  assert.equal(answered, seen.size);
  const [first = ""] = seen;
  assert.equal((await dig(agent, first, "AAAA")).status, "NOERROR");
  assert.match(errorOf(await dig(agent, "one-more.wild.ok.test")) ?? "", /more than 40 new names in a minute/);
});

test("spellings of a denied name are that name, and nothing beside the question leaves the machine", async () => {
  await leaked();
  const spellings = [
    "EVIL.ok.test",
    "eViL.oK.tEsT.",
    "e\\118il.ok.test",
    "evil.ok.test.evil.ok.test",
    "exact\\.ok.test",
  ];
  for (const name of [...spellings, "xn--bcher-kva.ok.test", "exact.ok.test\\.", "\\032exact.ok.test"])
    assert.equal((await dig(agent, "+noidnin", name)).status, "NXDOMAIN", name);
  // Names that only Docker Desktop knows, and what a resolver is asked about itself.
  for (const name of ["host.docker.internal", "gateway.docker.internal", "_dns.resolver.arpa", "secret.onion"])
    assert.deepEqual(dataOf(await dig(agent, name, "TXT")), [], name);
  assert.deepEqual(await leaked(), []);
  const options = ["+subnet=192.0.2.0/24", "+ednsopt=65001:736563726574", "+nsid", "+padding=128"];
  // A name of its own, so that the cache does not answer.
  assert.equal((await dig(agent, ...options, "1500.slow.test")).status, "NOERROR");
  const [query] = await upstream.queriesFor("1500.slow.test");
  assert.ok(query !== undefined);
  assert.ok(!query.message.includes("736563726574"), query.message);
  assert.ok(!query.message.includes("c00002"), query.message);
});

test("the reverse of what was answered is forwarded, any other is not", async () => {
  await leaked();
  assert.equal((await dig(agent, "-x", "203.0.113.9")).status, "NXDOMAIN");
  assert.equal((await dig(agent, "-x", "2001:db8::99")).status, "NXDOMAIN");
  assert.deepEqual(await leaked(), []);
  await dig(agent, "exact.ok.test");
  await leaked();
  await dig(agent, "-x", "192.0.2.1");
  assert.deepEqual(await leaked(), ["1.2.0.192.in-addr.arpa"]);
});

test("a search list goes on after a name that is refused", async () => {
  await leaked();
  const reply = await dig(agent, "+search", "+domain=corp.test", "+ndots=3", "1.cname.test");
  assert.deepEqual([reply.status, reply.question?.name], ["NOERROR", "1.cname.test."]);
  assert.deepEqual(await leaked(), ["1.cname.test"]);
});

test("Docker's own ports forward nothing for a container while its policy is enforced", async () => {
  let asked = 0;
  const leaksAtPorts = async (container: Container): Promise<number> => {
    await leaked();
    await askAtPorts(container, () => `port-${(asked += 1)}.ok.test`);
    return (await leaked()).filter((name) => name.startsWith("port-")).length;
  };
  assert.equal(await leaksAtPorts(agent), 0);
  for (const option of ["+notcp", "+tcp"]) assert.equal((await dig(agent, option, "exact.ok.test")).status, "NOERROR");
  assert.ok((await leaksAtPorts(free)) > 0);
  // By UDP and TCP, at the ports of both resolvers.
  assert.equal(await leaksAtPorts(audited), 4);
  writeFileSync(file, POLICIES.replace("mode: enforce", "mode: audit"));
  await instance.reload();
  await waitFor("open ports", async () => ((await leaksAtPorts(agent)) > 0 ? true : undefined));
  writeFileSync(file, POLICIES);
  await instance.reload();
  await waitFor("closed ports", async () => ((await leaksAtPorts(agent)) === 0 ? true : undefined));
  await instance.waitForKernel();
  assert.deepEqual(dataOf(await dig(agent, "db")), [db.address("agents")]);
});
