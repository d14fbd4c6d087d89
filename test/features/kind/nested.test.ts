/**
 * What runs inside a container: an engine of its own, and its builds. With the setting `nested` they resolve their siblings as the inner engine
 * has them, then the names of the outer container, also those without a dot; the inner engine has no settings for it.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { buildStep } from "../../support/engine/build.ts";
import { dataOf, dig } from "../../support/client/dig.ts";
import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { type InnerEngine, startInnerEngine, whyNoMachineInside } from "../../support/engine/inner-engine.ts";
import { type Dns11, dns11, startDns11 } from "../../support/program/dns11.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";

const NESTED = { settings: { nested: "name=dind" } };
const DOCKERS = "nameserver 127.0.0.11\noptions ndots:0\n";

const skip = await whyNoMachineInside();
let engine: Engine;
let upstream: Upstream;
let outer: Container;
let inner: InnerEngine;

before(async () => {
  if (skip !== false) return;
  engine = await startEngine({ suite: "bookworm" });
  upstream = await startUpstream(engine);
  await createNetwork(engine, "outside");
  outer = await runContainer(engine, { name: "outer", networks: ["outside"] });
  inner = await startInnerEngine(engine, { name: "dind", networks: ["outside"] });
  await createNetwork(inner, "inside");
});
after(async () => {
  if (skip !== false) return;
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

async function resolvConf(): Promise<string> {
  return (await inner.exec("cat", ["/etc/resolv.conf"])).stdout;
}

async function untilNested(instance: Dns11): Promise<void> {
  await waitFor("dind to be nested", async () =>
    (await instance.container("dind"))?.node?.state === "working" ? true : undefined,
  );
}

const command = async (instance: Dns11, ...args: string[]): Promise<string> =>
  (await dns11([...args, "-H", engine.host, "--state-dir", instance.stateDir])).stdout;

/** By the resolver of its C library. */
async function resolves(container: Container, name: string): Promise<string> {
  return (await container.exec("nslookup", [name])).stdout;
}

describe("with nested", { skip }, () => {
  let instance: Dns11;
  let db: Container;
  let app: Container;
  let plain: Container;
  before(async () => {
    instance = await startDns11(engine, NESTED);
    await untilNested(instance);
    db = await runContainer(inner, { name: "db", networks: ["inside"] });
    app = await runContainer(inner, { name: "app", networks: ["inside"] });
    plain = await runContainer(inner, { name: "plain" });
  });
  after(async () => {
    await instance.stop();
    await instance[Symbol.asyncDispose]();
    for (const each of [db, app, plain]) await each.remove();
  });

  test("a container of an inner network resolves its siblings, then outer names with a dot and without", async () => {
    assert.deepEqual(dataOf(await dig(app, "db")), [db.address("inside")]);
    for (const name of ["outer", "outer.outside"])
      assert.deepEqual(dataOf(await dig(app, name)), [outer.address("outside")], name);
    assert.deepEqual(dataOf(await dig(app, "n1.ok.test")), ["192.0.2.1"]);
    await using twin = await runContainer(inner, { name: "outer", networks: ["inside"] });
    assert.deepEqual(dataOf(await dig(app, "outer")), [twin.address("inside")], "a sibling comes first");
  });

  test("a container on the inner default bridge, and a build inside, resolve outer names", async () => {
    const address = new RegExp(`Address.*${outer.address("outside")}`);
    assert.match(await resolves(plain, "outer"), address);
    assert.match(await resolves(plain, "n2.ok.test"), /192\.0\.2\.2/);
    const output = await buildStep(inner, "nslookup outer; nslookup n3.ok.test");
    assert.match(output, address);
    assert.match(output, /192\.0\.2\.3/);
  });

  test("ps and explain say so, and the outer container resolves as before", async () => {
    assert.match(await command(instance, "ps"), /^dind +ok .*answers what runs inside, too/m);
    const explained = await command(instance, "explain", "outer", "dind");
    assert.match(explained, new RegExp(outer.address("outside")));
    assert.doesNotMatch(explained, /programs do not use dns11/);
    assert.deepEqual(dataOf(await dig(inner, "outer")), [outer.address("outside")]);
    // A builder in the container gives its steps the servers of this file that are not on loopback.
    const [, server = ""] = /^nameserver (\S+)$/m.exec(await resolvConf()) ?? [];
    assert.deepEqual(dataOf(await dig(inner, `@${server}`, "outer")), [outer.address("outside")]);
    assert.deepEqual(dataOf(await dig(inner, `@${server}`, "+tcp", "n4.ok.test")), ["192.0.2.4"]);
    // Neighbours of the outer container get nothing there.
    const { status } = await dig(outer, `@${inner.container.address("outside")}`, "outer", "+time=1");
    assert.equal(status, "");
  });
});

test("a stop restores resolv.conf to the byte, and so does cleanup after a kill", { skip }, async () => {
  const original = await resolvConf();
  assert.equal(original, DOCKERS);
  await using first = await startDns11(engine, NESTED);
  await untilNested(first);
  assert.match(await resolvConf(), /^nameserver 172\.[\d.]+\n$/);
  assert.equal(await first.stop(), 0);
  assert.equal(await resolvConf(), original);
  await using second = await startDns11(engine, { ...NESTED, stateDir: first.stateDir });
  await untilNested(second);
  process.kill(second.pid, "SIGKILL");
  await second.ended();
  await command(second, "cleanup");
  assert.equal(await resolvConf(), original);
});
