// dns11 lookup: the reply is what a program in the container gets from the servers of its resolv.conf, whether dns11 serves
// it or not; and the exit code shows scripts the outcome.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { EXIT } from "../../cmd/process/exit-code.ts";
import type { Lookup } from "../../src/api/names.ts";
import type { CommandResult } from "../support/program/command.ts";
import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { type Dns11, dns11, startDns11 } from "../support/program/dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { startScripted } from "../support/scripted/scripted.ts";
import { type Upstream, startUpstream } from "../support/servers/upstream.ts";

let engine: Engine;
let upstream: Upstream;
let instance: Dns11;
let web: Container;

before(async () => {
  engine = await startEngine();
  upstream = await startUpstream(engine);
  await createNetwork(engine, "n1");
  web = await runContainer(engine, { name: "web", networks: ["n1"] });
  await runContainer(engine, { name: "sidecar", args: ["--network", "container:web"] });
  await runContainer(engine, { name: "app", networks: ["n1"], args: ["--dns-search", "ok.test"] });
  await runContainer(engine, { name: "host", args: ["--network", "host"] });
  instance = await startDns11(engine);
});
after(async () => {
  await instance[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

async function lookup(...args: string[]): Promise<CommandResult> {
  return await dns11(["lookup", ...args, "-H", engine.host, "--state-dir", instance.stateDir]);
}

async function found(...args: string[]): Promise<Lookup> {
  const { code, stdout, stderr } = await lookup(...args, "--json");
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout) as Lookup;
}

test("a name resolves to its address and TTL, from 127.0.0.11", async () => {
  const { rcode, server, protocol, answers, question } = await found("web", "--in", "app");
  assert.deepEqual([rcode, server, protocol, question], ["NOERROR", "127.0.0.11", "udp", { name: "web", type: "A" }]);
  assert.deepEqual(answers, [{ name: "web.", type: "A", ttl: 5, data: web.address("n1") }]);
  assert.equal((await found("web", "--in", "app", "--tcp")).protocol, "tcp");
});

test("an IP address is looked up in reverse, with -x and without", async () => {
  for (const args of [[], ["-x"]]) {
    const { question, answers } = await found(web.address("n1"), "--in", "app", ...args);
    assert.deepEqual([question.type, answers[0]?.data], ["PTR", "web.n1."]);
  }
});

test("record types are accepted by name and by number", async () => {
  for (const [type, data] of [
    ["AAAA", "2001:db8::7"],
    ["mx", "10 mail.ok.test."],
    ["TXT", '"text of 7.ok.test"'],
    ["TYPE28", "2001:db8::7"],
  ] as const) {
    const { answers } = await found("7.ok.test", "--in", "app", "--type", type);
    assert.equal(answers[0]?.data, data, type);
  }
  const { question, answers } = await found("7.rr.test", "--in", "app", "-t", "TYPE4711");
  assert.deepEqual([question.type, answers[0]?.type, answers[0]?.data], ["TYPE4711", "TYPE4711", "\\# 4 deadbeef"]);
});

test("the search list is applied only with --search", async () => {
  assert.equal((await found("seven7", "--in", "app")).rcode, "NXDOMAIN");
  const { rcode, question, attempts } = await found("seven7", "--in", "app", "--search");
  assert.deepEqual([rcode, question.name], ["NOERROR", "seven7.ok.test"]);
  assert.deepEqual(
    attempts.map(({ name }) => name),
    // Docker sets ndots:0, so the name is queried as it is first.
    ["seven7", "seven7.ok.test"],
  );
  assert.equal((await found("web.n1", "--in", "app", "--search")).question.name, "web.n1");
  assert.equal((await found("seven7.", "--in", "app", "--search")).rcode, "NXDOMAIN");
});

test("a truncated reply is retried over TCP", async () => {
  const { protocol, answers, isTruncated } = await found("7.big.test", "--in", "app", "-t", "TXT");
  assert.ok(!isTruncated && answers.length > 0, protocol ?? "");
});

test("a negative answer is a success, and a failure with --fail", async () => {
  assert.equal((await lookup("a.nx.test", "--in", "app")).code, EXIT.ok);
  assert.equal((await lookup("a.nx.test", "--in", "app", "--fail")).code, EXIT.failure);
  assert.equal((await lookup("a.nodata.test", "--in", "app", "--fail")).code, EXIT.failure);
  const alias = await lookup("7.cname.test", "--in", "app", "-t", "SRV", "--fail");
  assert.equal(alias.code, EXIT.failure);
  assert.match(alias.stdout, /, no records of this type\n[\s\S]* CNAME +7\.ok\.test\.\n/);
  assert.equal((await lookup("7.cname.test", "--in", "app", "--fail")).code, EXIT.ok);
  assert.equal((await lookup("web", "--in", "app", "--fail")).code, EXIT.ok);
});

test("other servers in resolv.conf are queried in order, from inside the container", async () => {
  const [closed, good] = ["127.1.0.1", "127.1.0.2"];
  // On the default bridge, resolv.conf lists the servers themselves.
  await using plain = await runContainer(engine, { name: "plain", dns: [closed, good] });
  await using servers = await startScripted(plain, "server 1: closed\nserver 2: ok", { addresses: [closed, good] });
  await instance.waitFor("plain", "skipped");
  const { server, answers, attempts } = await found("x.test", "--in", "plain");
  assert.deepEqual([server, answers[0]?.data], [good, "192.0.2.2"]);
  assert.deepEqual(
    attempts.map((each) => each.server),
    [closed, good],
  );
  await servers.play("servfail");
  const { rcode, attempts: all } = await found("x.test", "--in", "plain");
  assert.deepEqual([rcode, all.length], ["SERVFAIL", 2]);
  await servers.play("closed");
  const { code, stdout } = await lookup("x.test", "--in", "plain");
  assert.equal(code, EXIT.noReply);
  assert.match(stdout, /^x\.test A in "plain": no reply after [^\n]*\nqueries:\n/);
  const asJson = await lookup("x.test", "--in", "plain", "--json");
  assert.deepEqual([asJson.code, (JSON.parse(asJson.stdout) as Lookup).rcode], [EXIT.noReply, null]);
});

test("a container in another's namespace queries from there", async () => {
  const { container, answers } = await found("web", "--in", "sidecar");
  assert.deepEqual([container.sharedWith, answers[0]?.data], ["web", web.address("n1")]);
});

test("invalid lookups fail with a message that says what to do instead", async () => {
  for (const [args, code, words] of [
    [["web"], EXIT.usage, /Container missing: use dns11 lookup web --in CONTAINER/],
    [["web", "--in", "ap"], EXIT.usage, /No running container or service named "ap"; did you mean "app"\?/],
    [["we b", "--in", "app"], EXIT.usage, /invalid domain name "we b"/],
    [["web", "--in", "app", "-t", "AAA"], EXIT.usage, /unknown record type "AAA": did you mean AAAA\?/],
    [["web", "--in", "app", "-t", "TYPE70000"], EXIT.usage, /TYPE0 to TYPE65535/],
    [["web", "--in", "app", "-x"], EXIT.usage, /-x requires an IP address/],
    [["web", "--in", "host"], EXIT.failure, /uses the host's network/],
  ] as const) {
    const result = await lookup(...args);
    assert.equal(result.code, code, `${args.join(" ")}: ${result.stderr}`);
    assert.match(result.stderr, words, args.join(" "));
  }
});

test("several names are looked up in order, with the containers behind their addresses", async () => {
  const { code, stdout } = await lookup("web", "app", "a.nx.test", "app");
  assert.equal(code, 0);
  const [first, second, third] = stdout.split("\n\n");
  assert.match(first ?? "", /^web A in "app": NOERROR .*\nNAME +TTL +TYPE +DATA +CONTAINER\nweb\. .* web$/);
  assert.match(second ?? "", /^app A in "app": .* app$/s);
  assert.match(third ?? "", /^a\.nx\.test A in "app": NXDOMAIN /);
  assert.equal((await lookup("web", "a.nx.test", "app", "--fail")).code, EXIT.failure);
  const { owners } = await found("web", "app");
  assert.deepEqual(owners, [
    { address: web.address("n1"), container: "web", network: "n1", project: null, service: null },
  ]);
});

test("the container can be given by the beginning of its ID", async () => {
  assert.equal((await found("web", "--in", web.id.slice(0, 12))).container.name, "web");
});
