// What the page shows, from a Compose project on a real engine: events as they happen, containers and networks, who sees whom,
// histories, cached names and a limited stream of queries.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import type { CacheEntriesReport } from "../../src/api/cache.ts";
import type { ContainersReport } from "../../src/api/containers.ts";
import type { EventKind, EventReport } from "../../src/api/events.ts";
import type { ControlClient } from "../../src/api/control-client.ts";
import { locateControl } from "../../src/api/locate.ts";
import type { Container } from "../support/engine/container.ts";
import { dig } from "../support/client/dig.ts";
import { getJson } from "../support/program/unix-http.ts";
import { waitFor } from "../support/rig/wait.ts";
import { startUpstream } from "../support/servers/upstream.ts";
import { Shop } from "./failing-names/shop.ts";

let shop: Shop;
let client: ControlClient;
let socketPath: string;
let web: Container;
let db: Container;

before(async () => {
  shop = await Shop.open(["shop_front", "shop_back"]);
  web = await shop.service("web", ["shop_front"]);
  await shop.service("api", ["shop_front", "shop_back"]);
  db = await shop.service("db", ["shop_back"]);
  client = await shop.client();
  socketPath = await locateControl(shop.instance.stateDir, shop.engine.host);
});
after(async () => await shop[Symbol.asyncDispose]());

async function eventOf(kind: EventKind, about: Partial<EventReport>, since = 0): Promise<EventReport> {
  const matches = (event: EventReport): boolean =>
    event.kind === kind &&
    event.number > since &&
    Object.entries(about).every(([key, value]) => event[key as keyof EventReport] === value);
  return await waitFor(`${kind} of ${JSON.stringify(about)}`, async () =>
    (await client.events(500)).events.find(matches),
  );
}

test("a container that is started, connected, disconnected and ended is a row of events, with its place and exit code", async () => {
  const place = { container: "shop-cron-1", project: "shop", service: "cron" };
  await shop.engine.docker("network", "create", "later");
  await eventOf("network-created", { network: "later" });
  const cron = await shop.service("cron", ["shop_front"]);
  const started = await eventOf("container-started", place);
  await eventOf("attached", place, started.number);
  await shop.engine.docker("network", "connect", "later", cron.name);
  await eventOf("network-joined", { ...place, network: "later" });
  await shop.engine.docker("network", "disconnect", "later", cron.name);
  await eventOf("network-left", { ...place, network: "later" });
  await shop.engine.docker("network", "rm", "later");
  await eventOf("network-removed", { network: "later" });
  await shop.engine.docker("kill", cron.name);
  await eventOf("container-died", { ...place, exitCode: 137 });
  const { events } = await client.events(500);
  assert.deepEqual(
    events.filter(({ container, kind }) => container === web.name && kind === "container-started").length,
    1,
    "it started while dns11 ran",
  );
  await cron[Symbol.asyncDispose]();
});

test("containers, networks and the matrix show who can see whom, also what has ended", async () => {
  const all = await client.containers();
  const { state, dns, networks } = all.containers.find(({ name }) => name === web.name) ?? assert.fail();
  assert.deepEqual([state, dns, networks[0]?.network], ["running", "attached", "shop_front"]);
  assert.deepEqual(networks[0]?.names.slice(0, 2), ["shop-web-1", "web"]);
  const one = (await getJson(socketPath, "/v1/containers?container=web")) as ContainersReport;
  assert.deepEqual(one.containers[0]?.resolvConf?.servers, ["127.0.0.11"]);
  const front = (await client.networks()).networks.find(({ name }) => name === "shop_front") ?? assert.fail();
  assert.equal(front.driver, "bridge");
  assert.match(front.subnets[0]?.subnet ?? "", /^\d+\.\d+\.\d+\.\d+\/\d+$/);
  assert.deepEqual(
    front.members.map(({ container }) => container),
    ["shop-api-1", "shop-web-1"],
  );
  const cellOf = async (container: string, service: string): Promise<number | undefined> => {
    const { columns, rows } = await client.matrix();
    const at = columns.findIndex((column) => column.service === service);
    return rows.find((row) => row.container === container)?.cells[at];
  };
  assert.deepEqual([await cellOf(web.name, "api"), await cellOf(web.name, "db")], [1, 0]);
  await shop.engine.docker("network", "connect", "shop_back", web.name);
  await waitFor("web to see db", async () => ((await cellOf(web.name, "db")) === 1 ? true : undefined));
  await shop.engine.docker("network", "disconnect", "shop_back", web.name);
  await waitFor("web to see db no more", async () => ((await cellOf(web.name, "db")) === 0 ? true : undefined));
});

test("a server that goes down and comes back is two events, and its history has both; rates count queries", async () => {
  const { last } = await client.events(0);
  await dig(web, "first.test");
  await shop.upstream[Symbol.asyncDispose]();
  await waitFor("the server to be down", async () => {
    await dig(web, "+time=1", "+tries=1", `d${Date.now()}.test`);
    return (await client.events(500)).events.find(({ kind, number }) => kind === "server-down" && number > last);
  });
  await waitFor("a sample of it", async () => {
    const { servers } = await client.history();
    return servers.find(({ states }) => states.at(-1) === "down");
  });
  shop.upstream = await startUpstream(shop.engine);
  await waitFor("the server to be up", async () => {
    await dig(web, "+time=1", "+tries=1", `u${Date.now()}.test`);
    return (await client.events(500)).events.find(({ kind, number }) => kind === "server-up" && number > last);
  });
  await waitFor("samples of queries", async () => {
    const { rates } = await client.history();
    const total = (counts: readonly number[]): number => counts.reduce((sum, count) => sum + count, 0);
    return total(rates.queries) > 0 && total(rates.forwarded) > 0 ? true : undefined;
  });
});

test("cached names are listed, with the container that queried first", async () => {
  await waitFor("a cached name", async () => {
    await dig(db, "cached.ok.test");
    const { entries } = (await getJson(socketPath, "/v1/cache/entries?name=cached*")) as CacheEntriesReport;
    return entries.find(({ container, answers }) => container === db.name && answers.length > 0);
  });
});
