/**
 * The host's resolv.conf lives: whatever is done to it, containers that run already ask other servers from then on,
 * without a restart of anything; and those that have a list of their own, or a strict dns11, do not.
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
/** Engines before 28 have such servers asked from inside the container. */
const B = "10.53.0.2";
const C = "10.53.0.3";
const KEPT = "kept.ok.test";
const CHANGED = /the host's nameservers changed/g;

/** An engine with servers at A, B and C, whose host names A, and a container on it. */
class World {
  readonly engine: Engine;
  readonly client: Container;
  readonly #upstreams: readonly Upstream[];
  #asked = 0;

  private constructor(engine: Engine, upstreams: readonly Upstream[], client: Container) {
    this.engine = engine;
    this.client = client;
    this.#upstreams = upstreams;
  }

  static async start(options: EngineOptions): Promise<World> {
    const engine = await startEngine(options);
    const upstreams = await Promise.all([A, B, C].map(async (address) => await startUpstream(engine, { address })));
    await createNetwork(engine, "n1");
    return new World(engine, upstreams, await runContainer(engine, { name: "client", networks: ["n1"] }));
  }

  /** As a person on the engine's host. */
  async onHost(script: string): Promise<void> {
    const args = ["--target", String(this.engine.hostPid), "--mount", "--", "sh", "-ceu", script];
    const { code, stderr } = await this.engine.exec("nsenter", args);
    assert.equal(code, 0, stderr);
  }

