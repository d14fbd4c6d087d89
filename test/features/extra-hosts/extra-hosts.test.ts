/**
 * Names of --add-host by DNS, and host.docker.internal: what Docker writes only into /etc/hosts, queried with dig, which
 * never reads that file. Hostile containers write their hosts file, replace it, or hold a lease on it.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { dataOf, dig } from "../../support/client/dig.ts";
import type { Dns11 } from "../../support/program/dns11.ts";
import { SharedDns11 } from "../../support/program/shared-dns11.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { endLease, startLessee } from "../../support/engine/lessee.ts";
import { type Suite, inTurn } from "../../support/engine/suite.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";
import { waitFor } from "../../support/rig/wait.ts";

const HOST_NAME = "host.docker.internal";
const UNPRIVILEGED = ["--cap-drop=ALL", "--security-opt=no-new-privileges"];
const ENTRIES = [`--add-host=${HOST_NAME}:host-gateway`, "--add-host=api:192.0.2.7", "--add-host=api:fd00::7"];
/** What the forgers write into their hosts files. */
const FORGED = ["198.51.100.9 evil gw\n".repeat(20_000), "\0\x01\xff gw\n", "198.51.100.9 evil\n198.51.100.9 gw\n"];
const SUITES = inTurn<Suite>(["bookworm", "forky"]);

/** What replaces the hosts file of a container. */
const ODD = ["mkfifo", "ln -s /proc/kmsg", "mkdir", "ln -s /dev/zero", "touch"];

/** What dns11 finds when it starts, of a name that the container has with --add-host. */
interface Hostile extends AsyncDisposable {
  readonly forgers: readonly Container[];
  readonly odd: readonly Container[];
  readonly lessee: Container;
}

async function startHostile(engine: Engine): Promise<Hostile> {
  const run = async (name: string, ...args: string[]): Promise<Container> =>
    await runContainer(engine, {
      name,
      networks: ["n1"],
      args: [...UNPRIVILEGED, "--add-host=gw:host-gateway", ...args],
    });
  const forgers: Container[] = [];
  for (const [index, forged] of FORGED.entries()) {
    const forger = await run(`forger-${index}`);
    await forger.exec("sh", ["-c", "cat >/etc/hosts"], { input: forged });
    forgers.push(forger);
  }
  const odd: Container[] = [];
  const paths: string[] = [];
  const replace = async (make: string, path: string): Promise<void> => {
    const { code, stderr } = await engine.exec("sh", ["-c", `rm -rf "$1" && ${make} "$1"`, "sh", path]);
    assert.equal(code, 0, stderr);
  };
  for (const make of ODD) {
    const container = await run(`odd-${odd.length}`, "--add-host=api:192.0.2.8");
    const { HostsPath: path } = await container.inspect();
    await replace(make, path);
    odd.push(container);
    paths.push(path);
  }
  const lessee = await startLessee(engine, "/etc/hosts", [...UNPRIVILEGED, "--add-host=gw:host-gateway"]);
  const dispose = async (): Promise<void> => {
    // dockerd itself blocks on a pipe when it removes such a container.
    for (const path of paths) await replace("touch", path);
    for (const each of [...forgers, ...odd, lessee]) await each.remove();
  };
  return { forgers, odd, lessee, [Symbol.asyncDispose]: dispose };
}

