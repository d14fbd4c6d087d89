/**
 * Hostile resolv.conf files of containers: a lease that blocks opening, a pipe, or forged comments. dns11 starts and serves
 * other containers all the same, and queries no server for the container that Docker would not query. The attackers are
 * processes in containers without capabilities.
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

const UNPRIVILEGED = ["--cap-drop=ALL", "--security-opt=no-new-privileges"];
const HOST_SERVER = "127.0.0.1";
const DAEMON_SERVER = "10.53.0.5";
const OWN_SERVER = "10.53.0.6";
const SUITES: readonly Suite[] = ["bookworm", "trixie", "forky"];

/** Every form in which an engine refers a container to the host's servers. */
const FORGED = [
  `nameserver 127.0.0.11\noptions ndots:0\n# Based on host file: '/etc/resolv.conf' (internal resolver)\n# ExtServers: [host(${HOST_SERVER})]\n# Overrides: []\n`,
  `nameserver 127.0.0.11\n# Based on host file: '/etc/resolv.conf' (internal resolver)\n# ExtServers: [host(${HOST_SERVER})]\n# Overrides: [nameservers]\n`,
  `nameserver 127.0.0.11\n# ExtServers: [host(${HOST_SERVER})]\n`,
];

const MODES = ["default", "strict"] as const;
const HONEST = -1;

/** Writes one of the FORGED files in the container, or the file that the engine wrote at first. */
async function forge(container: Container, index: number): Promise<void> {
  const script = index === HONEST ? "cat /tmp/honest >/etc/resolv.conf" : "cat >/etc/resolv.conf";
  assert.equal((await container.exec("sh", ["-c", script], { input: FORGED[index] ?? "" })).code, 0);
}

class Fixture implements AsyncDisposable {
  readonly engine: Engine;
  readonly upstreams: readonly Upstream[];
  #forgers: readonly Container[] | undefined;
  #names = 0;

  private constructor(engine: Engine, upstreams: readonly Upstream[]) {
    this.engine = engine;
    this.upstreams = upstreams;
  }

  static async start(options: EngineOptions): Promise<Fixture> {
    const engine = await startEngine(options);
    const addresses = [HOST_SERVER, DAEMON_SERVER, OWN_SERVER];
    const upstreams = await Promise.all(addresses.map(async (address) => await startUpstream(engine, { address })));
    await createNetwork(engine, "n1");
    return new Fixture(engine, upstreams);
  }

  async serversOf(container: Container): Promise<string[]> {
    const name = `n${(this.#names += 1)}.ok.test`;
    await dig(container, "+time=5", name);
    const queried: string[] = [];
    for (const upstream of this.upstreams) {
      if ((await upstream.queriesFor(name)).length > 0) queried.push(upstream.address);
    }
    return queried;
  }

