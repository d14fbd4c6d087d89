/**
 * What a container has in the place of its resolv.conf: a lease that keeps it from being opened, a pipe, or comments that
 * it has written itself. dns11 starts and serves its neighbour all the same, and asks no server for it that Docker would
 * not have asked. The attackers are processes in containers without any capability.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import { check } from "../support/program/command.ts";
import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { dataOf, dig } from "../support/client/dig.ts";
import { type Dns11, startDns11 } from "../support/program/dns11.ts";
import { type Engine, type EngineOptions, startEngine } from "../support/engine/engine.ts";
import { insideNode } from "../support/engine/inside-node.ts";
import type { Suite } from "../support/engine/suite.ts";
import { type Upstream, startUpstream } from "../support/servers/upstream.ts";
import { waitFor } from "../support/rig/wait.ts";

const NO_RIGHTS = ["--cap-drop=ALL", "--security-opt=no-new-privileges"];
const HOSTS = "127.0.0.1";
const DAEMONS = "10.53.0.5";
const GIVEN = "10.53.0.6";
const SUITES: readonly Suite[] = ["bookworm", "trixie", "forky"];

/** All that an engine may write that would lead a container to the host's servers. */
const FORGED = [
  `nameserver 127.0.0.11\noptions ndots:0\n# Based on host file: '/etc/resolv.conf' (internal resolver)\n# ExtServers: [host(${HOSTS})]\n# Overrides: []\n`,
  `nameserver 127.0.0.11\n# Based on host file: '/etc/resolv.conf' (internal resolver)\n# ExtServers: [host(${HOSTS})]\n# Overrides: [nameservers]\n`,
  `nameserver 127.0.0.11\n# ExtServers: [host(${HOSTS})]\n`,
];

class World implements AsyncDisposable {
  readonly engine: Engine;
  readonly upstreams: readonly Upstream[];
  #asked = 0;

  private constructor(engine: Engine, upstreams: readonly Upstream[]) {
    this.engine = engine;
    this.upstreams = upstreams;
  }

  static async start(options: EngineOptions): Promise<World> {
    const engine = await startEngine(options);
    const addresses = [HOSTS, DAEMONS, GIVEN];
    const upstreams = await Promise.all(addresses.map(async (address) => await startUpstream(engine, { address })));
    await createNetwork(engine, "n1");
    return new World(engine, upstreams);
  }

  async serverOf(container: Container): Promise<string[]> {
    const name = `n${(this.#asked += 1)}.ok.test`;
    await dig(container, "+time=5", name);
    const asked: string[] = [];
    for (const upstream of this.upstreams) {
      if ((await upstream.askedFor(name)).length > 0) asked.push(upstream.address);
    }
    return asked;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const upstream of this.upstreams) await upstream[Symbol.asyncDispose]();
    await this.engine[Symbol.asyncDispose]();
  }
}

async function assertServes(instance: Dns11, client: Container, web: Container): Promise<void> {
  assert.deepEqual(dataOf(await dig(client, "web")), [web.address("n1")]);
  assert.ok(instance.isRunning, instance.log);
}

for (const suite of SUITES) {
  describe(`files of containers, Docker of ${suite}`, () => {
    let world: World;
    let web: Container;
    let client: Container;

    before(async () => {
      world = await World.start({ suite });
      web = await runContainer(world.engine, { name: "web", networks: ["n1"] });
      client = await runContainer(world.engine, { name: "client", networks: ["n1"] });
    });
    after(async () => await world[Symbol.asyncDispose]());

    test("one with a lease on its resolv.conf stops nobody, and is looked at again when the lease is gone", async () => {
      const { engine } = world;
      const node = await insideNode(engine);
      const options = { name: "lessee", networks: ["n1"], args: [...NO_RIGHTS, ...node.args] };
      await using lessee = await runContainer(engine, options);
      const script = `echo $$ >/tmp/pid; exec ${node.command("support/program/file-lease-main.js").join(" ")} /etc/resolv.conf >/tmp/said`;
      await engine.docker("exec", "--detach", "lessee", "sh", "-c", script);
      await waitFor("the lease", async () =>
        (await lessee.exec("cat", ["/tmp/said"])).stdout.includes("held") ? true : undefined,
      );
      await using instance = await startDns11(engine);
      await assertServes(instance, client, web);
      assert.deepEqual(dataOf(await dig(lessee, "web")), [web.address("n1")]);
      assert.deepEqual(await world.serverOf(lessee), [HOSTS], "by way of Docker's resolver");
      const { upstreams } = (await instance.container("client")) ?? {};
      const held = await instance.container("lessee");
      // Engines before 26 tell everything without the file.
      if (suite !== "bookworm") assert.notDeepEqual(held?.upstreams, upstreams);
      assert.equal((await lessee.exec("sh", ["-c", "kill -9 $(cat /tmp/pid)"])).code, 0);
      await waitFor("its file to be read", async () => {
        const now = await instance.container("lessee");
        return JSON.stringify(now?.upstreams) === JSON.stringify(upstreams) ? true : undefined;
      });
      assert.equal((await instance.status()).pid, instance.pid);
      await assertServes(instance, client, web);
    });

    test("one with a pipe in the place of its resolv.conf stops nobody", async () => {
      const { engine } = world;
      const pipe = join(engine.folder, "pipe");
      await check("mkfifo", [pipe]);
      const args = [...NO_RIGHTS, `--volume=${pipe}:/etc/resolv.conf`];
      await using _ = await runContainer(engine, { name: "piper", networks: ["n1"], args });
      await using instance = await startDns11(engine);
      await assertServes(instance, client, web);
      assert.equal((await instance.container("piper"))?.state, "attached");
    });

    for (const character of ["default", "strict"]) {
      test(`a forged list does not lead past --dns (${character})`, async () => {
        for (const forged of FORGED) {
          const options = { name: "forger", networks: ["n1"], dns: [GIVEN], args: NO_RIGHTS };
          await using forger = await runContainer(world.engine, options);
          await forger.exec("sh", ["-c", "cat >/etc/resolv.conf"], { input: forged });
          await using instance = await startDns11(world.engine, { args: character === "strict" ? ["--strict"] : [] });
          assert.deepEqual(await world.serverOf(forger), [GIVEN], forged);
          assert.ok(instance.isRunning, instance.log);
        }
      });
    }
  });

  describe(`a list of the daemon's, Docker of ${suite}`, () => {
    let world: World;
    before(async () => (world = await World.start({ suite, daemonJson: { dns: [DAEMONS] } })));
    after(async () => await world[Symbol.asyncDispose]());

    for (const character of ["default", "strict"]) {
      test(`nobody gets past it by a forged one (${character})`, async () => {
        await using honest = await runContainer(world.engine, { name: "honest", networks: ["n1"] });
        await using instance = await startDns11(world.engine, { args: character === "strict" ? ["--strict"] : [] });
        assert.deepEqual(await world.serverOf(honest), [DAEMONS]);
        for (const forged of FORGED) {
          await using forger = await runContainer(world.engine, { name: "forger", networks: ["n1"], args: NO_RIGHTS });
          await forger.exec("sh", ["-c", "cat >/etc/resolv.conf"], { input: forged });
          // After an event of its own it is looked at anew.
          await world.engine.docker("rename", "forger", "forged");
          await instance.waitFor("forged", "attached");
          assert.deepEqual(await world.serverOf(forger), [DAEMONS], forged);
        }
      });
    }
  });
}