for (const suite of SUITES) {
  describe(`--add-host by DNS, Docker of ${suite}`, () => {
    let engine: Engine;
    let upstream: Upstream;
    let client: Container;
    let other: Container;
    let gateway: string;
    const shared = new SharedDns11(() => engine);

    before(async () => {
      engine = await startEngine({ suite });
      upstream = await startUpstream(engine);
      await createNetwork(engine, "n1");
      client = await runContainer(engine, { name: "client", networks: ["n1"], args: ENTRIES });
      other = await runContainer(engine, { name: "other", networks: ["n1"] });
      gateway = /^(\S+)\s+host\.docker\.internal$/m.exec(await client.readFile("/etc/hosts"))?.[1] ?? "";
    });
    after(async () => {
      await shared[Symbol.asyncDispose]();
      await upstream[Symbol.asyncDispose]();
      await engine[Symbol.asyncDispose]();
    });

    describe("with hostile hosts files", () => {
      let hostile: Hostile;
      let instance: Dns11;

      before(async () => {
        hostile = await startHostile(engine);
        instance = await shared.under();
      });
      after(async () => await hostile[Symbol.asyncDispose]());

      test("a lease on a hosts file blocks nothing, and the file is read when the lease is gone", async () => {
        const { lessee } = hostile;
        assert.deepEqual(dataOf(await dig(lessee, "gw")), []);
        assert.deepEqual(dataOf(await dig(lessee, "other")), [other.address("n1")]);
        await endLease(lessee);
        await waitFor("its file to be read", async () =>
          dataOf(await dig(lessee, "gw"))[0] === gateway ? true : undefined,
        );
        assert.ok(instance.isRunning, instance.log);
      });

      test("a container that writes its hosts file changes its own host-gateway at most, and adds no name", async () => {
        const { forgers } = hostile;
        for (const forger of forgers) assert.ok([0, 1].includes(dataOf(await dig(forger, "gw")).length), forger.name);
        for (const each of [...forgers, client]) assert.deepEqual(dataOf(await dig(each, "evil")), [], each.name);
        assert.deepEqual(dataOf(await dig(client, "gw")), []);
        assert.deepEqual(dataOf(await dig(client, "other")), [other.address("n1")]);
        assert.ok(instance.isRunning, instance.log);
      });

      test("a pipe or a link in place of a hosts file blocks nothing", async () => {
        for (const [index, odd] of hostile.odd.entries()) {
          assert.deepEqual(dataOf(await dig(odd, "gw")), [], ODD[index]);
          assert.deepEqual(dataOf(await dig(odd, "api")), ["192.0.2.8"], ODD[index]);
        }
        assert.ok(instance.isRunning, instance.log);
      });
    });

    test("the container with the entries resolves them: A, AAAA and PTR; others do not", async () => {
      await shared.under();
      assert.deepEqual(dataOf(await dig(client, HOST_NAME)), [gateway]);
      assert.deepEqual(dataOf(await dig(client, "API")), ["192.0.2.7"]);
      assert.deepEqual(dataOf(await dig(client, "+tcp", "api", "AAAA")), ["fd00::7"]);
      assert.deepEqual(dataOf(await dig(client, "-x", "192.0.2.7")), ["api."]);
      assert.deepEqual(dataOf(await dig(client, "-x", "fd00::7")), ["api."]);
      assert.deepEqual(dataOf(await dig(client, "-x", gateway)), [`${HOST_NAME}.`]);
      assert.deepEqual(dataOf(await dig(client, "other")), [other.address("n1")]);
      for (const name of [HOST_NAME, "api.test"]) assert.equal((await dig(other, name)).status, "NXDOMAIN", name);
    });

    test("in strict they are forwarded, as Docker does", async () => {
      await shared.under("strict: true");
      await upstream.forget();
      assert.equal((await dig(client, HOST_NAME)).status, "NXDOMAIN");
      assert.notEqual((await upstream.queriesFor(HOST_NAME)).length, 0);
    });

    test("the setting host-docker-internal gives the name to containers without an entry, and to none without a gateway", async () => {
      await createNetwork(engine, "dark", { internal: true });
      await using inside = await runContainer(engine, { name: "inside", networks: ["dark"] });
      const args = [`--add-host=${HOST_NAME}:192.0.2.9`];
      await using own = await runContainer(engine, { name: "own", networks: ["n1"], args });
      await shared.under("host-docker-internal: gateway");
      assert.deepEqual(dataOf(await dig(other, HOST_NAME)), [gateway]);
      assert.deepEqual((await dig(other, HOST_NAME, "AAAA")).status, "NOERROR");
      assert.deepEqual(dataOf(await dig(own, HOST_NAME)), ["192.0.2.9"]);
      assert.deepEqual(dataOf(await dig(inside, HOST_NAME)), []);
    });
  });
}
