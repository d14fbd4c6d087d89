// What the page shows, from a Compose project on a real engine: events as they happen, containers and networks, who sees whom,
// histories, cached names, and `dns11 ui` itself: its page, streams, checks and snapshots.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { runInNewContext } from "node:vm";

import type { CacheEntriesReport } from "../../src/api/cache.ts";
import type { ContainersReport } from "../../src/api/containers.ts";
import type { EventKind, EventReport } from "../../src/api/events.ts";
import type { ControlClient } from "../../src/api/control-client.ts";
import type { DoctorLine } from "../../src/base/model/finding.ts";
import { locateControl } from "../../src/api/locate.ts";
import type { Explanation } from "../../src/api/names.ts";
import type { QueryReport, SkippedReport } from "../../src/api/queries.ts";
import type { Snapshot } from "../../src/api/snapshot.ts";
import type { Status } from "../../src/api/status.ts";
import type { Container } from "../support/engine/container.ts";
import { dig } from "../support/client/dig.ts";
import { getJson } from "../support/program/unix-http.ts";
import { waitFor } from "../support/rig/wait.ts";
import { startUpstream } from "../support/servers/upstream.ts";
import { Shop } from "./breakages/shop.ts";

let shop: Shop;
let client: ControlClient;
let socketPath: string;
let web: Container;
let db: Container;

before(async () => {
  shop = await Shop.open();
  web = await shop.service("web", ["shop_front"]);
  await shop.service("api", ["shop_front", "shop_back"]);
  db = await shop.service("db", ["shop_back"]);
  client = shop.client;
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

test("a container that is started, connected, disconnected, killed, or ends by itself is a row of events, with its place and exit code", async () => {
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
  const killed = await eventOf("container-stopped", { ...place, exitCode: 137 });
  await shop.engine.docker("rm", cron.name);
  // One that ended at once would not be known before, on a busy machine.
  const command = "sh -c 'while [ ! -e /end ]; do sleep 0.1; done; exit 3'";
  const failing = await shop.service("cron", ["shop_front"], { keys: { command } });
  await eventOf("attached", place, killed.number);
  await failing.exec("touch", ["/end"]);
  await eventOf("container-died", { ...place, exitCode: 3 }, killed.number);
  const { events } = await client.events(500);
  assert.deepEqual(
    events.filter(({ container, kind }) => container === web.name && kind === "container-started").length,
    1,
    "it started while dns11 ran",
  );
  await failing[Symbol.asyncDispose]();
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

/** The values of a stream, a line each, until `isLast`. */
async function readLines<T>(response: Response, isLast: (value: T) => boolean): Promise<T[]> {
  const values: T[] = [];
  let rest = "";
  for await (const chunk of (response.body ?? assert.fail()).pipeThrough(new TextDecoderStream())) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    values.push(...lines.map((line) => JSON.parse(line) as T));
    if (values.some(isLast)) return values;
  }
  return assert.fail(`the stream ended: ${JSON.stringify(values)}`);
}

test("dns11 ui serves the page and what it needs, and ends with a signal", async () => {
  await using ui = await shop.ui();
  const page = await ui.fetch("/", { token: "" });
  assert.equal(page.status, 200);
  const html = await page.text();
  assert.match(html, /<script src="app\.js" defer>/);
  assert.equal((await ui.fetch("/app.js", { token: "" })).status, 200);
  assert.equal((await ui.fetch("/v1/status", { token: "" })).status, 401);
  const { containers } = (await (await ui.fetch("/v1/status")).json()) as Status;
  assert.ok(containers.some(({ name }) => name === web.name));
  assert.equal((await ui.fetch("/v1/reload", { method: "POST" })).status, 404);
  const explained = await ui.fetch("/v1/explain", {
    method: "POST",
    body: JSON.stringify({ container: web.name, name: "api" }),
  });
  assert.equal(((await explained.json()) as Explanation).reply?.rcode, "NOERROR");
  const taken = await shop.command("ui", "--port", ui.port, "--no-open");
  assert.deepEqual([taken.code, taken.stdout], [1, ""]);
  assert.match(taken.stderr, /^dns11: Port \d+ of 127\.0\.0\.1 is in use\n {2}Choose another one with --port/);
  assert.equal(await ui.end("SIGINT"), 0);
});

test("queries and events are streamed to the page, as many as it wants", async () => {
  await using ui = await shop.ui();
  const events = await ui.fetch("/v1/events?follow=true&last=500");
  const past = await readLines<EventReport>(events, ({ kind }) => kind === "server-up");
  assert.ok(past.length > 3);
  const queries = await ui.fetch(`/v1/queries?follow=true&perSecond=2&container=${web.name}`);
  let isRead = false;
  const asking = (async () => {
    while (!isRead) await dig(web, "+tries=1", ...Array.from({ length: 8 }, (_, at) => `q${at}.ok.test`));
  })();
  const lines = await readLines<QueryReport | SkippedReport>(queries, (line) => "skipped" in line);
  isRead = true;
  await asking;
  assert.ok(lines.filter((line) => "name" in line).length > 0);
});

test("the checks are a stream of findings and then the problems, of the containers that are chosen", async () => {
  await using ui = await shop.ui();
  const check = async (container: string): Promise<DoctorLine[]> => {
    const response = await ui.fetch("/v1/doctor", { method: "POST", body: JSON.stringify({ container }) });
    const text = await response.text();
    return text.split("\n").flatMap((line) => (line === "" ? [] : (JSON.parse(line) as DoctorLine)));
  };
  const lines = await check(db.name);
  assert.ok("problems" in (lines.at(-1) ?? {}), JSON.stringify(lines.at(-1)));
  const subjects = new Set(lines.flatMap((line) => ("subject" in line ? line.subject : [])));
  assert.deepEqual([...subjects], ["Docker host", db.name]);
  const last = (await check("--fix")).at(-1) ?? assert.fail();
  assert.match("error" in last ? last.error : "", /No running container or service named "--fix"/);
});

test("a snapshot is a folder with what the page shows, with names only if they are wanted", async () => {
  const folder = mkdtempSync(join(tmpdir(), "d11-static-"));
  try {
    const snapshotOf = async (...args: string[]): Promise<Snapshot> => {
      const { code, stderr } = await shop.command("ui", "--static", join(folder, "page"), ...args);
      assert.equal(code, 0, stderr);
      const scope: { dns11Snapshot?: Snapshot } = {};
      runInNewContext(`globalThis = this; ${readFileSync(join(folder, "page/data.js"), "utf8")}`, scope);
      return scope.dns11Snapshot ?? assert.fail();
    };
    const redacted = await snapshotOf();
    assert.equal(redacted.errors.join(), "");
    const text = JSON.stringify(redacted);
    for (const name of ["shop", "db", "q0"]) assert.ok(!new RegExp(`\\b${name}\\b`).test(text), name);
    assert.ok(redacted.upstreams?.upstreams.some(({ server }) => server === "host(127.0.0.1)"));
    assert.ok((redacted.containers?.containers.length ?? 0) >= 3 && (redacted.queries?.queries.length ?? 0) > 0);
    assert.ok(redacted.matrix?.rows.some(({ cells }) => cells.includes(0) && cells.includes(1)));
    const whole = await snapshotOf("--no-redact");
    assert.ok(whole.containers?.containers.some(({ name }) => name === web.name));
    writeFileSync(join(folder, "page/notes.txt"), "mine");
    const refused = await shop.command("ui", "--static", join(folder, "page"));
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /is not an earlier snapshot of yours\n {2}Choose a folder/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