  /** A container for each of the forged files, the same ones for every test. */
  async forgers(dns?: readonly string[]): Promise<readonly Container[]> {
    if (this.#forgers !== undefined) return this.#forgers;
    const forgers: Container[] = [];
    for (const index of FORGED.keys()) {
      const options = { name: `forger-${index}`, networks: ["n1"], dns, args: UNPRIVILEGED };
      const forger = await runContainer(this.engine, options);
      await forger.exec("cp", ["/etc/resolv.conf", "/tmp/honest"]);
      forgers.push(forger);
    }
    return (this.#forgers = forgers);
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
  describe(`resolv.conf of containers, Docker of ${suite}`, () => {
    let fixture: Fixture;
    let web: Container;
    let client: Container;

    before(async () => {
      fixture = await Fixture.start({ suite });
      web = await runContainer(fixture.engine, { name: "web", networks: ["n1"] });
      client = await runContainer(fixture.engine, { name: "client", networks: ["n1"] });
    });
    after(async () => await fixture[Symbol.asyncDispose]());

    test("a lease on a resolv.conf blocks no other container, and the file is read when the lease is gone", async () => {
      const { engine } = fixture;
      const node = await insideNode(engine);
      const options = { name: "lessee", networks: ["n1"], args: [...UNPRIVILEGED, ...node.args] };
      await using lessee = await runContainer(engine, options);
      const script = `echo $$ >/tmp/pid; exec ${node.command("support/program/file-lease-main.js").join(" ")} /etc/resolv.conf >/tmp/lease`;
      await engine.docker("exec", "--detach", "lessee", "sh", "-c", script);
      await waitFor("the lease", async () =>
        (await lessee.exec("cat", ["/tmp/lease"])).stdout.includes("held") ? true : undefined,
      );
      await using instance = await startDns11(engine);
      await assertServes(instance, client, web);
      assert.deepEqual(dataOf(await dig(lessee, "web")), [web.address("n1")]);
      assert.deepEqual(await fixture.serversOf(lessee), [HOST_SERVER], "through Docker's resolver");
      const { upstreams } = (await instance.container("client")) ?? {};
      const held = await instance.container("lessee");
      // Engines before 26 report all servers without the file.
      if (suite !== "bookworm") assert.notDeepEqual(held?.upstreams, upstreams);
      assert.equal((await lessee.exec("sh", ["-c", "kill -9 $(cat /tmp/pid)"])).code, 0);
      await waitFor("its file to be read", async () => {
        const now = await instance.container("lessee");
        return JSON.stringify(now?.upstreams) === JSON.stringify(upstreams) ? true : undefined;
      });
      assert.equal((await instance.status()).pid, instance.pid);
      await assertServes(instance, client, web);
    });

    test("a pipe in place of a resolv.conf blocks no other container", async () => {
      const { engine } = fixture;
      const pipe = join(engine.folder, "pipe");
      await check("mkfifo", [pipe]);
      const args = [...UNPRIVILEGED, `--volume=${pipe}:/etc/resolv.conf`];
      await using _ = await runContainer(engine, { name: "piper", networks: ["n1"], args });
      await using instance = await startDns11(engine);
      await assertServes(instance, client, web);
      assert.equal((await instance.container("piper"))?.state, "attached");
    });

    for (const mode of MODES) {
      test(`a forged server list does not override --dns (${mode})`, async () => {
        const forgers = await fixture.forgers([OWN_SERVER]);
        for (const [index, forger] of forgers.entries()) await forge(forger, index);
        await using instance = await startDns11(fixture.engine, { args: mode === "strict" ? ["--strict"] : [] });
        for (const [index, forger] of forgers.entries()) {
          assert.deepEqual(await fixture.serversOf(forger), [OWN_SERVER], FORGED[index]);
        }
        assert.ok(instance.isRunning, instance.log);
      });
    }
  });

  describe(`servers in the daemon's settings, Docker of ${suite}`, () => {
    let fixture: Fixture;
    before(async () => (fixture = await Fixture.start({ suite, daemonJson: { dns: [DAEMON_SERVER] } })));
    after(async () => await fixture[Symbol.asyncDispose]());

    for (const mode of MODES) {
      test(`a forged server list does not override them (${mode})`, async () => {
        const forgers = await fixture.forgers();
        for (const forger of forgers) await forge(forger, HONEST);
        await using instance = await startDns11(fixture.engine, { args: mode === "strict" ? ["--strict"] : [] });
        for (const [index, forger] of forgers.entries()) {
          assert.deepEqual(await fixture.serversOf(forger), [DAEMON_SERVER], "before");
          await forge(forger, index);
          // An event of the container makes dns11 read the file again.
          const name = `forged-${index}-${mode}`;
          await fixture.engine.docker("rename", forger.id, name);
          await instance.waitFor(name, "attached");
          assert.deepEqual(await fixture.serversOf(forger), [DAEMON_SERVER], FORGED[index]);
        }
      });
    }
  });
}
