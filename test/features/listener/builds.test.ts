/**
 * Steps of `docker build` at the listener on the host: with the setting `builds`, they resolve the names of one network, at addresses that they
 * can reach where there are such.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import { LISTENER_ADDRESSES } from "../../../src/base/model/listener-addresses.ts";
import { buildStep, startStep } from "../../support/engine/build.ts";
import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { dataOf, dig } from "../../support/client/dig.ts";
import { type Dns11, dns11, replaceDns11, startDns11 } from "../../support/program/dns11.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import type { Suite } from "../../support/engine/suite.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";
import { waitFor } from "../../support/rig/wait.ts";

const { ipv4: LISTENER } = LISTENER_ADDRESSES;
const AT = `@${LISTENER}`;
const SUITES: readonly Suite[] = ["bookworm", "forky"];
const SERVE = "while :; do echo reached | nc -l -p 80; done";

async function listening(instance: Dns11): Promise<void> {
  await waitFor("the listener", async () => {
    const { listener } = await instance.status();
    if (listener?.state === "failed") throw new Error(listener.reason);
    return listener?.state === "serving" ? true : undefined;
  });
}

for (const suite of SUITES) {
  describe(`builds, Docker of ${suite}`, () => {
    let engine: Engine;
    let upstream: Upstream;
    let db: Container;
    let both: Container;
    const folder = mkdtempSync(join(tmpdir(), "d11-builds-"));

    before(async () => {
      engine = await startEngine({ suite, daemonJson: { dns: [LISTENER] } });
      upstream = await startUpstream(engine);
      await createNetwork(engine, "shop");
      db = await runContainer(engine, { name: "db", networks: ["shop"] });
      both = await runContainer(engine, {
        name: "both",
        networks: [{ name: "shop", aliases: ["api"] }],
        command: ["sh", "-c", SERVE],
      });
      await engine.docker("network", "connect", "bridge", both.id);
      await runContainer(engine, { name: "plain" });
    });
    after(async () => {
      await upstream[Symbol.asyncDispose]();
      await engine[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true });
    });

    const command = async (instance: Dns11, ...args: string[]): Promise<string> => {
      const { code, stdout, stderr } = await dns11([...args, "-H", engine.host, "--state-dir", instance.stateDir]);
      assert.equal(code, 0, stderr);
      return stdout;
    };
    const onBridge = async (): Promise<string> =>
      (await both.inspect()).NetworkSettings.Networks["bridge"]?.IPAddress ?? assert.fail("not on the default bridge");

    test("a step resolves names of the network and others, and reaches a container that is on the default bridge, too", async () => {
      await using instance = await startDns11(engine, { settings: { listener: "true", builds: "shop" } });
      await listening(instance);
      const output = await buildStep(
        engine,
        `cat /etc/resolv.conf
         for name in db db.shop api n5.ok.test plain ${db.address("shop")}; do echo "= $name"; nslookup $name; done
         echo "= connect"; nc -w 10 ${await onBridge()} 80 </dev/null`,
      );
      const of = (title: string): string =>
        output.split(/^= /m).find((part) => part.startsWith(`${title}\n`)) ?? output;
      assert.match(output, /^nameserver 169\.254\.53\.53$/m);
      assert.match(of("db"), new RegExp(`Address.*${db.address("shop")}`));
      assert.match(of("db.shop"), new RegExp(`Address.*${db.address("shop")}`));
      assert.match(of("api"), new RegExp(`Address.*${await onBridge()}$`, "m"));
      assert.doesNotMatch(of("api"), new RegExp(both.address("shop")));
      assert.match(of("n5.ok.test"), /192\.0\.2\.5/);
      assert.doesNotMatch(of("plain"), /Address: 172/);
      assert.match(of(db.address("shop")), /name = db\.shop/);
      assert.match(of("connect"), /reached/);
      // A query that is lost is sent again.
      assert.equal((await upstream.queriesFor("n5.ok.test")).length, 2, "one for A, one for AAAA");
    });

    test("steps are named in ps, status, tail, explain and failures", async () => {
      await using instance = await startDns11(engine, { settings: { listener: "true", builds: "shop" } });
      await listening(instance);
      await buildStep(engine, "nslookup seen.ok.test; nslookup missing.nx.test");
      assert.match(await command(instance, "ps"), /^builds +listener /m);
      assert.match(await command(instance, "status"), /^listener .* and builds \(names of shop\)$/m);
      assert.match(await command(instance, "tail", "builds", "-n", "20"), /seen\.ok\.test/);
      assert.match(await command(instance, "explain", "api", "builds"), new RegExp(await onBridge()));
      const { stdout } = await dns11(["doctor", "--all", "-H", engine.host, "--state-dir", instance.stateDir]);
      assert.match(stdout, /builds at the listener.*steps of docker build resolve the names of shop/);
      assert.match(await command(instance, "failures", "builds", "--all"), /missing\.nx\.test/);
    });

    test("two steps at once have one view, each at its own address, over UDP and TCP", async () => {
      await using instance = await startDns11(engine, { settings: { listener: "true", builds: "shop" } });
      await listening(instance);
      await using one = await startStep(engine);
      await using other = await startStep(engine);
      assert.notEqual(one.address, other.address);
      for (const step of [one, other]) {
        assert.deepEqual(dataOf(await dig(step, AT, "db")), [db.address("shop")]);
        assert.deepEqual(dataOf(await dig(step, AT, "+tcp", "db")), [db.address("shop")]);
      }
      assert.equal((await instance.status()).listener?.builds?.steps, 2);
    });

    test("without the setting a step gets no answer, and a reload turns it on and off", async () => {
      const config = join(folder, "dns11.yaml");
      const write = (more: string): void =>
        writeFileSync(config, `version: 1\nlistener: true\n${more}`, { mode: 0o600 });
      write("");
      await using instance = await startDns11(engine, { args: ["--config", config] });
      await listening(instance);
      await using step = await startStep(engine);
      assert.equal((await dig(step, AT, "db", "+time=2")).status, "");
      write("builds: shop\n");
      await command(instance, "reload");
      await waitFor("the step to be known", async () =>
        (await instance.status()).listener?.builds?.steps === 1 ? true : undefined,
      );
      assert.deepEqual(dataOf(await dig(step, AT, "db")), [db.address("shop")]);
      const policy = "policies:\n  closed:\n    for: [network=shop]\n    mode: enforce\n    allow: [n1.ok.test]\n";
      write(`builds: shop\n${policy}`);
      await command(instance, "reload");
      assert.equal((await dig(step, AT, "n1.ok.test")).status, "NOERROR");
      assert.equal((await dig(step, AT, "n2.ok.test")).status, "NXDOMAIN", "a policy of the network is one for builds");
      assert.equal((await upstream.queriesFor("n2.ok.test")).length, 0);
      write("builds: bridge\n");
      await command(instance, "reload");
      assert.equal((await dig(step, AT, "db")).answer.length, 0);
      assert.deepEqual(dataOf(await dig(step, AT, "both")), [await onBridge()]);
      write("builds: absent\n");
      await command(instance, "reload");
      assert.match(await command(instance, "status"), /^listener .*no container has been on the network absent yet$/m);
      write("");
      await command(instance, "reload");
      await waitFor("the step to get no answer", async () =>
        (await dig(step, AT, "both", "+time=1")).status === "" ? true : undefined,
      );
      assert.equal((await instance.status()).listener?.builds, undefined);
    });

    test("a replacement answers a running step on; after a kill its queries are refused at once", async () => {
      const settings = { listener: "true", builds: "shop" };
      await using first = await startDns11(engine, { settings });
      await listening(first);
      await using step = await startStep(engine);
      assert.deepEqual(dataOf(await dig(step, AT, "db")), [db.address("shop")]);
      await using second = await replaceDns11(engine, first, { settings });
      assert.deepEqual(dataOf(await dig(step, AT, "db")), [db.address("shop")]);
      process.kill(second.pid, "SIGKILL");
      await second.ended();
      await waitFor("queries to be refused", async () =>
        /connection refused/.test((await dig(step, AT, "db", "+time=2")).raw) ? true : undefined,
      );
    });

    test("the classic builder puts a step on a network, where it resolves and reaches what is on it", async () => {
      await using instance = await startDns11(engine);
      await instance.waitFor("db", "attached");
      const output = await buildStep(engine, `nslookup db; nc -w 10 api 80 </dev/null`, {
        builder: "classic",
        args: ["--network", "shop"],
      });
      assert.match(output, new RegExp(`Address.*${db.address("shop")}`));
      assert.match(output, /reached/);
    });
  });
}
