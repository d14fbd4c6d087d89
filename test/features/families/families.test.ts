/**
 * Families in real containers: names of containers, of servers and from a cache that all share, by the process and the kernel; what a
 * container reaches is tried with packets; and explain says what was left out.
 */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { after, before, describe, test } from "node:test";

import { type DigReply, dataOf, dig } from "../../support/client/dig.ts";
import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { type Suite, inTurn } from "../../support/engine/suite.ts";
import { type Dns11, dns11, replaceDns11, startDns11 } from "../../support/program/dns11.ts";
import { SharedDns11 } from "../../support/program/shared-dns11.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { type RealServer, startUnbound } from "../../support/servers/real-server.ts";

const BY_KERNEL = { DNS11_ANSWERS: "kernel" };
const SERVER = "10.53.0.1";
const FOUR = "192.0.2.1";
const SIX = "2001:db8::1";
const HINTED = '1 . alpn="h2" ipv4hint=192.0.2.1 ipv6hint=2001:db8::1';
interface Answers {
  readonly A: readonly string[];
  readonly AAAA: readonly string[];
}

const SUITES = inTurn<Suite>(["bookworm", "forky"]);

for (const suite of SUITES) {
  describe(`families, Docker of ${suite}`, () => {
    let engine: Engine;
    let server: RealServer;
    let dual: Container;
    let plain: Container;
    let dark: Container;
    const shared = new SharedDns11(() => engine);

    before(async () => {
      engine = await startEngine({ suite, resolvConf: `nameserver ${SERVER}\n` });
      server = await startUnbound(engine, {
        address: SERVER,
        lines: [
          "local-zone: test. static",
          `local-data: "www.test. 60 A ${FOUR}"`,
          `local-data: "www.test. 60 AAAA ${SIX}"`,
          `local-data: 'www.test. 60 HTTPS ${HINTED}'`,
          `local-data: "www.test. 60 MX 5 mail.test."`,
        ],
      });
      await createNetwork(engine, "plain");
      await createNetwork(engine, "dual", { ipv6: true });
      await createNetwork(engine, "dark", { ipv6: true, internal: true });
      dual = await runContainer(engine, { name: "dual1", networks: ["dual", "dark"] });
      plain = await runContainer(engine, { name: "plain1", networks: ["plain"] });
      // Servers of the host are not asked from networks without a way out, but those of its own are.
      dark = await runContainer(engine, { name: "dark1", networks: ["dark"] });
    });
    after(async () => {
      await shared[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
      await engine[Symbol.asyncDispose]();
    });

    async function answers(from: Container, name: string, ...more: string[]): Promise<Answers> {
      const [a, aaaa] = [await dig(from, name, "A", ...more), await dig(from, name, "AAAA", ...more)];
      for (const each of [a, aaaa]) assert.equal(each.status, "NOERROR", each.raw);
      return { A: dataOf(a), AAAA: dataOf(aaaa) };
    }

    async function hintsOf(from: Container, ...more: string[]): Promise<string[]> {
      const reply: DigReply = await dig(from, "www.test", "HTTPS", ...more);
      return dataOf(reply).flatMap((data) => [...data.matchAll(/ipv\dhint=\S+/g)].map(([hint]) => hint));
    }

    async function explain(instance: Dns11, ...words: string[]): Promise<string> {
      const { stdout } = await dns11(["explain", ...words, "-H", engine.host, "--state-dir", instance.stateDir]);
      return stdout.replaceAll(/\s+/g, " ");
    }

    const BOTH = { A: [FOUR], AAAA: [SIX] };

    test("one family for everyone, all for a network, from a server and from the cache that both share", async () => {
      for (const [family, other, left] of [
        ["ipv4", { A: [FOUR], AAAA: [] }, ["ipv4hint=192.0.2.1"]],
        ["ipv6", { A: [], AAAA: [SIX] }, ["ipv6hint=2001:db8::1"]],
      ] as const) {
        await shared.under(`families: [${family}, dual=all]`);
        // Each twice: it is cached whole, whoever has asked first.
        for (const more of [[], ["+tcp"], ["+noedns"]]) {
          assert.deepEqual(await answers(plain, "www.test", ...more), other);
          assert.deepEqual(await answers(dual, "www.test", ...more), BOTH);
          assert.deepEqual(await hintsOf(plain, ...more), left);
          assert.equal((await hintsOf(dual, ...more)).length, 2);
        }
        assert.deepEqual(dataOf(await dig(plain, "www.test", "MX")), ["5 mail.test."]);
        assert.equal((await dig(plain, "none.test", "AAAA")).status, "NXDOMAIN");
      }
    });

    test("names of containers, too, by the process and by the kernel", async () => {
      const instance = await shared.with([], { families: "ipv4" }, BY_KERNEL);
      await instance.waitForKernel();
      const own = { A: [dual.address("dual")], AAAA: [] as string[] };
      for (let time = 0; time < 4; time++) {
        assert.deepEqual(await answers(dual, "dual1", "+noedns"), own);
        assert.deepEqual(await answers(dual, "www.test", "+noedns"), { A: [FOUR], AAAA: [] });
      }
      const byKernel = async (): Promise<number> => (await instance.container("dual1"))?.counters?.["kernel"] ?? 0;
      const counted = await byKernel();
      await waitFor("an answer by the kernel", async () => {
        assert.deepEqual(await answers(dual, "dual1", "+noedns"), own);
        return (await byKernel()) > counted;
      });
    });

    test("a reload changes it at once, also what the kernel has repeated", async () => {
      const instance = await shared.under("answers: kernel");
      await instance.waitForKernel();
      const all = { A: [dual.address("dual")], AAAA: [dual.address6("dual")] };
      for (let time = 0; time < 4; time++) assert.deepEqual(await answers(dual, "dual1", "+noedns"), all);
      await shared.under("answers: kernel", "families: ipv4");
      assert.deepEqual(await answers(dual, "dual1", "+noedns"), { ...all, AAAA: [] });
      await shared.under("answers: kernel");
      assert.deepEqual(await answers(dual, "dual1", "+noedns"), all);
    });

    test("reachable: what a container has a route to, tried with packets, and as its networks change", async () => {
      await shared.under("families: reachable");
      const hasRoute = async (from: Container, address: string): Promise<boolean> =>
        (await from.enter("ip", ["route", "get", address])).code === 0;
      assert.deepEqual([await hasRoute(plain, FOUR), await hasRoute(plain, SIX)], [true, false]);
      assert.deepEqual([await hasRoute(dual, FOUR), await hasRoute(dual, SIX)], [true, true]);
      // An old engine has a route there, which leads nowhere.
      assert.deepEqual(
        [await hasRoute(dark, SIX), await hasRoute(dark, dual.address6("dark"))],
        [suite === "bookworm", true],
      );
      assert.deepEqual(await answers(plain, "www.test"), { A: [FOUR], AAAA: [] });
      assert.deepEqual(await hintsOf(plain), ["ipv4hint=192.0.2.1"]);
      assert.deepEqual(await answers(dual, "www.test"), BOTH);
      assert.deepEqual(await answers(dark, "dual1"), {
        A: [dual.address("dark")],
        AAAA: [dual.address6("dark")],
      });
      await engine.docker("network", "connect", "dual", "plain1");
      await waitFor("both families", async () => (await answers(plain, "www.test")).AAAA.length === 1);
      await engine.docker("network", "disconnect", "dual", "plain1");
      await waitFor("one of them", async () => (await answers(plain, "www.test")).AAAA.length === 0);
    });

    test("explain says what is left out", async () => {
      const instance = await shared.under("families: [reachable, dual=ipv4]");
      assert.match(
        await explain(instance, "www.test", "--in", "plain1", "--type", "AAAA"),
        / families IPv6 addresses to which the container has no route are left out \(setting families: reachable\)/,
      );
      assert.match(
        await explain(instance, "dual1", "--in", "dual1", "--type", "AAAA"),
        / families IPv6 addresses are left out \(setting families: dual=ipv4\)/,
      );
      // Whoever asks for one type is told of the other, too: programs ask for both.
      assert.match(await explain(instance, "www.test", "--in", "plain1"), / families IPv6 addresses to which /);
      await shared.under();
      assert.doesNotMatch(await explain(instance, "www.test", "--in", "plain1"), / families /);
    });

    test("a container that starts later, from its first query to dns11 on", async () => {
      const instance = await shared.under("families: ipv4");
      await using late = await runContainer(engine, { name: "late1", networks: ["dual"] });
      await instance.waitFor("late1", "attached");
      assert.deepEqual(await answers(late, "www.test"), { A: [FOUR], AAAA: [] });
    });

    test("after a hand-over to a process with another setting, by the kernel, too", async () => {
      await shared.stop();
      await using first = await startDns11(engine, { env: BY_KERNEL });
      await first.waitFor("dual1", "attached");
      await first.waitForKernel();
      const all = { A: [dual.address("dual")], AAAA: [dual.address6("dual")] };
      for (let time = 0; time < 4; time++) assert.deepEqual(await answers(dual, "dual1", "+noedns"), all);
      await using next = await replaceDns11(engine, first, { settings: { families: "ipv4" }, env: BY_KERNEL });
      await next.waitFor("dual1", "attached");
      for (let time = 0; time < 4; time++)
        assert.deepEqual(await answers(dual, "dual1", "+noedns"), { ...all, AAAA: [] });
    });

    test("in the mode strict, too", async () => {
      await shared.under("strict: true", "families: ipv4");
      assert.deepEqual(await answers(plain, "www.test"), { A: [FOUR], AAAA: [] });
      assert.deepEqual(await hintsOf(plain), ["ipv4hint=192.0.2.1"]);
      assert.deepEqual(await answers(dual, "dual1"), { A: [dual.address("dual")], AAAA: [] });
    });

    test(
      "an enforced policy opens, and judges, what is left",
      { skip: !existsSync("src/features/policy") },
      async () => {
        const policy = [
          "policies:",
          "  out:",
          "    mode: enforce",
          "    for: [network=plain]",
          "    allow: [www.test]",
          "    addresses: enforce",
        ];
        await shared.under(...policy, "families: ipv4");
        assert.deepEqual(await answers(plain, "www.test"), { A: [FOUR], AAAA: [] });
        const { stdout } = await engine.enter("nft", ["list", "ruleset"]);
        assert.ok(stdout.includes(FOUR), stdout);
        assert.ok(!stdout.includes(SIX), stdout);
      },
    );
  });
}
