/**
 * The listener on the host: containers ask it through their bridge, each gets its own view, and nobody another one's.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import { LIMITS } from "../../../src/base/limits.ts";
import { LISTENER_ADDRESSES } from "../../../src/base/model/listener-addresses.ts";
import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { dataOf, dig } from "../../support/client/dig.ts";
import { stdoutOf } from "../../support/program/command.ts";
import { QueryLoop, failuresAfter } from "../../support/client/query-loop.ts";
import { type Dns11, dns11, replaceDns11, startDns11 } from "../../support/program/dns11.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { type Suite, inTurn } from "../../support/engine/suite.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";
import { inNetns } from "../../support/rig/netns.ts";
import { pause, waitFor } from "../../support/rig/wait.ts";

const { ipv4: LISTENER, ipv6: LISTENER6 } = LISTENER_ADDRESSES;
const ON = { listener: "true" };
const AT = `@${LISTENER}`;
const SUITES = inTurn<Suite>(["bookworm", "forky"]);
/** A question that must not be answered ends with a timeout; one that is lost on a busy machine looks the same. */
const SOON = ["+time=2", "+tries=1"];

async function listening(instance: Dns11, askers: number): Promise<void> {
  await waitFor(`${askers} askers`, async () => {
    const { listener } = await instance.status();
    if (listener?.state === "failed") throw new Error(listener.reason);
    return listener?.state === "serving" && listener.askers === askers ? true : undefined;
  });
}

