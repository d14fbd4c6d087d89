// Wildcard aliases and the label io.dns11.names on a real engine, which accepts such aliases: the two examples of a reverse
// proxy for a domain; labels of images do nothing; a creator that exaggerates harms nobody.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { dataOf, dig } from "../../support/client/dig.ts";
import { dns11 } from "../../support/program/dns11.ts";
import { SharedDns11 } from "../../support/program/shared-dns11.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { ensureImage, labelledImage } from "../../support/engine/image.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";

let engine: Engine;
let upstream: Upstream;
let proxy: Container;
let app: Container;
let far: Container;
const shared = new SharedDns11(() => engine);

before(async () => {
  engine = await startEngine({ resolvConf: "nameserver 127.0.0.1\n" });
  upstream = await startUpstream(engine);
  for (const name of ["front", "back"]) await createNetwork(engine, name);
  const labels = { "io.dns11.names": "api.shop.test *.apps.test" };
  proxy = await runContainer(engine, {
    name: "proxy",
    networks: [{ name: "front", aliases: ["*.shop.test"] }],
    labels,
  });
  await runContainer(engine, { name: "web", networks: [{ name: "front", aliases: ["web.shop.test"] }] });
  app = await runContainer(engine, { name: "app", networks: ["front"] });
  far = await runContainer(engine, { name: "far", networks: ["back"] });
});
after(async () => {
  await shared[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

test("a proxy stands for the names below a domain, for dig and for a C library, and nothing of it goes upstream", async () => {
  const instance = await shared.under();
  const address = proxy.address("front");
  for (const name of ["any.shop.test", "A.B.shop.test", "api.shop.test", "x.apps.test"]) {
    assert.deepEqual(dataOf(await dig(app, name)), [address], name);
    for (const type of ["AAAA", "HTTPS", "TXT"]) {
      const { status, answer } = await dig(app, name, type);
      assert.deepEqual([status, answer.length], ["NOERROR", 0], `${name} ${type}`);
    }
  }
  assert.notDeepEqual(dataOf(await dig(app, "web.shop.test")), [address], "an exact name comes first");
  const { stdout } = await app.exec("ping", ["-c", "1", "-W", "2", "site.shop.test"]);
  assert.match(stdout, new RegExp(`PING site\\.shop\\.test \\(${address}\\)`));
  const asked = (await upstream.queries()).filter(({ name }) => /shop\.test$|apps\.test$/i.test(name));
  assert.deepEqual(asked, []);
  assert.equal((await dig(far, "any.shop.test")).status, "NXDOMAIN", "another network");
  const where = ["-H", engine.host, "--state-dir", instance.stateDir];
  const { stdout: explained } = await dns11(["explain", "any.shop.test", "--in", "app", "-v", ...where]);
  assert.match(
    explained,
    /below the wildcard "\*\.shop\.test" of a container on network "front"; answered with its addresses/,
  );
});

test("in strict mode the alias is a name like any other", async () => {
  await shared.under("strict: true");
  assert.equal((await dig(app, "any.shop.test")).status, "NXDOMAIN");
  assert.deepEqual(dataOf(await dig(app, "*.shop.test")), [proxy.address("front")]);
});

test("a label of an image gives no names unless the operator trusts images", async () => {
  const image = await ensureImage(engine, labelledImage("image-of-names", { "io.dns11.names": "image.test" }));
  await using _ = await runContainer(engine, { name: "labelled", networks: ["front"], image });
  const instance = await shared.under();
  assert.equal((await dig(app, "image.test")).status, "NXDOMAIN");
  const { warning } = (await instance.container("labelled")) ?? assert.fail();
  assert.match(warning ?? "", /label io\.dns11\.names of the image is ignored, .*trust-image-labels: true/);
  await shared.under("trust-image-labels: true");
  assert.equal((await dig(app, "image.test")).answer.length, 1);
});

test("a creator that claims everything, or too much, is reported, and others keep resolving", async () => {
  const many = Array.from({ length: 5_000 }, (_, n) => `*.n${n}.test`).join(",");
  const labels = { "io.dns11.names": `*,*.com,*.ok.test,${many}` };
  await using _ = await runContainer(engine, { name: "greedy", networks: [{ name: "back", aliases: ["*"] }], labels });
  const instance = await shared.under();
  const { warning = "" } = (await instance.container("greedy")) ?? assert.fail();
  assert.match(warning, /invalid label io\.dns11\.names: "\*" is ignored/);
  assert.match(warning, /label io\.dns11\.names has too many names: the limit is 64 names/);
  assert.match(warning, /invalid alias on network "back": "\*" is ignored/);
  assert.ok(warning.length < 1_000, warning);
  assert.deepEqual(dataOf(await dig(app, "name7.ok.test")), ["192.0.2.7"], "another network keeps its names");
  assert.notDeepEqual(dataOf(await dig(far, "x.n5.test")), []);
  assert.equal((await dig(far, "x.n4999.test")).status, "NXDOMAIN");
});