  /** Which of the servers is asked for a name: unless told otherwise, for one that nobody knows yet. */
  async serverOf(container: Container, name = `n${(this.#asked += 1)}.ok.test`): Promise<string | undefined> {
    for (const upstream of this.#upstreams) await upstream.forget();
    await dig(container, "+time=1", name);
    for (const upstream of this.#upstreams) if ((await upstream.askedFor(name)).length > 0) return upstream.address;
    return undefined;
  }

  async waitFor(server: string): Promise<void> {
    const look = async (): Promise<true | undefined> =>
      (await this.serverOf(this.client)) === server ? true : undefined;
    await waitFor(`${server} to be asked`, look);
  }

  async upstreamsOf(dns11: Dns11): Promise<string | undefined> {
    return (await dns11.container("client"))?.upstreams?.join(" ");
  }

  /** The host's file says again what it said at first, whatever became of it. */
  async reset(): Promise<void> {
    await this.onHost(`umount ${FILE} 2>/dev/null || true; rm -f ${FILE}; echo nameserver ${A} > ${FILE}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const upstream of this.#upstreams) await upstream[Symbol.asyncDispose]();
    await this.engine[Symbol.asyncDispose]();
  }
}

let world: World;
before(async () => (world = await World.start({ liveRestore: true })));
beforeEach(async () => await world.reset());
after(async () => await world[Symbol.asyncDispose]());

test("written in place, replaced, or led elsewhere: it is followed each time, and told in one line", async () => {
  await using dns11 = await startDns11(world.engine);
  assert.equal(await world.serverOf(world.client, KEPT), A);
  const ways = [
    ["written in place", `echo nameserver ${B} > ${FILE}`, B],
    ["replaced, as editors do", `echo nameserver ${A} > ${FILE}~; mv ${FILE}~ ${FILE}`, A],
    ["a link", `mkdir /run/one; echo nameserver ${B} > /run/one/conf; ln -sf /run/one/conf ${FILE}`, B],
    ["the link's target", `echo nameserver ${A} > /run/one/conf`, A],
    ["another link", `mkdir /run/two; echo nameserver ${B} > /run/two/conf; ln -sf ../run/two/conf ${FILE}`, B],
    ["the folder made anew", `rm -r /run/two; mkdir /run/two; echo nameserver ${A} > /run/two/conf`, A],
    [
      "of a burst the last",
      `for i in 1 2 3 4 5; do echo nameserver 192.0.2.$i; done > ${FILE}; echo nameserver ${B} > ${FILE}`,
      B,
    ],
  ] as const;
  for (const [index, [what, script, server]] of ways.entries()) {
    assert.equal(await world.serverOf(world.client, KEPT), undefined, "it is kept, so nobody is asked");
    await world.onHost(script);
    await world.waitFor(server);
    assert.equal(await world.serverOf(world.client, KEPT), server, `what was kept is forgotten: ${what}`);
    assert.equal(await world.upstreamsOf(dns11), `host(${server})`, what);
    assert.equal(dns11.log.match(CHANGED)?.length, index + 1, what);
  }
});

test("behind the stub of systemd-resolved, the servers that it asks stand in for it, and their changes count", async () => {
  await using dns11 = await startDns11(world.engine);
  const folder = "/run/systemd/resolve";
  await world.onHost(
    `mkdir -p ${folder}; echo nameserver 127.0.0.53 > ${folder}/stub-resolv.conf
     echo nameserver ${B} > ${folder}/resolv.conf; ln -sf ../${folder}/stub-resolv.conf ${FILE}`,
  );
  await world.waitFor(B);
  assert.equal(await world.upstreamsOf(dns11), `host(127.0.0.53) host(${B})`);
  await world.onHost(`echo nameserver ${C} > ${folder}/new; mv ${folder}/new ${folder}/resolv.conf`);
  await world.waitFor(C);
  assert.ok(dns11.log.includes(`"before":"127.0.0.53 (${B})","now":"127.0.0.53 (${C})"`));
});

test("after a restart of the engine it is followed as before", async () => {
  await using dns11 = await startDns11(world.engine);
  await world.engine.restartDaemon();
  await waitFor("the engine to be back", async () => ((await dns11.status()).engine?.isConnected ? true : undefined));
  assert.equal(await world.serverOf(world.client), A);
  await world.onHost(`echo nameserver ${B} > ${FILE}`);
  await world.waitFor(B);
});

test("what the kernel says nothing of, as another file mounted over it, is seen a little later", async () => {
  await using dns11 = await startDns11(world.engine);
  await world.onHost(`echo nameserver ${B} > /run/mounted; mount --bind /run/mounted ${FILE}`);
  await world.waitFor(B);
  await world.onHost(`echo nameserver ${A} > /run/mounted`);
  await world.waitFor(A);
  assert.equal(dns11.log.match(CHANGED)?.length, 2);
});

test("words that are no address are told once, and the others count", async () => {
  await using dns11 = await startDns11(world.engine);
  await world.onHost(`printf 'nameserver dns.example\\nnameserver ${B}\\n' > ${FILE}`);
  await world.waitFor(B);
  await world.onHost(`printf 'nameserver dns.example\\nnameserver ${A}\\n' > ${FILE}`);
  await world.waitFor(A);
  assert.equal(dns11.log.match(/dns\.example/g)?.length, 1);
});

test("the strict character asks on as the container's own engine does", async () => {
  await using dns11 = await startDns11(world.engine, { args: ["--strict"] });
  assert.equal(await world.upstreamsOf(dns11), "docker");
  await world.onHost(`echo nameserver ${B} > ${FILE}`);
  await pause(1_000);
  assert.equal(await world.serverOf(world.client), A);
  assert.doesNotMatch(dns11.log, CHANGED);
});

test("an engine that has servers for all of its containers is asked itself, where no list is told", async () => {
  await using other = await World.start({ daemonJson: { dns: [B] } });
  await using dns11 = await startDns11(other.engine);
  assert.equal(await other.upstreamsOf(dns11), "docker");
  assert.equal(await other.serverOf(other.client), B);
});

for (const suite of ["trixie", "forky"] as const satisfies readonly Suite[]) {
  test(`Docker of ${suite}: followed where the list is the host's, and only there`, async () => {
    await using modern = await World.start({ suite });
    const own = await runContainer(modern.engine, { name: "own", networks: ["n1"], dns: [B] });
    {
      await using dns11 = await startDns11(modern.engine);
      assert.equal(await modern.upstreamsOf(dns11), `host(${A})`);
      await modern.onHost(`echo nameserver ${B} > ${FILE}`);
      await modern.waitFor(B);
      const born = await runContainer(modern.engine, { networks: ["n1"] });
      await dns11.waitFor(born.name, "attached");
      await modern.onHost(`echo nameserver ${A} > ${FILE}~; mv ${FILE}~ ${FILE}`);
      await modern.waitFor(A);
      assert.equal(await modern.serverOf(born), A, "a container whose list was B when it started");
      assert.equal(await modern.serverOf(own), B, "a container with a list of its own");
    }
    await using strict = await startDns11(modern.engine, { args: ["--strict"] });
    await modern.onHost(`echo nameserver ${B} > ${FILE}`);
    await pause(1_000);
    assert.equal(await modern.serverOf(modern.client), A);
    assert.doesNotMatch(strict.log, CHANGED);
  });
}
