/**
 * Networks that keep their containers apart: Docker answers whatever network comes first, dns11 the one on which the container can be
 * reached; where there is none, both answer the same, and explain and the doctor say why connecting fails. Which networks they are is
 * tried with packets.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import type { Explanation } from "../../src/api/names.ts";
import type { Diagnosis } from "../../src/doctor/problems.ts";
import { dataOf, dig } from "../support/client/dig.ts";
import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { type Suite, inTurn } from "../support/engine/suite.ts";
import { type Dns11, dns11 } from "../support/program/dns11.ts";
import { SharedDns11 } from "../support/program/shared-dns11.ts";
import { waitFor } from "../support/rig/wait.ts";

const BRIDGE = "com.docker.network.bridge";
const NO_ICC = `${BRIDGE}.enable_icc=false`;
const SUITES = inTurn<Suite>(["bookworm", "forky"]);
/** Its name comes first in the order of Docker. */
const APART = "a-apart";
const OPEN = "b-open";
const PLAIN = ["+noedns"];

async function isReached(from: Container, address: string): Promise<boolean> {
  const { code } = await from.exec("ping", ["-c", "1", "-W", "2", address]);
  return code === 0;
}

for (const suite of SUITES) {
  describe(`networks that keep their containers apart, Docker of ${suite}`, () => {
    let engine: Engine;
    let web: Container;
    let db: Container;
    let lone: Container;
    let docker: readonly string[];
    const shared = new SharedDns11(() => engine);

    before(async () => {
      engine = await startEngine({ suite });
      await createNetwork(engine, APART, { args: ["-o", NO_ICC], ipv6: true });
      await createNetwork(engine, OPEN, { ipv6: true });
      // Links that a macvlan can be on.
      await engine.enter("ip", ["link", "add", "d11a", "up", "type", "veth", "peer", "name", "d11b"]);
      await engine.enter("ip", ["link", "set", "d11b", "up"]);
      const on = (name: string): { name: string; aliases: string[] } => ({ name, aliases: ["store"] });
      db = await runContainer(engine, { name: "db", networks: [on(APART), on(OPEN)] });
      lone = await runContainer(engine, { name: "lone", networks: [APART] });
      web = await runContainer(engine, { name: "web", networks: [{ name: APART, links: ["db:linked"] }, OPEN] });
      docker = dataOf(await dig(web, "db"));
    });
    after(async () => {
      await shared[Symbol.asyncDispose]();
      await engine[Symbol.asyncDispose]();
    });

    async function explained(instance: Dns11, name: string): Promise<Explanation> {
      return await instance.client.explain({ container: "web", name, type: "A" });
    }

    test("Docker answers the address that cannot be reached, and so does the mode strict", async () => {
      assert.deepEqual(docker, [db.address(APART)]);
      assert.deepEqual(
        [await isReached(web, db.address(APART)), await isReached(web, db.address(OPEN))],
        [false, true],
      );
      const instance = await shared.under("strict: true");
      assert.deepEqual(dataOf(await dig(web, "db")), docker);
      const { causes } = await explained(instance, "db");
      assert.deepEqual(
        causes.map(({ code, advice }) => [code, advice]),
        [["kept-apart", `look up "db.${OPEN}", where both are, too`]],
      );
    });

    test("the default mode answers the one that can, for names, aliases and links, in both families", async () => {
      const instance = await shared.under("answers: kernel");
      await instance.waitForKernel();
      for (const name of ["db", "store", "linked"]) {
        assert.deepEqual(dataOf(await dig(web, name)), [db.address(OPEN)], name);
        assert.deepEqual(dataOf(await dig(web, name, "AAAA")), [db.address6(OPEN)], name);
      }
      assert.deepEqual(dataOf(await dig(web, `db.${APART}`)), [db.address(APART)]);
      // The other way round, and whoever asks for itself.
      assert.deepEqual(dataOf(await dig(db, "web")), [web.address(OPEN)]);
      assert.deepEqual(dataOf(await dig(web, "web")), [web.address(APART)]);
      const { steps, causes } = await explained(instance, "db");
      assert.ok(
        steps.some(
          ({ why, isAnswer }) => isAnswer && why.includes(`(${NO_ICC}), so its addresses on "${OPEN}" are answered`),
        ),
        JSON.stringify(steps),
      );
      assert.deepEqual(
        causes.map(({ sentence }) => sentence),
        [
          `"db" is container db, which is also on network ${APART}, whose containers cannot reach each other (${NO_ICC})`,
        ],
      );
    });

    test("the kernel repeats it, and forgets it when the container leaves the other network", async () => {
      const instance = await shared.under("answers: kernel");
      await instance.waitForKernel();
      const byKernel = async (): Promise<number> => (await instance.container("web"))?.counters?.["kernel"] ?? 0;
      const counted = await byKernel();
      await waitFor("an answer by the kernel", async () => {
        assert.deepEqual(dataOf(await dig(web, "db", ...PLAIN)), [db.address(OPEN)]);
        return (await byKernel()) > counted;
      });
      await engine.docker("network", "disconnect", OPEN, "db");
      await waitFor(
        "the answer of Docker",
        async () => dataOf(await dig(web, "db", ...PLAIN))[0] === db.address(APART),
      );
      await engine.docker("network", "connect", "--alias", "store", OPEN, "db");
      await db.inspect();
      await waitFor("the other one", async () => dataOf(await dig(web, "db", ...PLAIN))[0] === db.address(OPEN));
    });

    test("where no other network has the container, the answer is Docker's, and explain and the doctor name the option", async () => {
      const instance = await shared.under();
      assert.deepEqual(dataOf(await dig(web, "lone")), [lone.address(APART)]);
      assert.equal(await isReached(web, lone.address(APART)), false);
      const { causes } = await explained(instance, "lone");
      assert.deepEqual(
        causes.map(({ sentence, fix }) => [sentence, fix]),
        [
          [
            `"lone" is container lone on network ${APART}, whose containers cannot reach each other (${NO_ICC}): it is not DNS that connecting fails`,
            `docker network connect ${OPEN} lone`,
          ],
        ],
      );
      const { stdout } = await dns11(["doctor", "--json", "-H", engine.host, "--state-dir", instance.stateDir]);
      const { machine } = JSON.parse(stdout) as Diagnosis;
      assert.deepEqual(
        machine.findings.filter(({ code }) => code === "networks").map(({ state, detail }) => [state, detail]),
        [["warning", `containers on "${APART}" resolve each other and cannot connect (${NO_ICC}): db, lone, web`]],
      );
    });

    test("explain says so without a running dns11, too", async () => {
      await shared.stop();
      const { stdout } = await dns11(["explain", "db", "--in", "web", "-H", engine.host]);
      assert.match(
        stdout.replaceAll(/\s+/g, " "),
        / why "db" is container db on network a-apart, .*look up "db\.b-open"/,
      );
    });

    const options = (...words: string[]): string[] => words.flatMap((word) => ["-o", word]);
    for (const { title, args, isApart } of [
      { title: "internal", args: ["--internal"], isApart: false },
      { title: "internal without icc", args: ["--internal", ...options(NO_ICC)], isApart: true },
      {
        title: "isolated",
        args: ["--internal", ...options(`${BRIDGE}.gateway_mode_ipv4=isolated`)],
        isApart: false,
      },
      { title: "routed", args: options(`${BRIDGE}.gateway_mode_ipv4=routed`), isApart: false },
      { title: "macvlan", args: ["-d", "macvlan", ...options("parent=d11a")], isApart: false },
      {
        title: "private macvlan",
        args: ["-d", "macvlan", ...options("parent=d11b", "macvlan_mode=private")],
        isApart: true,
      },
    ]) {
      test(`packets: ${title} ${isApart ? "keeps them apart" : "does not keep them apart"}`, async () => {
        const name = title.replaceAll(" ", "-");
        await createNetwork(engine, name, { args });
        const [one, two] = await Promise.all([
          runContainer(engine, { name: `${name}-1`, networks: [name] }),
          runContainer(engine, { name: `${name}-2`, networks: [name] }),
        ]);
        assert.equal(await isReached(one, two.address(name)), !isApart);
        const instance = await shared.under();
        const { causes } = await instance.client.explain({ container: one.name, name: two.name, type: "A" });
        assert.equal(
          causes.some(({ code }) => code === "kept-apart"),
          isApart,
          JSON.stringify(causes),
        );
      });
    }
  });
}
