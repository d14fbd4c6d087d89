/**
 * The host's resolv.conf: after any change of it, running containers use the new servers without a restart. Containers with
 * their own servers, and strict mode, do not.
 */
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";

import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { dig } from "../support/client/dig.ts";
import { type Dns11, startDns11 } from "../support/program/dns11.ts";
import { type Engine, type EngineOptions, startEngine } from "../support/engine/engine.ts";
import type { Suite } from "../support/engine/suite.ts";
import { type Upstream, startUpstream } from "../support/servers/upstream.ts";
import { pause, waitFor } from "../support/rig/wait.ts";

const FILE = "/etc/resolv.conf";
const A = "127.0.0.1";
/** Not on a loopback: engines before 28 query such servers from inside the container. */
const B = "10.53.0.2";
const C = "10.53.0.3";
const CACHED = "kept.ok.test";
const CHANGED = /the host's nameservers changed/g;

/** An engine with servers at A, B and C, a host whose resolv.conf lists A, and a container. */
class Fixture {
  readonly engine: Engine;
  readonly client: Container;
  readonly #upstreams: readonly Upstream[];
  #names = 0;

  private constructor(engine: Engine, upstreams: readonly Upstream[], client: Container) {
    this.engine = engine;
    this.client = client;
    this.#upstreams = upstreams;
  }

  static async start(options: EngineOptions): Promise<Fixture> {
    const engine = await startEngine(options);
    const upstreams = await Promise.all([A, B, C].map(async (address) => await startUpstream(engine, { address })));
    await createNetwork(engine, "n1");
    return new Fixture(engine, upstreams, await runContainer(engine, { name: "client", networks: ["n1"] }));
  }

  /** Runs a script in the mount namespace of the engine's host. */
  async onHost(script: string): Promise<void> {
    const args = ["--target", String(this.engine.hostPid), "--mount", "--", "sh", "-ceu", script];
    const { code, stderr } = await this.engine.exec("nsenter", args);
    assert.equal(code, 0, stderr);
  }

