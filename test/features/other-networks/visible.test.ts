/**
 * Names across networks (`visible`): NAME.NETWORK in containers that are not on that network, queried with dig from inside.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { dataOf, dig } from "../../support/client/dig.ts";
import { SharedDns11 } from "../../support/program/shared-dns11.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { ensureImage, labelledImage } from "../../support/engine/image.ts";
import { type Suite, inTurn } from "../../support/engine/suite.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";

const PROJECT = "com.docker.compose.project";
const SUITES = inTurn<Suite>(["bookworm", "forky"]);

for (const suite of SUITES) {
  describe(`names across networks, Docker of ${suite}`, () => {
    let engine: Engine;
    let upstream: Upstream;
    let client: Container;
    let member: Container;
    let claimer: Container;
    let web: Container;
    let inside: Container;
    const shared = new SharedDns11(() => engine);

    before(async () => {
      engine = await startEngine({ suite });
      upstream = await startUpstream(engine);
      await createNetwork(engine, "n1");
      await createNetwork(engine, "back", { args: ["--label", `${PROJECT}=shop`] });
      await createNetwork(engine, "dark", { internal: true });
      client = await runContainer(engine, { name: "client", networks: ["n1"] });
      member = await runContainer(engine, { name: "member", networks: ["n1"], labels: { [PROJECT]: "shop" } });
      const image = await ensureImage(engine, labelledImage("claiming", { [PROJECT]: "shop" }));
      claimer = await runContainer(engine, { name: "claimer", networks: ["n1"], image });
      web = await runContainer(engine, { name: "web", networks: [{ name: "back", aliases: ["www"] }] });
      inside = await runContainer(engine, { name: "inside", networks: ["dark"] });
    });
    after(async () => {
      await shared[Symbol.asyncDispose]();
      await upstream[Symbol.asyncDispose]();
      await engine[Symbol.asyncDispose]();
    });

    const web4 = (): string => web.address("back");

    test("with all: A, AAAA and PTR of other networks, never of internal ones or for those who are there alone", async () => {
      await shared.under("visible: all");
      for (const name of ["web.back", "WWW.back"]) assert.deepEqual(dataOf(await dig(client, name)), [web4()], name);
      assert.deepEqual(dataOf(await dig(client, "+tcp", "web.back")), [web4()]);
      assert.equal((await dig(client, "web.back", "AAAA")).status, "NOERROR");
      assert.deepEqual(dataOf(await dig(client, "-x", web4())), ["web.back."]);
      assert.deepEqual(dataOf(await dig(client, "client.n1")), [client.address("n1")]);
      assert.equal((await dig(client, "inside.dark")).status, "NXDOMAIN");
      assert.notEqual((await dig(client, "web.test")).status, "NOERROR");
      assert.deepEqual(dataOf(await dig(inside, "web.back")), []);
      assert.deepEqual(dataOf(await dig(inside, "inside")), [inside.address("dark")]);
    });

    test("with project: those of the own project alone, which an image cannot claim", async () => {
      await shared.under("visible: project");
      assert.deepEqual(dataOf(await dig(member, "web.back")), [web4()]);
      for (const each of [client, claimer]) assert.equal((await dig(each, "web.back")).status, "NXDOMAIN", each.name);
    });

    for (const mode of ["strict: false", "strict: true"]) {
      test(`by default they are forwarded, with ${mode}`, async () => {
        await shared.under(mode);
        await upstream.forget();
        assert.equal((await dig(member, "web.back")).status, "NXDOMAIN");
        assert.notEqual((await upstream.queriesFor("web.back")).length, 0);
      });
    }
  });
}
