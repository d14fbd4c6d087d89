/**
 * The default bridge, with `--default-bridge names`: containers that Docker gives no resolver are served at the servers of
 * their own resolv.conf. They resolve each other, everything else goes to the host's servers if the file is a copy of the host's, or
 * else to those of the file from inside the container, and without dns11 it is as if it had never run.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { stdoutOf } from "../../support/program/command.ts";
import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { dataOf, dig } from "../../support/client/dig.ts";
import { type Dns11, dns11, replaceDns11, startDns11 } from "../../support/program/dns11.ts";
import { QueryLoop } from "../../support/client/query-loop.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import type { Suite } from "../../support/engine/suite.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { askAll, unknownDifferences } from "../../docker/differential/bridge.ts";
import type { Outcome } from "../../docker/differential/client.ts";

const [A, B, SERVER6] = ["10.53.0.2", "10.53.0.3", "fd53::2"];
const NAMES = ["--default-bridge", "names", "--kind", "auto"];
/** What depends on the engine's version is tested on each, the rest on this one. */
const NEWEST: Suite = "forky";
const WITH_IPV6 = { ipv6: true, "fixed-cidr-v6": "fd17::/64" };
/** A server that nobody runs, for files that are not used. */
const UNUSED = "10.53.0.9";

/** From where Docker takes the servers that it writes into containers, another place on each engine. */
const SOURCES: Readonly<Record<Suite, "the host's file" | "the daemon's dns" | "the file behind resolved's stub">> = {
  bookworm: "the host's file",
  trixie: "the daemon's dns",
  forky: "the file behind resolved's stub",
};

const STUB = "127.0.0.53";
/** What dns11 asks: where the files are copies of the host's, the host's own servers. */
const ASKED: Readonly<Record<Suite, readonly string[]>> = {
  bookworm: [`host(${A})`, `host(${B})`],
  trixie: [A, B],
  forky: [STUB, A, B, SERVER6].map((server) => `host(${server})`),
};

async function startWith(suite: Suite, servers: readonly string[]): Promise<Engine> {
  const file = servers.map((server) => `nameserver ${server}\n`).join("");
  switch (SOURCES[suite]) {
    case "the host's file":
      return await startEngine({ suite, resolvConf: file });
    case "the daemon's dns":
      return await startEngine({ suite, resolvConf: `nameserver ${UNUSED}\n`, daemonJson: { dns: servers } });
    case "the file behind resolved's stub": {
      const stub = "nameserver 127.0.0.53\noptions edns0 trust-ad\n";
      const engine = await startEngine({ suite, resolvConf: stub, daemonJson: WITH_IPV6 });
      const script = 'mkdir -p /run/systemd/resolve && printf %s "$1" >/run/systemd/resolve/resolv.conf';
      const onHost = ["--target", String(engine.hostPid), "--mount", "--", "sh", "-ceu", script, "sh", file];
      stdoutOf(await engine.exec("nsenter", onHost), "write the file of resolved's upstreams");
      // Docker looks for the stub once, when it starts.
      await engine.restartDaemon();
      return engine;
    }
  }
}

