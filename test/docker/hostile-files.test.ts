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
import type { Dns11 } from "../support/program/dns11.ts";
import { SharedDns11 } from "../support/program/shared-dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { endLease, startLessee } from "../support/engine/lessee.ts";
import { type Suite, inTurn } from "../support/engine/suite.ts";
import { type ScriptedServers, startScripted } from "../support/scripted/scripted.ts";
import { waitFor } from "../support/rig/wait.ts";

const UNPRIVILEGED = ["--cap-drop=ALL", "--security-opt=no-new-privileges"];
const HOST_SERVER = "127.0.0.1";
const DAEMON_SERVER = "10.53.0.5";
const OWN_SERVER = "10.53.0.6";
const SERVERS = [HOST_SERVER, DAEMON_SERVER, OWN_SERVER] as const;
const SUITES = inTurn<Suite>(["bookworm", "trixie", "forky"]);

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
  /** Containers with a server of their own (--dns), and with the one of the daemon's settings, one for each of the forged files. */
  readonly given: readonly Container[];
  readonly plain: readonly Container[];
  readonly #servers: ScriptedServers;
  #names = 0;

  private constructor(
    engine: Engine,
    servers: ScriptedServers,
    given: readonly Container[],
    plain: readonly Container[],
  ) {
    this.engine = engine;
    this.#servers = servers;
    this.given = given;
    this.plain = plain;
  }

  static async start(suite: Suite): Promise<Fixture> {
    const engine = await startEngine({ suite, daemonJson: { dns: [DAEMON_SERVER] } });
    const servers = await startScripted(engine, "ok", { addresses: SERVERS });
    await createNetwork(engine, "n1");
    const forgers = async (name: string, dns?: readonly string[]): Promise<readonly Container[]> =>
      await Promise.all(
        FORGED.map(async (_, index) => {
          const options = { name: `${name}-${index}`, networks: ["n1"], dns, args: UNPRIVILEGED };
          const forger = await runContainer(engine, options);
          await forger.exec("cp", ["/etc/resolv.conf", "/tmp/honest"]);
          return forger;
        }),
      );
    return new Fixture(engine, servers, await forgers("given", [OWN_SERVER]), await forgers("plain"));
  }

  async serversOf(container: Container): Promise<string[]> {
    const name = `n${(this.#names += 1)}.ok.test`;
    await dig(container, name);
    const queried = new Set((await this.#servers.queriesFor(name)).map(({ server }) => server));
    return SERVERS.filter((_, index) => queried.has(index + 1));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#servers[Symbol.asyncDispose]();
    await this.engine[Symbol.asyncDispose]();
  }
}

for (const suite of SUITES) {
  describe(`resolv.conf of containers, Docker of ${suite}`, () => {
    let fixture: Fixture;
    let web: Container;
    let client: Container;
    const shared = new SharedDns11(() => fixture.engine);

    before(async () => {
      fixture = await Fixture.start(suite);
      web = await runContainer(fixture.engine, { name: "web", networks: ["n1"] });
      client = await runContainer(fixture.engine, { name: "client", networks: ["n1"] });
    });
    after(async () => {
      await shared[Symbol.asyncDispose]();
      await fixture[Symbol.asyncDispose]();
    });

    async function assertServes(instance: Dns11): Promise<void> {
      assert.deepEqual(dataOf(await dig(client, "web")), [web.address("n1")]);
      assert.ok(instance.isRunning, instance.log);
    }

    for (const mode of MODES) {
      describe(`with one instance (${mode})`, () => {
        let instance: Dns11;
        let lessee: Container;

        /** dns11 starts when all files are forged, leased or pipes. */
        before(async () => {
          const { engine, given, plain } = fixture;
          await shared.stop();
          for (const [index, forger] of given.entries()) await forge(forger, index);
          for (const forger of plain) await forge(forger, HONEST);
          if (mode === "default") {
            lessee = await startLessee(engine, "/etc/resolv.conf", UNPRIVILEGED);
            await startPiper(engine);
          }
          instance = await shared.with(mode === "strict" ? ["--strict"] : []);
        });

        if (mode === "default") {
          test("a lease on a resolv.conf blocks no other container, and the file is read when the lease is gone", async () => {
            const held = await instance.container("lessee");
            const { upstreams } = (await instance.container("client")) ?? {};
            // Engines before 26 report all servers without the file.
            if (suite !== "bookworm") assert.notDeepEqual(held?.upstreams, upstreams);
            await assertServes(instance);
            assert.deepEqual(dataOf(await dig(lessee, "web")), [web.address("n1")]);
            assert.deepEqual(await fixture.serversOf(lessee), [DAEMON_SERVER], "through Docker's resolver");
            await endLease(lessee);
            await waitFor("its file to be read", async () => {
              const now = await instance.container("lessee");
              return JSON.stringify(now?.upstreams) === JSON.stringify(upstreams) ? true : undefined;
            });
            assert.equal((await instance.status()).pid, instance.pid);
            await assertServes(instance);
          });

          test("a pipe in place of a resolv.conf blocks no other container", async () => {
            await assertServes(instance);
            assert.equal((await instance.container("piper"))?.state, "attached");
          });
        }

        test("a forged server list does not override --dns", async () => {
          for (const [index, forger] of fixture.given.entries()) {
            assert.deepEqual(await fixture.serversOf(forger), [OWN_SERVER], FORGED[index]);
          }
          assert.ok(instance.isRunning, instance.log);
        });

        test("a forged server list does not override the servers of the daemon's settings", async () => {
          for (const [index, forger] of fixture.plain.entries()) {
            assert.deepEqual(await fixture.serversOf(forger), [DAEMON_SERVER], "before");
            await forge(forger, index);
            // An event of the container makes dns11 read the file again.
            const name = `forged-${index}-${mode}`;
            await fixture.engine.docker("rename", forger.id, name);
            await instance.waitFor(name, "attached");
            assert.deepEqual(await fixture.serversOf(forger), [DAEMON_SERVER], FORGED[index]);
          }
        });
      });
    }
  });
}

async function startPiper(engine: Engine): Promise<void> {
  const pipe = join(engine.folder, "pipe");
  await check("mkfifo", [pipe]);
  const args = [...UNPRIVILEGED, `--volume=${pipe}:/etc/resolv.conf`];
  await runContainer(engine, { name: "piper", networks: ["n1"], args });
}
