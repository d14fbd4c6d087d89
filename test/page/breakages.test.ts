// Proves that each breakage other than a missing container (live.test.ts) appears on the page with its cause and fix, and is gone when it
// is mended: queries that do not arrive, in a container and in a KIND node; containers that are handed back; names that mislead; addresses
// of one family.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Locator, Page } from "playwright-core";

import { Shop } from "../docker/breakages/shop.ts";
import { dig } from "../support/client/dig.ts";
import { type Container, runContainer } from "../support/engine/container.ts";
import { type ShopPage, openShopPage } from "../support/page/shop-page.ts";
import { stdoutOf } from "../support/program/command.ts";
import { waitFor } from "../support/rig/wait.ts";

const ALL_WELL = "All names of containers resolve";
const DROP =
  "table inet fw { chain out { type filter hook output priority -250; udp dport 53 drop; tcp dport 53 drop; }; }";

let shop: Shop;
let view: ShopPage | undefined;
let web: Container;
let page: Page;
let errors: readonly string[];

before(async () => {
  shop = await Shop.open([], ["--kind", "auto"]);
  web = await shop.service("web", ["shop_front"]);
  view = await openShopPage(await shop.ui());
  ({ page, errors } = view);
});
after(async () => {
  await view?.[Symbol.asyncDispose]();
  await shop?.[Symbol.asyncDispose]();
});

async function untilVerdict(text: string): Promise<void> {
  await page.locator(".sentence strong", { hasText: text }).waitFor();
}

/** The entry of a failure, once it has all of these texts. */
async function untilFailure(...texts: readonly string[]): Promise<Locator> {
  let entry = page.locator("#failing > .failures > .failure");
  for (const hasText of texts) entry = entry.filter({ hasText });
  try {
    await entry.first().waitFor();
  } catch (cause) {
    throw new Error(await page.locator("#failing").innerText(), { cause });
  }
  return entry;
}

async function untilMended(): Promise<void> {
  await untilVerdict(ALL_WELL);
  await page.locator("#failing > .failures > :is(.failure-bad, .failure-warn)").first().waitFor({ state: "detached" });
}

async function untilEvent(text: string): Promise<void> {
  await page.locator(".event", { hasText: text }).first().waitFor();
}

function chip(state: string, name: string): Locator {
  return page.locator(`.chip-${state}`, { hasText: name });
}

/** What the drawer of a container says. */
async function drawerOf(name: string): Promise<string> {
  await page.locator(".chip", { hasText: name }).click();
  const drawer = page.locator(".drawer[open]", { hasText: "Resolving" });
  await drawer.waitFor();
  const text = await drawer.innerText();
  await page.keyboard.press("Escape");
  return text;
}

/** Its queries are dropped until the rule is gone. */
async function assertFirewallShown(container: Container): Promise<void> {
  stdoutOf(await container.enter("nft", [DROP]), "nft");
  await untilVerdict("1 container cannot use dns11");
  await untilFailure(container.name, "not seen", 'table inet "fw"');
  await untilEvent(`dns11 cannot serve ${container.name}`);
  await chip("fails", container.name).or(chip("unserved", container.name)).waitFor();
  assert.match(await drawerOf(container.name), /failed[\s\S]*table inet "fw"/);
  stdoutOf(await container.enter("nft", ["delete", "table", "inet", "fw"]), "nft");
  await untilMended();
  await chip("ok", container.name).waitFor();
}

test("a firewall that drops queries in a container, until it lets them through", async () => {
  await using walled = await shop.service("walled", ["shop_front"]);
  await chip("ok", walled.name).waitFor();
  await assertFirewallShown(walled);
});

test("the same in a KIND node", async () => {
  const labels = { "io.x-k8s.kind.cluster": "kind", "io.x-k8s.kind.role": "worker" };
  await using node = await shop.service("node", ["shop_front"], { keys: { labels } });
  const { containers } = await shop.instance.status();
  assert.notEqual(containers.find(({ name }) => name === node.name)?.node, undefined, "it is a node");
  await chip("ok", node.name).waitFor();
  await assertFirewallShown(node);
});

test("a container that leaves its only network is handed back, until it joins one again", async () => {
  await using loose = await shop.service("loose", ["shop_front"]);
  await chip("ok", loose.name).waitFor();
  await shop.engine.docker("network", "disconnect", "shop_front", loose.name);
  await untilEvent(`${loose.name} handed back to Docker's resolver`);
  await untilEvent(`${loose.name} left shop_front`);
  await shop.engine.docker("network", "connect", "shop_front", loose.name);
  await untilEvent(`${loose.name} joined shop_front`);
  await chip("ok", loose.name).waitFor();
});

test("one name of two projects on one network, until one of them is gone", async () => {
  await using _mine = await shop.service("store", ["shop_front"]);
  await using other = await shop.service("store", ["shop_front"], { project: "other" });
  await using outside = await runContainer(shop.engine, { name: "outside", networks: ["shop_front"] });
  await shop.instance.waitFor(outside.name, "attached");
  await dig(outside, "store");
  await untilVerdict("1 name needs attention");
  await untilFailure("store", "misleads", "other-store-1", "docker network disconnect shop_front other-store-1");
  await other.stop();
  await untilMended();
});

test("a paused container, until it goes on", async () => {
  await using paused = await shop.service("paused", ["shop_front"]);
  await shop.resolves(web, "paused");
  await shop.engine.docker("pause", paused.name);
  await untilFailure("paused", "docker unpause shop-paused-1");
  await shop.engine.docker("unpause", paused.name);
  await untilMended();
});

test("a name with an IPv6 address only, until its container has another one", async () => {
  const ipam = { config: [{ subnet: "fd16::/64" }] };
  shop.project.declare("six", { enable_ipv4: false, enable_ipv6: true, ipam });
  await using six = await shop.service("v6", ["shop_six"]);
  await using client = await shop.service("v6client", ["shop_six", "shop_front"]);
  await dig(client, "v6");
  await untilVerdict("1 name needs attention");
  await untilFailure(client.name, "v6", "NODATA", "IPv6");
  await shop.engine.docker("network", "connect", "--alias", "v6", "shop_front", six.name);
  await shop.resolves(client, "v6");
  await untilMended();
});

test("a resolv.conf that names another server, until the container starts again", async () => {
  await using edited = await shop.service("edited", ["shop_front"]);
  const write = "echo nameserver 10.255.255.2 >/etc/resolv.conf";
  stdoutOf(await edited.exec("sh", ["-c", write]), write);
  await waitFor("it to be seen", async () => {
    await dig(edited, "+time=1", "+tries=1", "@127.0.0.11", "web");
    const { unwatched } = await shop.failures(edited.name);
    return unwatched.length > 0 ? true : undefined;
  });
  await untilFailure(edited.name, "10.255.255.2", "docker restart shop-edited-1");
  await edited.restart();
  await untilMended();
  assert.deepEqual(errors, []);
});
