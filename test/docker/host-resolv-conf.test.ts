/**
 * The host's resolv.conf: after any change of it, running containers use the new servers without a restart. Containers with
 * their own servers, and strict mode, do not.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { dig } from "../support/client/dig.ts";
import { type Dns11, startDns11 } from "../support/program/dns11.ts";
import { type Engine, type EngineOptions, startEngine } from "../support/engine/engine.ts";
import { SharedDns11 } from "../support/program/shared-dns11.ts";
import { type Suite, inTurn } from "../support/engine/suite.ts";
import { type ScriptedServers, startScripted } from "../support/scripted/scripted.ts";
import { waitFor } from "../support/rig/wait.ts";

const FILE = "/etc/resolv.conf";
const A = "127.0.0.1";
/** Not on a loopback: engines before 28 query such servers from inside the container. */
const B = "10.53.0.2";
const C = "10.53.0.3";
const SERVERS = [A, B, C] as const;
const CACHED = "kept.ok.test";
const CHANGED = /the host's nameservers changed/g;
const RELOADED = /settings reloaded/g;

/** An engine with servers at A, B and C, a host whose resolv.conf lists A, and a container. */
class Fixture {
  readonly engine: Engine;
  readonly client: Container;
  readonly shared: SharedDns11;
  readonly #servers: ScriptedServers;
  #names = 0;

  private constructor(engine: Engine, servers: ScriptedServers, client: Container) {
    this.engine = engine;
    this.client = client;
    this.shared = new SharedDns11(() => engine);
    this.#servers = servers;
  }

  static async start(options: EngineOptions): Promise<Fixture> {
    const engine = await startEngine({ suite: "bookworm", ...options });
    const servers = await startScripted(engine, "ok", { addresses: SERVERS });
    await createNetwork(engine, "n1");
    return new Fixture(engine, servers, await runContainer(engine, { name: "client", networks: ["n1"] }));
  }

  /** Runs a script in the mount namespace of the engine's host. */
  async onHost(script: string): Promise<void> {
    const args = ["--target", String(this.engine.hostPid), "--mount", "--", "sh", "-ceu", script];
    const { code, stderr } = await this.engine.exec("nsenter", args);
    assert.equal(code, 0, stderr);
  }

  /** Which server receives the query for a name; default: a name that is not cached yet. */
  async serverOf(container: Container, name = `n${(this.#names += 1)}.ok.test`): Promise<string | undefined> {
    await this.#servers.forget();
    await dig(container, name);
    const [query] = await this.#servers.queriesFor(name);
    return query === undefined ? undefined : SERVERS[query.server - 1];
  }

  async waitFor(server: string): Promise<void> {
    const usesServer = async (): Promise<true | undefined> =>
      (await this.serverOf(this.client)) === server ? true : undefined;
    await waitFor(`a query to ${server}`, usesServer);
  }

  async upstreamsOf(dns11: Dns11): Promise<string | undefined> {
    return (await dns11.container("client"))?.upstreams?.join(" ");
  }

  /** The shared dns11 in default mode, with the initial file. */
  async start(): Promise<Dns11> {
    await this.onHost(`umount ${FILE} 2>/dev/null || true; rm -f ${FILE}; echo nameserver ${A} > ${FILE}`);
    const dns11 = await this.shared.under();
    await waitFor(`${A} to be the server`, async () =>
      (await this.upstreamsOf(dns11)) === `host(${A})` ? true : undefined,
    );
    return dns11;
  }

  /** The same in strict mode, in which nothing follows the file: it is read again at a reload, without effect. */
  async assertStrictKeeps(server: string): Promise<void> {
    const dns11 = await this.shared.under("strict: true");
    const changes = await changesIn(dns11);
    await this.onHost(`echo nameserver ${B} > ${FILE}`);
    await dns11.reload();
    assert.equal(await this.serverOf(this.client), server);
    assert.equal(await changesIn(dns11), changes);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.shared[Symbol.asyncDispose]();
    await this.#servers[Symbol.asyncDispose]();
    await this.engine[Symbol.asyncDispose]();
  }
}

/** How many changes are logged. Lines come in order, so when that of a reload is there, all before it are. */
async function changesIn(dns11: Dns11): Promise<number> {
  const reloads = (): number => dns11.log.match(RELOADED)?.length ?? 0;
  const already = reloads();
  await dns11.reload();
  await waitFor("the log", () => (reloads() > already ? true : undefined));
  return dns11.log.match(CHANGED)?.length ?? 0;
}

let fixture: Fixture;
before(async () => (fixture = await Fixture.start({ liveRestore: true })));
after(async () => await fixture[Symbol.asyncDispose]());