for (const suite of SUITES) {
  describe(`listener, Docker of ${suite}`, () => {
    let engine: Engine;
    let upstream: Upstream;
    let web: Container;
    let client: Container;
    let other: Container;
    let plain: Container;
    const folder = mkdtempSync(join(tmpdir(), "d11-listener-"));

    before(async () => {
      engine = await startEngine({ suite });
      upstream = await startUpstream(engine);
      await createNetwork(engine, "n1", { ipv6: true });
      await createNetwork(engine, "n2");
      web = await runContainer(engine, { name: "web", networks: ["n1"] });
      client = await runContainer(engine, { name: "client", networks: ["n1"] });
      other = await runContainer(engine, { name: "other", networks: ["n2"] });
      plain = await runContainer(engine, { name: "plain", dns: [LISTENER] });
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

    describe("with one instance", () => {
      let instance: Dns11;
      before(async () => {
        instance = await startDns11(engine, { settings: ON });
        await listening(instance, 4);
      });
      after(async () => await instance[Symbol.asyncDispose]());

      test("a container gets the answers that it gets at 127.0.0.11, over UDP, TCP, IPv4 and IPv6", async () => {
        for (const server of [AT, `@${LISTENER6}`]) {
          for (const transport of ["+notcp", "+tcp"]) {
            const reply = await dig(client, server, transport, "web");
            assert.deepEqual(dataOf(reply), [web.address("n1")], `${server} ${transport}`);
          }
        }
        assert.deepEqual(dataOf(await dig(client, AT, "-x", web.address("n1"))), ["web.n1."]);
        assert.equal((await dig(client, AT, "web", "MX")).status, "NOERROR");
        assert.equal((await dig(client, AT, "x.ok.test")).status, "NOERROR");
        assert.equal((await upstream.queriesFor("x.ok.test")).length, 1);
      });

      test("each container gets its own view", async () => {
        assert.equal((await dig(other, AT, "web")).answer.length, 0);
        assert.deepEqual(dataOf(await dig(other, AT, "other")), [other.address("n2")]);
      });

      test("a container on the default bridge, which is not served in its namespace, is answered all the same", async () => {
        assert.equal((await instance.container("plain"))?.state, "skipped");
        assert.equal((await dig(plain, AT, "y.ok.test")).status, "NOERROR");
        assert.equal((await dig(plain, AT, "+tcp", "y.ok.test")).status, "NOERROR");
      });

      test("its queries are in tail, explain and failures under its name", async () => {
        await dig(plain, AT, "seen.ok.test");
        await dig(plain, AT, "missing.nx.test");
        const seen = await command(instance, "tail", "plain", "-n", "20");
        assert.match(seen, /seen\.ok\.test/);
        assert.match(await command(instance, "explain", "web", "client"), new RegExp(web.address("n1")));
        assert.match(await command(instance, "ps"), /^plain +listener /m);
        assert.match(await command(instance, "explain", "again.ok.test", "plain"), /NOERROR|answer/i);
        assert.match(await command(instance, "failures", "plain", "--all"), /missing\.nx\.test/);
        assert.match(
          await command(instance, "status"),
          /^listener +169\.254\.53\.53 and fd64:6e73:3131::53, for 4 containers/m,
        );
      });

      test("nobody else can remove its rules", async () => {
        for (const family of ["bridge", "ip", "ip6"]) {
          const { code, stderr } = await engine.enter("nft", ["delete", "table", family, "dns11-listener"]);
          assert.notEqual(code, 0, family);
          assert.match(stderr, /Operation not permitted/);
        }
      });

      test("the host, which is no container, gets nothing", async () => {
        const reply = await dig(engine, AT, "web", ...SOON);
        assert.equal(reply.status, "", reply.raw);
      });
    });

    test("a reload turns it on and off, and its link comes and goes", async () => {
      const config = join(folder, "dns11.yaml");
      const write = (listener: boolean): void =>
        writeFileSync(config, `version: 1\nlistener: ${listener}\n`, { mode: 0o600 });
      write(false);
      await using instance = await startDns11(engine, { args: ["--config", config] });
      assert.equal((await instance.status()).listener, null);
      const links = async (): Promise<string> => stdoutOf(await engine.enter("ip", ["-o", "link"]), "ip link");
      write(true);
      await command(instance, "reload");
      await listening(instance, 4);
      assert.match(await links(), / dns11: /);
      assert.deepEqual(dataOf(await dig(client, AT, "web")), [web.address("n1")]);
      write(false);
      await command(instance, "reload");
      await waitFor("the link to go", async () => (/ dns11: /.test(await links()) ? undefined : true));
      assert.equal((await instance.status()).listener, null);
    });

    test("turned off while it has failed, it is off for good", async () => {
      const [program = "", ...words] = inNetns(engine.netnsPath, "nft", ["-i"]);
      const holder = spawn(program, words, { stdio: ["pipe", "ignore", "ignore"] });
      const ended = once(holder, "exit");
      try {
        holder.stdin.write("add table ip dns11-listener { flags owner; }\n");
        await waitFor("its table", async () =>
          /dns11-listener/.test((await engine.enter("nft", ["list", "tables"])).stdout) ? true : undefined,
        );
        const config = join(folder, "dns11.yaml");
        writeFileSync(config, "version: 1\nlistener: true\n", { mode: 0o600 });
        await using instance = await startDns11(engine, { args: ["--config", config] });
        await waitFor("the failure", async () =>
          (await instance.status()).listener?.state === "failed" ? true : undefined,
        );
        writeFileSync(config, "version: 1\nlistener: false\n", { mode: 0o600 });
        await command(instance, "reload");
        await pause(LIMITS.listenerRetryMs + 500);
        const { listener, isReady } = await instance.status();
        assert.deepEqual([listener, isReady], [null, true]);
      } finally {
        holder.kill();
        await ended;
      }
    });

    test("a replacement loses no query; after a kill queries are refused at once, until the next start", async () => {
      await using first = await startDns11(engine, { settings: ON });
      await listening(first, 4);
      await using loop = await QueryLoop.start(client, { name: "web", server: LISTENER, perSecond: 100 });
      // It is at the server when the processes change, and the first one has the answer to give.
      const waiting = dig(client, AT, "replaced.held.test");
      await waitFor("the query to be at the server", async () =>
        (await upstream.queriesFor("replaced.held.test")).length > 0 ? true : undefined,
      );
      setTimeout(() => upstream.release(), 1_000);
      await using second = await replaceDns11(engine, first, { settings: ON });
      assert.equal((await waiting).status, "NOERROR", second.log);
      await listening(second, 4);
      assert.deepEqual(dataOf(await dig(client, AT, "web")), [web.address("n1")]);
      assert.deepEqual(failuresAfter(await loop.stop(), 0), [], second.log);
      process.kill(second.pid, "SIGKILL");
      await second.ended();
      await waitFor("queries to be refused", async () => {
        const { raw } = await dig(client, AT, "web", ...SOON);
        return /connection refused/.test(raw) ? true : undefined;
      });
      await using third = await startDns11(engine, { settings: ON, stateDir: first.stateDir });
      await listening(third, 4);
      assert.deepEqual(dataOf(await dig(client, AT, "+tcp", "web")), [web.address("n1")]);
    });
  });
}

/** Docker's own resolver, on engines that say where they would forward to and on one that does not. */
for (const suite of SUITES) {
  describe(`daemon.json with the listener, Docker of ${suite}`, () => {
    let engine: Engine;
    let upstream: Upstream;
    before(async () => {
      engine = await startEngine({ suite, daemonJson: { dns: [LISTENER] } });
      upstream = await startUpstream(engine);
      await createNetwork(engine, "n1");
    });
    after(async () => {
      await upstream[Symbol.asyncDispose]();
      await engine[Symbol.asyncDispose]();
    });

    const doctor = async (stateDir: string, ...args: string[]): Promise<string> =>
      (await dns11(["doctor", "--all", ...args, "-H", engine.host, "--state-dir", stateDir])).stdout;

    test("Docker forwards from the container's namespace to the listener, which asks the host's servers", async () => {
      const [web, out] = await Promise.all([
        runContainer(engine, { name: "web", networks: ["n1"] }),
        // dns11 is not in its namespace, so Docker's own resolver answers there.
        runContainer(engine, { name: "out", networks: ["n1"], labels: { "io.dns11.enable": "false" } }),
      ]);
      const plain = await runContainer(engine, { name: "plain" });
      await using instance = await startDns11(engine, { settings: ON });
      await listening(instance, 3);
      assert.equal((await instance.container("out"))?.state, "skipped");
      for (const [index, container] of [web, out].entries()) {
        assert.deepEqual(dataOf(await dig(container, `n${index}.ok.test`)), [`192.0.2.${index || 1}`]);
        assert.deepEqual(dataOf(await dig(container, "web")), [web.address("n1")]);
      }
      assert.deepEqual(dataOf(await dig(plain, AT, "n7.ok.test")), ["192.0.2.7"]);
      const { stdout } = await plain.exec("nslookup", ["n8.ok.test"]);
      assert.match(stdout, /192\.0\.2\.8/);
      for (const index of [0, 1, 7, 8]) {
        const queries = await upstream.queriesFor(`n${index}.ok.test`);
        assert.ok(queries.length > 0, `n${index}`);
      }
      const { status } = await dig(out, "gone.nx.test");
      assert.equal(status, "NXDOMAIN");
      assert.match(await doctor(instance.stateDir), /listener on the host.*Docker asks it, and no other server/);
      assert.match(
        await doctor(instance.stateDir, "plain"),
        /query from the container to 169\.254\.53\.53 \(udp\).*dns11 answers/,
      );
      for (const each of [web, out, plain]) await each.remove();
    });

    test("the doctor says that nothing answers where Docker forwards to", async () => {
      await using instance = await startDns11(engine);
      const findings = await doctor(instance.stateDir);
      assert.match(findings, /169\.254\.53\.53, where nothing answers: the setting listener is off/);
      const client = await runContainer(engine, { name: "client", networks: ["n1"] });
      await instance.waitFor("client", "attached");
      assert.deepEqual(dataOf(await dig(client, "n9.ok.test")), ["192.0.2.9"], "dns11 asks the host's servers");
      await client.remove();
    });
  });
}
