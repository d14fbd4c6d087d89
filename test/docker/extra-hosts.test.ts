/**
 * Names of --add-host by DNS, and host.docker.internal: what Docker writes only into /etc/hosts, queried with dig, which
 * never reads that file. Hostile containers write their hosts file, replace it, or hold a lease on it.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { dataOf, dig } from "../support/client/dig.ts";
import { startDns11 } from "../support/program/dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { insideNode } from "../support/engine/inside-node.ts";
import type { Suite } from "../support/engine/suite.ts";
import { type Upstream, startUpstream } from "../support/servers/upstream.ts";
import { waitFor } from "../support/rig/wait.ts";

const HOST_NAME = "host.docker.internal";
const UNPRIVILEGED = ["--cap-drop=ALL", "--security-opt=no-new-privileges"];
const ENTRIES = [`--add-host=${HOST_NAME}:host-gateway`, "--add-host=api:192.0.2.7", "--add-host=api:fd00::7"];
/** What the forgers write into their hosts files. */
const FORGED = ["198.51.100.9 evil gw\n".repeat(20_000), "\0\x01\xff gw\n", "198.51.100.9 evil\n198.51.100.9 gw\n"];
const SUITES: readonly Suite[] = ["bookworm", "forky"];

for (const suite of SUITES) {
  describe(`--add-host by DNS, Docker of ${suite}`, () => {
    let engine: Engine;
    let upstream: Upstream;
    let client: Container;
    let other: Container;
    let gateway: string;

    before(async () => {
      engine = await startEngine({ suite });
      upstream = await startUpstream(engine);
      await createNetwork(engine, "n1");
      client = await runContainer(engine, { name: "client", networks: ["n1"], args: ENTRIES });
      other = await runContainer(engine, { name: "other", networks: ["n1"] });
      gateway = /^(\S+)\s+host\.docker\.internal$/m.exec(await client.readFile("/etc/hosts"))?.[1] ?? "";
    });
    after(async () => {
      await upstream[Symbol.asyncDispose]();
      await engine[Symbol.asyncDispose]();
    });

    test("the container with the entries resolves them: A, AAAA and PTR; others do not", async () => {
      await using _ = await startDns11(engine);
      assert.deepEqual(dataOf(await dig(client, HOST_NAME)), [gateway]);
      assert.deepEqual(dataOf(await dig(client, "API")), ["192.0.2.7"]);
      assert.deepEqual(dataOf(await dig(client, "+tcp", "api", "AAAA")), ["fd00::7"]);
      assert.deepEqual(dataOf(await dig(client, "-x", "192.0.2.7")), ["api."]);
      assert.deepEqual(dataOf(await dig(client, "-x", "fd00::7")), ["api."]);
      assert.deepEqual(dataOf(await dig(client, "-x", gateway)), [`${HOST_NAME}.`]);
      assert.deepEqual(dataOf(await dig(client, "other")), [other.address("n1")]);
      for (const name of [HOST_NAME, "api.test"]) assert.equal((await dig(other, name)).status, "NXDOMAIN", name);
    });

    for (const args of [["--strict"], ["--no-extra-hosts"]]) {
      test(`with ${args.join("")} they are forwarded, as Docker does`, async () => {
        await using _ = await startDns11(engine, { args });
        await upstream.forget();
        assert.equal((await dig(client, HOST_NAME)).status, "NXDOMAIN");
        assert.equal((await upstream.queriesFor(HOST_NAME)).length, 1);
      });
    }

    test("the setting host-docker-internal gives the name to containers without an entry, and to none without a gateway", async () => {
      await createNetwork(engine, "dark", { internal: true });
      await using inside = await runContainer(engine, { name: "inside", networks: ["dark"] });
      const own = await runContainer(engine, {
        name: "own",
        networks: ["n1"],
        args: [`--add-host=${HOST_NAME}:192.0.2.9`],
      });
      await using _ = own;
      await using __ = await startDns11(engine, { args: ["--host-docker-internal", "gateway"] });
      assert.deepEqual(dataOf(await dig(other, HOST_NAME)), [gateway]);
      assert.deepEqual((await dig(other, HOST_NAME, "AAAA")).status, "NOERROR");
      assert.deepEqual(dataOf(await dig(own, HOST_NAME)), ["192.0.2.9"]);
      assert.deepEqual(dataOf(await dig(inside, HOST_NAME)), []);
    });

    test("a container that writes its hosts file changes its own host-gateway at most, and adds no name", async () => {
      const all: Container[] = [];
      try {
        for (const [index, forged] of FORGED.entries()) {
          const args = [...UNPRIVILEGED, "--add-host=gw:host-gateway"];
          const forger = await runContainer(engine, { name: `forger-${index}`, networks: ["n1"], args });
          all.push(forger);
          await forger.exec("sh", ["-c", "cat >/etc/hosts"], { input: forged });
        }
        await using instance = await startDns11(engine);
        for (const forger of all) assert.ok([0, 1].includes(dataOf(await dig(forger, "gw")).length), forger.name);
        for (const each of [...all, client]) assert.deepEqual(dataOf(await dig(each, "evil")), [], each.name);
        assert.deepEqual(dataOf(await dig(client, "gw")), []);
        assert.deepEqual(dataOf(await dig(client, "other")), [other.address("n1")]);
        assert.ok(instance.isRunning, instance.log);
      } finally {
        for (const each of all) await each.remove();
      }
    });

    test("a pipe or a link in place of a hosts file blocks nothing", async () => {
      const args = [...UNPRIVILEGED, "--add-host=gw:host-gateway", "--add-host=api:192.0.2.8"];
      await using odd = await runContainer(engine, { name: "odd", networks: ["n1"], args });
      const path = (await odd.inspect()).HostsPath;
      // One after the other: dockerd itself blocks on a pipe when it removes such a container.
      for (const make of ["mkfifo", "ln -s /proc/kmsg", "mkdir", "ln -s /dev/zero", "touch"]) {
        const { code, stderr } = await engine.exec("sh", ["-c", `rm -rf "$1" && ${make} "$1"`, "sh", path]);
        assert.equal(code, 0, stderr);
        await using instance = await startDns11(engine);
        assert.deepEqual(dataOf(await dig(odd, "gw")), [], make);
        assert.deepEqual(dataOf(await dig(odd, "api")), ["192.0.2.8"], make);
        assert.ok(instance.isRunning, instance.log);
      }
    });

    test("a lease on a hosts file blocks nothing, and the file is read when the lease is gone", async () => {
      const node = await insideNode(engine);
      const args = [...UNPRIVILEGED, ...node.args, "--add-host=gw:host-gateway"];
      await using lessee = await runContainer(engine, { name: "lessee", networks: ["n1"], args });
      const lease = node.command("support/program/file-lease-main.js").join(" ");
      const script = `echo $$ >/tmp/pid; exec ${lease} /etc/hosts >/tmp/lease`;
      await engine.docker("exec", "--detach", "lessee", "sh", "-c", script);
      await waitFor("the lease", async () =>
        (await lessee.exec("cat", ["/tmp/lease"])).stdout.includes("held") ? true : undefined,
      );
      await using instance = await startDns11(engine);
      assert.deepEqual(dataOf(await dig(lessee, "other")), [other.address("n1")]);
      assert.deepEqual(dataOf(await dig(lessee, "gw")), []);
      assert.equal((await lessee.exec("sh", ["-c", "kill -9 $(cat /tmp/pid)"])).code, 0);
      await waitFor("its file to be read", async () =>
        dataOf(await dig(lessee, "gw"))[0] === gateway ? true : undefined,
      );
      assert.ok(instance.isRunning, instance.log);
    });
  });
}