export function defaultBridgeOn(suite: Suite): void {
  describe(`default bridge, Docker of ${suite}`, () => {
    const isNewest = suite === NEWEST;
    const servers = isNewest ? [A, B, SERVER6] : [A, B];
    const first = isNewest ? STUB : A;
    let engine: Engine;
    let upstreams: readonly Upstream[];
    let web: Container;
    let client: Container;
    let both: Container;
    let names = 0;

    before(async () => {
      engine = await startWith(suite, servers);
      const running = isNewest ? [STUB, ...servers] : servers;
      upstreams = await Promise.all(running.map(async (address) => await startUpstream(engine, { address })));
      await createNetwork(engine, "n1");
      web = await runContainer(engine, { name: "web", hostname: "hostA" });
      client = await runContainer(engine, { name: "client", args: ["--link", "web:backend"] });
      both = await runContainer(engine, { name: "both", networks: ["n1", "bridge"] });
      await runContainer(engine, { name: "elsewhere", networks: ["n1"] });
    });
    after(async () => {
      for (const upstream of upstreams) await upstream[Symbol.asyncDispose]();
      await engine[Symbol.asyncDispose]();
    });

    const ask = async (container: Container, ...args: string[]): ReturnType<typeof dig> =>
      await dig(container, `@${A}`, ...args);

    /** A busy machine may lose a probe: then the container is served a moment after dns11 is ready. */
    async function start(): Promise<Dns11> {
      const instance = await startDns11(engine, { args: NAMES });
      for (const { name } of [web, client]) await instance.waitFor(name, "attached");
      return instance;
    }

    /** The servers that receive a query for a new name, in the file's order: dns11 asks the next one if the first is late. */
    async function serversOf(container: Container, server = A): Promise<string[]> {
      const name = `n${(names += 1)}.ok.test`;
      await dig(container, `@${server}`, name);
      const queried: string[] = [];
      for (const upstream of upstreams) {
        const queries = await upstream.queriesFor(name);
        if (queries.length > 0) queried.push(upstream.address);
      }
      return queried;
    }

    describe("with one instance", () => {
      let instance: Dns11;
      let withoutDns11: readonly Outcome[] = [];
      before(async () => {
        if (isNewest) withoutDns11 = await askAll(client, A);
        instance = await start();
      });
      after(async () => await instance[Symbol.asyncDispose]());

      test("containers resolve each other by name, short ID, hostname, link and NAME.bridge, over UDP and TCP, at every server", async () => {
        const all = ["web", "WEB", web.id.slice(0, 12), "hosta", "backend", "web.bridge"];
        for (const name of all) assert.deepEqual(dataOf(await ask(client, name)), [web.address("bridge")], name);
        assert.deepEqual(dataOf(await ask(client, "+tcp", "web")), [web.address("bridge")]);
        assert.deepEqual(dataOf(await dig(client, `@${B}`, "web")), [web.address("bridge")]);
        assert.equal((await ask(client, "web", "AAAA")).status, "NOERROR");
        assert.deepEqual(dataOf(await ask(client, "-x", web.address("bridge"))), ["web.bridge."]);
        assert.deepEqual(dataOf(await ask(web, "client")), [client.address("bridge")]);
        assert.equal((await ask(web, "backend.test")).status, "NXDOMAIN", "a link is its owner's alone");
      });

      test(`the servers that Docker wrote from ${SOURCES[suite]} are captured and queried`, async () => {
        const file = await client.readFile("/etc/resolv.conf");
        assert.deepEqual(
          [...file.matchAll(/^nameserver (.*)$/gm)].map(([, server]) => server),
          servers,
        );
        assert.deepEqual((await instance.container("client"))?.upstreams, [ASKED[suite].join(" ")]);
        for (const server of servers) {
          assert.deepEqual(dataOf(await dig(client, `@${server}`, "web")), [web.address("bridge")]);
          assert.equal((await serversOf(client, server))[0], first);
        }
      });

      test("containers of other networks resolve where they share one, by the names that they had", async () => {
        assert.deepEqual(dataOf(await ask(client, "both")), [both.address("bridge")]);
        assert.deepEqual(dataOf(await ask(client, "elsewhere.n1")), []);
        assert.deepEqual(dataOf(await dig(both, "web")), [web.address("bridge")]);
        assert.deepEqual(dataOf(await dig(both, "both")), [both.address("n1")], "user-defined networks come first");
      });

      test("a container that joins another network is served there as ever, and is left to Docker when it leaves", async () => {
        await using mover = await runContainer(engine, { name: "mover" });
        await instance.waitFor("mover", "attached");
        await mover.connect("n1");
        // By 127.0.0.11, where Docker's own resolver does not know the names of the bridge.
        await waitFor("names of both networks", async () =>
          dataOf(await dig(mover, "web"))[0] === web.address("bridge") ? true : undefined,
        );
        assert.deepEqual(dataOf(await dig(mover, "both.n1")), [both.address("n1")]);
        await mover.disconnect("n1");
        // Docker leaves its own resolver in the file, but no longer follows the container's networks there.
        assert.equal((await instance.waitFor("mover", "skipped")).code, "no-nameserver");
      });

      if (!isNewest) return;

      test("a KIND node on it alone is refused with what to do", async () => {
        await using node = await runContainer(engine, { name: "node", labels: { "io.x-k8s.kind.cluster": "kind" } });
        const { code, reason = "" } = await instance.waitFor(node.name, "skipped");
        assert.equal(code, "default-network-only");
        assert.match(
          reason,
          /is a KIND node, or nested, on no user-defined network.*; connect it to one, such as kind$/,
        );
      });

      test("other names are answered whichever server was asked, and programs of the container read replies of the server they queried", async () => {
        assert.deepEqual(dataOf(await dig(client, `@${B}`, "far.ok.test")), ["192.0.2.1"]);
        const { stdout } = await client.exec("nslookup", ["near.ok.test"]);
        assert.match(stdout, /192\.0\.2\.1/);
      });

      test("doctor checks such a container, and explain knows its names", async () => {
        const state = ["--state-dir", instance.stateDir, "-H", engine.host];
        const { stdout } = await dns11(["doctor", "client", "--all", ...state]);
        assert.match(stdout, /"client" resolves to/);
        assert.doesNotMatch(stdout, /do not use dns11|127\.0\.0\.11 is not among/);
        const explained = await dns11(["explain", "web", "--in", "client", ...state]);
        assert.match(explained.stdout, new RegExp(web.address("bridge").replaceAll(".", "\\.")));
        assert.doesNotMatch(explained.stdout, /do not use dns11/);
      });

      test("what is no container's name is answered octet by octet as without dns11, except for known differences", async () => {
        const unknown = unknownDifferences(withoutDns11, await askAll(client, A));
        assert.equal(unknown.join("\n\n"), "");
      });

      test("servers of both families are captured, and names have addresses and reverse names of both families", async () => {
        for (const server of [A, SERVER6]) {
          for (const protocol of ["+notcp", "+tcp"]) {
            assert.deepEqual(dataOf(await dig(client, `@${server}`, protocol, "web")), [web.address("bridge")]);
            assert.deepEqual(dataOf(await dig(client, `@${server}`, protocol, "web", "AAAA")), [
              web.address6("bridge"),
            ]);
            assert.deepEqual(dataOf(await dig(client, `@${server}`, protocol, `far${protocol}.ok.test`)), [
              "192.0.2.1",
            ]);
          }
        }
        assert.deepEqual(dataOf(await dig(client, `@${A}`, "-x", web.address6("bridge"))), ["web.bridge."]);
      });

      test("a change of the file is followed, whatever a container writes there", async () => {
        await using writer = await runContainer(engine, { name: "writer", args: ["--cap-drop=ALL"] });
        await instance.waitFor("writer", "attached");
        const write = async (text: string): Promise<void> =>
          void (await writer.exec("sh", ["-c", "cat >/etc/resolv.conf"], { input: text }));
        await write(`nameserver ${B}\n`);
        await waitFor("the new server", async () =>
          (await instance.container("writer"))?.upstreams?.[0] === B ? true : undefined,
        );
        await waitFor("it to be captured", async () =>
          dataOf(await dig(writer, `@${B}`, "web"))[0] === web.address("bridge") ? true : undefined,
        );
        assert.deepEqual(await serversOf(writer, B), [B]);
        for (const text of [
          "",
          "nameserver 127.0.0.11\nnameserver 0.0.0.0\nnameserver fe80::1%eth0\n",
          "\0\xff nameserver\n".repeat(1_000),
          `${"x".repeat(200_000)}\nnameserver ${A}\n`,
        ]) {
          await write(text);
          const skipped = await instance.waitFor("writer", "skipped");
          assert.equal(skipped.code, "no-nameserver");
          assert.deepEqual(dataOf(await ask(client, "web")), [web.address("bridge")]);
          await write(`nameserver ${A}\n`);
          await instance.waitFor("writer", "attached");
        }
        await write(Array.from({ length: 5_000 }, (_, i) => `nameserver 10.9.${i >> 8}.${i & 255}\n`).join(""));
        await waitFor("three servers of many", async () =>
          (await instance.container("writer"))?.upstreams?.[0] === "10.9.0.0 10.9.0.1 10.9.0.2" ? true : undefined,
        );
        assert.ok(instance.isRunning, instance.log);
      });
    });
    if (!isNewest) return;

    test("a pipe or a link in place of the file blocks nothing, and those containers are left alone", async () => {
      const makes = ["mkfifo", "ln -s /dev/zero", "mkdir", "ln -s /proc/kmsg"];
      const odd: { readonly container: Container; readonly path: string }[] = [];
      for (const make of makes) {
        const container = await runContainer(engine);
        const path = (await container.inspect()).ResolvConfPath;
        const { code, stderr } = await engine.exec("sh", ["-c", `rm -rf "$1" && ${make} "$1"`, "sh", path]);
        assert.equal(code, 0, stderr);
        odd.push({ container, path });
      }
      await using instance = await start();
      for (const [at, { container, path }] of odd.entries()) {
        assert.equal((await instance.waitFor(container.name, "skipped")).code, "no-nameserver", makes[at]);
        await engine.exec("sh", ["-c", `rm -rf "$1" && touch "$1"`, "sh", path]);
      }
      assert.deepEqual(dataOf(await ask(client, "web")), [web.address("bridge")]);
      for (const { container } of odd) await container.remove();
    });

    for (const [how, end] of [
      ["stopped", async (instance: Dns11) => void (await instance.stop())],
      [
        "killed",
        async (instance: Dns11) => {
          instance.kill("SIGKILL");
          await instance.ended();
        },
      ],
      [
        "hung",
        async (instance: Dns11) => {
          await waitFor("its keeper to watch all namespaces", async () => {
            const { keeper, containers } = await instance.status();
            const attached = containers.filter(({ state }) => state === "attached").length;
            return keeper.state === "watching" && keeper.namespaces === attached ? true : undefined;
          });
          instance.kill("SIGSTOP");
        },
      ],
    ] as const) {
      test(`when dns11 is ${how}, queries go to the servers as before, and no file has changed`, async () => {
        const file = await client.readFile("/etc/resolv.conf");
        await using instance = await start();
        assert.deepEqual(dataOf(await ask(client, "web")), [web.address("bridge")]);
        await end(instance);
        await waitFor("the rules to be gone", async () =>
          (await ask(client, "+time=1", "web")).status === "NXDOMAIN" ? true : undefined,
        );
        assert.deepEqual(await serversOf(client), [A]);
        assert.equal(await client.readFile("/etc/resolv.conf"), file);
        await waitFor("the tables of both families to be gone", async () =>
          (await client.enter("nft", ["list", "tables"])).stdout.includes("dns11") ? undefined : true,
        );
      });
    }

    test("with the rule backend nft, every server is captured, and SIGTERM leaves no rules", async () => {
      const settings = { "rule-backend": "nft", keeper: "off" };
      await using instance = await startDns11(engine, { args: NAMES, settings });
      for (const { name } of [web, client]) await instance.waitFor(name, "attached");
      for (const server of servers) {
        for (const protocol of ["+notcp", "+tcp"]) {
          const reply = await dig(client, `@${server}`, protocol, "web");
          assert.deepEqual(dataOf(reply), [web.address("bridge")], reply.raw);
        }
      }
      assert.equal((await serversOf(client))[0], first);
      assert.equal(await instance.stop(), 0);
      assert.doesNotMatch((await client.enter("nft", ["list", "ruleset"])).stdout, /dns11/);
      assert.equal((await ask(client, "web")).status, "NXDOMAIN");
      assert.deepEqual(await serversOf(client), [A]);
    });

    test("where the setting is off, doctor and explain say that it exists", async () => {
      await using instance = await startDns11(engine);
      const state = ["--state-dir", instance.stateDir, "-H", engine.host];
      assert.equal((await instance.container("client"))?.code, "default-network-only");
      assert.match((await dns11(["doctor", "client", "--all", ...state])).stdout, /default-bridge: names/);
      const unserved = await dns11(["explain", "web", "--in", "client", ...state]);
      assert.match(unserved.stdout + unserved.stderr, /default-bridge: names/);
      assert.match((await dns11(["explain", "web", "--in", "both", ...state])).stdout, /default-bridge: names/);
    });

    test("a new process takes over without a lost query, and afterwards nothing is left", async () => {
      await using instance = await start();
      await using loop = await QueryLoop.start(client, { name: "web", server: SERVER6, perSecond: 200 });
      await using next = await replaceDns11(engine, instance, { args: NAMES });
      assert.deepEqual(dataOf(await dig(client, `@${SERVER6}`, "web")), [web.address("bridge")]);
      const lost = (await loop.stop()).filter(({ outcome }) => outcome !== "NOERROR");
      assert.deepEqual(lost, []);
      assert.equal(await next.stop(), 0);
      assert.equal((await client.enter("nft", ["list", "tables"])).stdout, "");
      assert.equal((await dig(client, `@${SERVER6}`, "web")).status, "NXDOMAIN");
    });
  });
}