test("every change of the file is followed and logged, in one line if it is one step: written in place, replaced, or linked elsewhere", async () => {
  const dns11 = await fixture.start();
  const already = await changesIn(dns11);
  assert.equal(await fixture.serverOf(fixture.client, CACHED), A);
  const changes = [
    ["written in place", `echo nameserver ${B} > ${FILE}`, B],
    ["replaced, as editors do", `echo nameserver ${A} > ${FILE}~; mv ${FILE}~ ${FILE}`, A],
    ["a link", `mkdir /run/one; echo nameserver ${B} > /run/one/conf; ln -sf /run/one/conf ${FILE}`, B],
    ["the link's target", `echo nameserver ${A} > /run/one/conf`, A],
    ["another link", `mkdir /run/two; echo nameserver ${B} > /run/two/conf; ln -sf ../run/two/conf ${FILE}`, B],
  ] as const;
  for (const [index, [what, script, server]] of changes.entries()) {
    assert.equal(await fixture.serverOf(fixture.client, CACHED), undefined, "it is cached, so no server is queried");
    await fixture.onHost(script);
    await fixture.waitFor(server);
    assert.equal(await fixture.serverOf(fixture.client, CACHED), server, `the cache is flushed: ${what}`);
    assert.equal(await fixture.upstreamsOf(dns11), `host(${server})`, what);
    assert.equal(await changesIn(dns11), already + index + 1, what);
  }
  // In several steps, of which a busy machine may show each.
  for (const [script, server] of [
    [`rm -r /run/two; mkdir /run/two; echo nameserver ${A} > /run/two/conf`, A],
    [`for i in 1 2 3 4 5; do echo nameserver 192.0.2.$i; done > ${FILE}; echo nameserver ${B} > ${FILE}`, B],
  ] as const) {
    const logged = await changesIn(dns11);
    await fixture.onHost(script);
    await fixture.waitFor(server);
    assert.ok((await changesIn(dns11)) > logged, script);
  }
});

test("with the stub of systemd-resolved, its upstreams are backup servers, and their changes are followed", async () => {
  const dns11 = await fixture.start();
  const folder = "/run/systemd/resolve";
  await fixture.onHost(
    `mkdir -p ${folder}; echo nameserver 127.0.0.53 > ${folder}/stub-resolv.conf
     echo nameserver ${B} > ${folder}/resolv.conf; ln -sf ../${folder}/stub-resolv.conf ${FILE}`,
  );
  await fixture.waitFor(B);
  assert.equal(await fixture.upstreamsOf(dns11), `host(127.0.0.53) host(${B})`);
  await fixture.onHost(`echo nameserver ${C} > ${folder}/new; mv ${folder}/new ${folder}/resolv.conf`);
  await fixture.waitFor(C);
  await dns11.logs(new RegExp(`"before":"127\\.0\\.0\\.53 \\(${B}\\)","now":"127\\.0\\.0\\.53 \\(${C}\\)"`));
});

test("after a restart of the engine, changes of the file are still followed", async () => {
  const dns11 = await fixture.start();
  await fixture.engine.restartDaemon();
  await waitFor("the engine to be back", async () => ((await dns11.status()).engine?.isConnected ? true : undefined));
  assert.equal(await fixture.serverOf(fixture.client), A);
  await fixture.onHost(`echo nameserver ${B} > ${FILE}`);
  await fixture.waitFor(B);
});

test("changes that the kernel does not report, such as a mount over the file, are noticed a little later", async () => {
  const dns11 = await fixture.start();
  const already = await changesIn(dns11);
  await fixture.onHost(`echo nameserver ${B} > /run/mounted; mount --bind /run/mounted ${FILE}`);
  await fixture.waitFor(B);
  await fixture.onHost(`echo nameserver ${A} > /run/mounted`);
  await fixture.waitFor(A);
  assert.equal(await changesIn(dns11), already + 2);
});

test("an invalid nameserver is logged once, and the others are used", async () => {
  const dns11 = await fixture.start();
  await fixture.onHost(`printf 'nameserver dns.example\\nnameserver ${B}\\n' > ${FILE}`);
  await fixture.waitFor(B);
  await fixture.onHost(`printf 'nameserver dns.example\\nnameserver ${A}\\n' > ${FILE}`);
  await fixture.waitFor(A);
  await dns11.logs(/dns\.example/);
  await changesIn(dns11);
  assert.equal(dns11.log.match(/dns\.example/g)?.length, 1);
});

test("in strict mode, containers keep the servers that the engine set at their start", async () => {
  await fixture.start();
  const strict = await fixture.shared.under("strict: true");
  await waitFor("Docker's servers", async () => ((await fixture.upstreamsOf(strict)) === "docker" ? true : undefined));
  await fixture.assertStrictKeeps(A);
});

test("with servers in the daemon's settings and no list per container, Docker's resolver is queried", async () => {
  await using other = await Fixture.start({ daemonJson: { dns: [B] } });
  await using dns11 = await startDns11(other.engine);
  assert.equal(await other.upstreamsOf(dns11), "docker");
  assert.equal(await other.serverOf(other.client), B);
});

for (const suite of inTurn<Suite>(["trixie", "forky"])) {
  test(`Docker of ${suite}: changes are followed only for containers that use the host's servers`, async () => {
    await using modern = await Fixture.start({ suite });
    const own = await runContainer(modern.engine, { name: "own", networks: ["n1"], dns: [B] });
    const dns11 = await modern.start();
    await modern.onHost(`echo nameserver ${B} > ${FILE}`);
    await modern.waitFor(B);
    const started = await runContainer(modern.engine, { networks: ["n1"] });
    await dns11.waitFor(started.name, "attached");
    await modern.onHost(`echo nameserver ${A} > ${FILE}~; mv ${FILE}~ ${FILE}`);
    await modern.waitFor(A);
    assert.equal(await modern.serverOf(started), A, "a container whose list was B when it started");
    assert.equal(await modern.serverOf(own), B, "a container with its own servers");
    await modern.assertStrictKeeps(A);
  });
}
