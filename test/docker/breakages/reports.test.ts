// Proves what reports of failures say beside the cause and its fix: what failed while servers were down stays what it was, a loop of ends
// and starts is the same in both states, and a container whose programs do not ask dns11 is told so first.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";

import { dig } from "../../support/client/dig.ts";
import { type Container, runContainer } from "../../support/engine/container.ts";
import { stdoutOf } from "../../support/program/command.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { startUpstream } from "../../support/servers/upstream.ts";
import { Shop, unwrapped } from "./shop.ts";

let shop: Shop;
let web: Container;

before(async () => {
  shop = await Shop.open();
  web = await shop.service("web", ["shop_front"]);
});
after(async () => await shop[Symbol.asyncDispose]());

test("what failed while all servers were down is not said to be broken afterwards", async () => {
  await using client = await shop.service("outside", ["shop_front"]);
  await shop.upstream[Symbol.asyncDispose]();
  try {
    await shop.causeIn(client.name, "upstreams-down", async () => await dig(client, "+time=1", "b.ok.test"));
  } finally {
    shop.upstream = await startUpstream(shop.engine);
  }
  await shop.resolves(web, "c.ok.test");
  const only = (await shop.failures(client.name)).failures.find(({ name }) => name === "b.ok.test");
  assert.deepEqual([only?.cause?.code, only?.earlier], ["upstreams-down", "recovered"], "as it was");
  const { stdout } = await shop.command("doctor", client.name);
  assert.doesNotMatch(stdout, /does not resolve|may be broken/);
});

test("a container that ends and is started again, over and over, in both states", async () => {
  const keys = { restart: "always" };
  await using crashing = await shop.service("crash", ["shop_front"], { isShort: true, keys });
  const seen = new Set<string>();
  // Docker waits for longer each time, so that in the end both states last.
  await waitFor("its cause while it runs and while it does not", async () => {
    const { stdout } = await shop.command("explain", "crash", "--in", web.name);
    const text = unwrapped(stdout);
    if (text.includes("which ends and is started again, over and over")) {
      assert.ok(text.includes("docker logs --tail 20 shop-crash-1"), text);
      seen.add(text.includes("NXDOMAIN") ? "waits" : "runs");
    }
    if (seen.size === 2) return true;
    const { Pid: pid } = (await crashing.inspect()).State;
    if (pid > 0) await shop.engine.exec("kill", ["-9", String(pid)]);
    return undefined;
  });
});

test("a resolv.conf that names another server: explain asks as programs do", async () => {
  await using client = await shop.service("edited", ["shop_front"]);
  const write = "echo nameserver 127.0.0.2 >/etc/resolv.conf";
  stdoutOf(await client.exec("sh", ["-c", write]), write);
  const explained = unwrapped((await shop.command("explain", "web", "--in", client.name)).stdout);
  assert.match(
    explained,
    /^web \(A\) in shop-edited-1: no reply after .* why resolv\.conf of shop-edited-1 lists 127\.0\.0\.2/,
  );
  assert.doesNotMatch(explained, /resolves now/);
});

test("a mounted resolv.conf that names another server: ps says that dns11 is not asked", async () => {
  const file = join(dirname(shop.project.file), "resolv.conf");
  writeFileSync(file, "nameserver 10.255.255.3\n");
  const keys = { volumes: [`${file}:/etc/resolv.conf:ro`] };
  await using client = await shop.service("mounted", ["shop_front"], { keys });
  assert.match((await shop.command("ps")).stdout, /^shop +mounted +shop-mounted-1 +not asked +shop_front/m);
  await dig(client, "web");
  await waitFor("it to have asked", async () =>
    /shop-mounted-1 +ok /.test((await shop.command("ps")).stdout) ? true : undefined,
  );
});

test("a container in the namespace of another one: doctor says so first", async () => {
  await using sidecar = await runContainer(shop.engine, {
    name: "sidecar",
    args: ["--network", `container:${web.id}`],
  });
  const { code, stdout } = await shop.command("doctor", sidecar.name);
  assert.equal(code, 0, stdout);
  assert.match(
    unwrapped(stdout),
    /^NOTE sidecar: not served by dns11 \(shares-namespace\): it shares the network namespace of shop-web-1, .*: dns11 doctor shop-web-1 no problem found \(/,
  );
});