  /** Which server receives the query for a name; default: a name that is not cached yet. */
  async serverOf(container: Container, name = `n${(this.#names += 1)}.ok.test`): Promise<string | undefined> {
    for (const upstream of this.#upstreams) await upstream.forget();
    await dig(container, name);
    for (const upstream of this.#upstreams) if ((await upstream.queriesFor(name)).length > 0) return upstream.address;
    return undefined;
  }

  async waitFor(server: string): Promise<void> {
    const usesServer = async (): Promise<true | undefined> =>
      (await this.serverOf(this.client)) === server ? true : undefined;
    await waitFor(`a query to ${server}`, usesServer);
  }

  async upstreamsOf(dns11: Dns11): Promise<string | undefined> {
    return (await dns11.container("client"))?.upstreams?.join(" ");
  }

  /** Restores the initial file. */
  async reset(): Promise<void> {
    await this.onHost(`umount ${FILE} 2>/dev/null || true; rm -f ${FILE}; echo nameserver ${A} > ${FILE}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const upstream of this.#upstreams) await upstream[Symbol.asyncDispose]();
    await this.engine[Symbol.asyncDispose]();
  }
}

let fixture: Fixture;
before(async () => (fixture = await Fixture.start({ liveRestore: true })));
beforeEach(async () => await fixture.reset());
after(async () => await fixture[Symbol.asyncDispose]());

test("every change of the file is followed and logged in one line: written in place, replaced, or linked elsewhere", async () => {
  await using dns11 = await startDns11(fixture.engine);
  assert.equal(await fixture.serverOf(fixture.client, CACHED), A);
  const changes = [
    ["written in place", `echo nameserver ${B} > ${FILE}`, B],
    ["replaced, as editors do", `echo nameserver ${A} > ${FILE}~; mv ${FILE}~ ${FILE}`, A],
    ["a link", `mkdir /run/one; echo nameserver ${B} > /run/one/conf; ln -sf /run/one/conf ${FILE}`, B],
    ["the link's target", `echo nameserver ${A} > /run/one/conf`, A],
    ["another link", `mkdir /run/two; echo nameserver ${B} > /run/two/conf; ln -sf ../run/two/conf ${FILE}`, B],
    ["the folder re-created", `rm -r /run/two; mkdir /run/two; echo nameserver ${A} > /run/two/conf`, A],
    [
      "the last of a burst",
      `for i in 1 2 3 4 5; do echo nameserver 192.0.2.$i; done > ${FILE}; echo nameserver ${B} > ${FILE}`,
      B,
    ],
  ] as const;
  for (const [index, [what, script, server]] of changes.entries()) {
    assert.equal(await fixture.serverOf(fixture.client, CACHED), undefined, "it is cached, so no server is queried");
    await fixture.onHost(script);
    await fixture.waitFor(server);
    assert.equal(await fixture.serverOf(fixture.client, CACHED), server, `the cache is flushed: ${what}`);
    assert.equal(await fixture.upstreamsOf(dns11), `host(${server})`, what);
    assert.equal(dns11.log.match(CHANGED)?.length, index + 1, what);
  }
});

test("with the stub of systemd-resolved, its upstreams are backup servers, and their changes are followed", async () => {
  await using dns11 = await startDns11(fixture.engine);
  const folder = "/run/systemd/resolve";
  await fixture.onHost(
    `mkdir -p ${folder}; echo nameserver 127.0.0.53 > ${folder}/stub-resolv.conf
     echo nameserver ${B} > ${folder}/resolv.conf; ln -sf ../${folder}/stub-resolv.conf ${FILE}`,
  );
  await fixture.waitFor(B);
  assert.equal(await fixture.upstreamsOf(dns11), `host(127.0.0.53) host(${B})`);
  await fixture.onHost(`echo nameserver ${C} > ${folder}/new; mv ${folder}/new ${folder}/resolv.conf`);
  await fixture.waitFor(C);
  assert.ok(dns11.log.includes(`"before":"127.0.0.53 (${B})","now":"127.0.0.53 (${C})"`));
});

test("after a restart of the engine, changes of the file are still followed", async () => {
  await using dns11 = await startDns11(fixture.engine);
  await fixture.engine.restartDaemon();
  await waitFor("the engine to be back", async () => ((await dns11.status()).engine?.isConnected ? true : undefined));
  assert.equal(await fixture.serverOf(fixture.client), A);
  await fixture.onHost(`echo nameserver ${B} > ${FILE}`);
  await fixture.waitFor(B);
});

test("changes that the kernel does not report, such as a mount over the file, are noticed a little later", async () => {
  await using dns11 = await startDns11(fixture.engine);
  await fixture.onHost(`echo nameserver ${B} > /run/mounted; mount --bind /run/mounted ${FILE}`);
  await fixture.waitFor(B);
  await fixture.onHost(`echo nameserver ${A} > /run/mounted`);
  await fixture.waitFor(A);
  assert.equal(dns11.log.match(CHANGED)?.length, 2);
});

test("an invalid nameserver is logged once, and the others are used", async () => {
  await using dns11 = await startDns11(fixture.engine);
  await fixture.onHost(`printf 'nameserver dns.example\\nnameserver ${B}\\n' > ${FILE}`);
  await fixture.waitFor(B);
  await fixture.onHost(`printf 'nameserver dns.example\\nnameserver ${A}\\n' > ${FILE}`);
  await fixture.waitFor(A);
  assert.equal(dns11.log.match(/dns\.example/g)?.length, 1);
});

test("with --strict, containers keep the servers that the engine set at their start", async () => {
  await using dns11 = await startDns11(fixture.engine, { args: ["--strict"] });
  assert.equal(await fixture.upstreamsOf(dns11), "docker");
  await fixture.onHost(`echo nameserver ${B} > ${FILE}`);
  await pause(1_000);
  assert.equal(await fixture.serverOf(fixture.client), A);
  assert.doesNotMatch(dns11.log, CHANGED);
});

test("with servers in the daemon's settings and no list per container, Docker's resolver is queried", async () => {
  await using other = await Fixture.start({ daemonJson: { dns: [B] } });
  await using dns11 = await startDns11(other.engine);
  assert.equal(await other.upstreamsOf(dns11), "docker");
  assert.equal(await other.serverOf(other.client), B);
});

for (const suite of ["trixie", "forky"] as const satisfies readonly Suite[]) {
  test(`Docker of ${suite}: changes are followed only for containers that use the host's servers`, async () => {
    await using modern = await Fixture.start({ suite });
    const own = await runContainer(modern.engine, { name: "own", networks: ["n1"], dns: [B] });
    {
      await using dns11 = await startDns11(modern.engine);
      assert.equal(await modern.upstreamsOf(dns11), `host(${A})`);
      await modern.onHost(`echo nameserver ${B} > ${FILE}`);
      await modern.waitFor(B);
      const started = await runContainer(modern.engine, { networks: ["n1"] });
      await dns11.waitFor(started.name, "attached");
      await modern.onHost(`echo nameserver ${A} > ${FILE}~; mv ${FILE}~ ${FILE}`);
      await modern.waitFor(A);
      assert.equal(await modern.serverOf(started), A, "a container whose list was B when it started");
      assert.equal(await modern.serverOf(own), B, "a container with its own servers");
    }
    await using strict = await startDns11(modern.engine, { args: ["--strict"] });
    await modern.onHost(`echo nameserver ${B} > ${FILE}`);
    await pause(1_000);
    assert.equal(await modern.serverOf(modern.client), A);
    assert.doesNotMatch(strict.log, CHANGED);
  });
}
