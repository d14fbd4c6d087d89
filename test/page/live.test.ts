// Proves that the page shows a real engine's containers as they are: each breakage appears with its cause and fix and is gone when it is
// mended; every panel has what it is for; names of the wire stay text; a page of another origin gets nothing, nor does a service
// worker; and the page goes on when dns11 is started again.

import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { connect } from "dns11/client";
import type { Browser, Locator, Page } from "playwright-core";

import { Shop } from "../docker/breakages/shop.ts";
import { dig } from "../support/client/dig.ts";
import { type Container, runContainer } from "../support/engine/container.ts";
import { errorsOf, openPage } from "../support/page/browser.ts";
import { type ShopPage, openShopPage } from "../support/page/shop-page.ts";
import type { UiCommand } from "../support/program/ui-command.ts";
import { startDns11 } from "../support/program/dns11.ts";
import { makeFolder } from "../support/rig/folder.ts";
import { waitFor } from "../support/rig/wait.ts";
import { startUpstream } from "../support/servers/upstream.ts";

const ALL_WELL = "All names of containers resolve";

let shop: Shop;
let view: ShopPage | undefined;
let api: Container;
let db: Container;
let ui: UiCommand;
let browser: Browser;
let page: Page;
let errors: readonly string[];

before(async () => {
  const config = join(makeFolder("live-egress"), "dns11.yaml");
  writeFileSync(config, "version: 1\negress: true\n");
  shop = await Shop.open([], ["--config", config]);
  api = await shop.service("api", ["shop_front"]);
  await shop.service("web", ["shop_front"]);
  db = await shop.service("db", ["shop_back"]);
  view = await openShopPage(await shop.ui());
  ({ ui, browser, page, errors } = view);
});
after(async () => {
  await view?.[Symbol.asyncDispose]();
  await shop?.[Symbol.asyncDispose]();
});

function verdict(): Locator {
  return page.locator(".sentence strong");
}

async function untilVerdict(text: string): Promise<void> {
  await verdict().filter({ hasText: text }).waitFor();
}

/** The entry of a failure, once it has this text. */
async function untilFailure(text: string, fix: string): Promise<Locator> {
  const entry = page.locator("#failing > .failures > .failure", { hasText: text });
  await entry.filter({ hasText: fix }).waitFor();
  return entry;
}

/** Looks up a name in the container until it resolves, as a program does that tries again; then the page is well. */
async function untilMended(container: Container, name: string): Promise<void> {
  await shop.resolves(container, name);
  await untilVerdict(ALL_WELL);
  await page.locator("#failing > .failures > .failure-bad").waitFor({ state: "detached" });
}

test("without failures all is well, and the token is not in the address", async () => {
  await untilVerdict(ALL_WELL);
  await page.locator(".connection.is-live").waitFor();
  assert.equal(new URL(page.url()).hash, "");
  await page.reload();
  await page.locator(".connection.is-live").waitFor();
  for (const chip of ["shop-api-1", "shop-web-1", "shop-db-1"])
    await page.locator(".chip", { hasText: chip }).waitFor();
  await page.locator(".event", { hasText: "dns11 answers shop-api-1" }).waitFor();
});

test("a service that is not on the network of its client, until it is connected", async () => {
  await dig(api, "db");
  const fix = "docker network connect --alias api shop_back shop-api-1";
  const entry = await untilFailure("shop-db-1", fix);
  assert.match(await entry.innerText(), /NXDOMAIN/);
  await untilVerdict("1 name fails in 1 container");
  await page.getByRole("button", { name: "shop-api-1 looks up db, and it fails" }).waitFor();
  await page.locator(".chip-fails", { hasText: "shop-api-1" }).waitFor();
  assert.equal(await page.locator(".fail-arrow").count(), 1);
  await page.getByRole("img", { name: "shop-api-1 looks up db, and it fails" }).waitFor();
  assert.deepEqual(await page.locator(".fail-label").allTextContents(), ["db"]);
  await page.waitForFunction("document.title.includes('1 name fails')");
  await shop.run(fix);
  await untilMended(api, "db");
  await page.getByRole("button", { name: "shop-api-1 resolves db to 1 container" }).waitFor();
  await page.locator(".event", { hasText: "shop-api-1 joined shop_back" }).waitFor();
});

test("a service that is stopped, until it is started", async () => {
  await db.stop();
  await page.locator(".chip-stopped", { hasText: "shop-db-1" }).waitFor();
  await dig(api, "db");
  await untilFailure("exited with code", "docker start shop-db-1");
  await db.start();
  await shop.instance.waitFor(db.name, "attached");
  await untilMended(api, "db");
  await page.locator(".chip-ok", { hasText: "shop-db-1" }).waitFor();
});

test("a typo, with the name that is meant", async () => {
  await dig(api, "wbe");
  const entry = await untilFailure("wbe", 'Fix: change the name to "web"');
  await entry.getByRole("button", { name: "Mute" }).click();
  await page.getByText("Show 1 muted").waitFor();
});

test("the only nameserver is down, until it is up", async () => {
  await shop.upstream[Symbol.asyncDispose]();
  await waitFor("the server to be down", async () => {
    await dig(api, `a${Math.random()}.example`);
    return (await page.locator(".server-down").count()) === 1 ? true : undefined;
  });
  await untilVerdict("fail");
  shop.upstream = await startUpstream(shop.engine);
  await waitFor("the server to be up", async () => {
    await dig(api, `b${Math.random()}.example`);
    return (await page.locator(".server-up").count()) === 1 ? true : undefined;
  });
  await page
    .locator(".event", { hasText: /^.*nameserver .* is up/ })
    .first()
    .waitFor();
});

test("any name is explained, with the way of its query", async () => {
  const ask = page.locator("#ask");
  await ask.getByLabel("In").selectOption("shop-web-1");
  await page.locator("#ask-name").fill("db");
  await ask.getByRole("button", { name: "Explain" }).click();
  await ask.locator(".station-fail, .station-answer").waitFor();
  assert.match(
    await ask.locator(".answer").innerText(),
    /NXDOMAIN[\s\S]*docker network connect --alias web shop_back shop-web-1/,
  );
  await page.getByRole("button", { name: "shop-web-1 resolves api to 1 container" }).click();
  await page.locator("#visibility .explain-card .records", { hasText: "shop-api-1 on shop_front" }).waitFor();
  await page.getByRole("button", { name: "Close the explanation" }).click();
});

test("Enter right after the last key asks for the whole name", async () => {
  await page.evaluate(`
    const field = document.querySelector("#ask-name");
    field.value = "pasted.example";
    field.dispatchEvent(new Event("input", { bubbles: true }));
    field.form.requestSubmit();
  `);
  await page.locator("#ask .answer", { hasText: "pasted.example" }).waitFor();
});

test("queries are shown as they arrive, filtered, and paused", async () => {
  await page.locator(".connection.is-live").waitFor();
  await dig(api, "live-one.ok.test");
  await page.locator(".query", { hasText: "live-one.ok.test" }).first().waitFor();
  await page.locator("#live-filter").fill("live-two");
  await page.locator(".query", { hasText: "live-one.ok.test" }).waitFor({ state: "detached" });
  await dig(api, "live-two.ok.test");
  await page.locator(".query", { hasText: "live-two.ok.test" }).first().waitFor();
  await page.locator("#live-filter").fill("");
  const live = page.locator("#live");
  await live.getByLabel("Result").selectOption("NXDOMAIN");
  await page.locator(".query", { hasText: "live-two.ok.test" }).waitFor({ state: "detached" });
  await dig(api, "missing.nx.test");
  await page.locator(".query", { hasText: "missing.nx.test" }).first().waitFor();
  await live.getByLabel("Result").selectOption("NOERROR");
  await page.locator(".query", { hasText: "missing.nx.test" }).first().waitFor({ state: "detached" });
  await page.locator(".query", { hasText: "live-two.ok.test" }).first().waitFor();
  await live.getByLabel("Result").selectOption("");
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByText("Paused.").waitFor();
  await dig(api, "live-three.ok.test");
  await page.getByRole("button", { name: "Resume" }).click();
  await page.locator(".query", { hasText: "live-three.ok.test" }).first().waitFor();
});

test("two parts of the filter that change before the page is drawn again both count", async () => {
  await page.locator("#live-filter").fill("live");
  await page.locator(".query", { hasText: "missing.nx.test" }).first().waitFor({ state: "detached" });
  await page.evaluate(`
    const field = document.querySelector("#live-filter");
    field.value = "";
    field.dispatchEvent(new Event("input", { bubbles: true }));
    const result = document.querySelector("#live select[aria-label=Result]");
    result.value = "NXDOMAIN";
    result.dispatchEvent(new Event("change", { bubbles: true }));
  `);
  await page.locator(".query", { hasText: "missing.nx.test" }).first().waitFor();
  await page.locator("#live").getByLabel("Result").selectOption("");
});

test("the list of queries waits beside an explanation, until that is closed", async () => {
  await dig(api, "read-one.ok.test");
  const row = page.locator("#live .query", { hasText: "read-one.ok.test" }).first();
  await row.click();
  const card = page.locator("#live .explain-card");
  await card.locator(".records").waitFor();
  await dig(api, "read-two.ok.test");
  await page.locator(".facts .connection.is-live").waitFor();
  await waitFor("the page to know the query", async () => {
    const { queries } = await shop.client.queries({ last: 5 });
    return queries.some(({ name }) => name === "read-two.ok.test") ? true : undefined;
  });
  await page.getByText("Waiting while an explanation is open.").waitFor();
  assert.equal(await page.locator("#live .query.is-explained", { hasText: "read-one.ok.test" }).count(), 1);
  assert.equal(await page.locator("#live .query", { hasText: "read-two.ok.test" }).count(), 0);
  const [of, beside] = [await row.boundingBox(), await card.boundingBox()];
  assert.ok(of !== null && beside !== null && beside.x >= of.x + 500 && Math.abs(beside.y - of.y) < 340, "beside it");
  await card.getByRole("button", { name: "Close the explanation" }).click();
  await page.locator("#live .query", { hasText: "read-two.ok.test" }).first().waitFor();
});

test("queries and failures are counted over time", async () => {
  const past = page.locator("#past");
  await past.locator(".bars .bar").first().waitFor({ state: "attached" });
  assert.match(
    await past.locator(".panel-head .note").innerText(),
    /^\d+ quer(?:y|ies), [1-9]\d* with NXDOMAIN or an error$/,
  );
  await past.getByRole("button", { name: "5 minutes" }).click();
  await page.locator(".event", { hasText: "dns11 answers shop-api-1" }).waitFor();
  await past.getByRole("button", { name: "All kept" }).click();
});

test("a fault that a test injects is named with its process, beside the query, and is no failure", async () => {
  const dns = await connect({ engine: shop.engine.host, stateDir: shop.instance.stateDir });
  const lab = await dns.lab({ container: api.name });
  await lab.fault("web", { servfail: true });
  assert.equal((await dig(api, "web")).status, "SERVFAIL");
  const note = page.locator("#failing .injected", { hasText: 'servfail for "web"' });
  await note
    .filter({ hasText: /a fault is injected by .*pid \d+ since .* applied to 1 query of shop-api-1/ })
    .waitFor();
  await page.locator("#live tr", { hasText: 'servfail for "web" (lease' }).first().waitFor();
  assert.equal(await page.locator("#failing > .failures > .failure", { hasText: '"web"' }).count(), 0);
  await lab.close();
  dns.close();
  await note.waitFor({ state: "detached" });
});

test("a container's drawer has its names, resolv.conf and queries", async () => {
  await page.locator(".chip", { hasText: "shop-api-1" }).click();
  const drawer = page.locator(".drawer[open]");
  await drawer.locator(".own-queries .query").first().waitFor();
  await drawer.getByText("127.0.0.11").waitFor();
  const text = await drawer.innerText();
  for (const each of ["served by dns11", "shop_front", "shop_back", api.address("shop_front")])
    assert.ok(text.includes(each), text);
  // Nobody answers there.
  await api.enter("dig", ["@192.0.2.53", "+tries=1", "+time=1", "web"]);
  const connection = drawer.locator("tr", { hasText: "192.0.2.53" });
  await connection.filter({ hasText: "never asked" }).filter({ hasText: "53/udp" }).waitFor();
  await page.keyboard.press("Escape");
  await drawer.waitFor({ state: "detached" }).catch(() => undefined);
});

test("docker compose down is no bad news, and a crash is", async () => {
  const blog = await shop.projectCalled("blog");
  // It ignores SIGTERM, as many programs do that are the first in their container: its exit code is that of SIGKILL.
  await shop.service("wiki", ["blog_default"], { project: "blog", keys: { command: "sleep infinity" } });
  await shop.run(blog.line("down", "-t", "1"));
  const ofBlog = page.locator(".event", { hasText: "blog" });
  await ofBlog.filter({ hasText: "blog-wiki-1 stopped" }).waitFor();
  await ofBlog.filter({ hasText: "network blog_default removed" }).waitFor();
  assert.equal(await page.locator(".event-bad", { hasText: "blog" }).count(), 0);
  await shop.service("wiki", ["blog_default"], {
    project: "blog",
    isShort: true,
    keys: { command: "sh -c 'sleep 3; exit 3'" },
  });
  await page.locator(".event-bad", { hasText: "blog-wiki-1 exited with code 3" }).waitFor();
  await shop.run(blog.line("down", "-t", "1"));
});

test("the checks run, and end with what they found", async () => {
  await page.getByRole("button", { name: "Run checks" }).click();
  await page.getByRole("button", { name: "Run again" }).waitFor();
  const text = await page.locator(".checks").innerText();
  assert.match(text, /checks passed|problem|warning/);
  assert.equal(await page.locator(".checks .error").count(), 0, text);
});

test("the cache and the settings are behind the footer", async () => {
  await page.getByRole("button", { name: "Cache" }).click();
  await page.locator(".dialog[open]", { hasText: "entr" }).getByRole("table").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: /^Settings/ }).click();
  await page.locator(".dialog[open] .is-changed").first().waitFor();
  await page.keyboard.press("Escape");
});

test("hostile names and labels of real containers are text", async () => {
  const label = '\u202E<img src=x onerror="globalThis.hacked=1">\u001B[2J';
  const labels = { "com.docker.compose.project": label, "com.docker.compose.service": label };
  await using evil = await runContainer(shop.engine, { name: "evil", networks: ["shop_front"], labels });
  await shop.instance.waitFor(evil.name, "attached");
  await page.locator(".chip", { hasText: "evil" }).waitFor();
  const name = `${Array.from({ length: 3 }, () => "y".repeat(63)).join(".")}.${"z".repeat(61)}`;
  for (const each of ['<svg/onload="globalThis.hacked=1">.x', "\\226\\128\\174gnp.x", name]) await dig(evil, each);
  await page.locator(".query", { hasText: "zzz" }).first().waitFor();
  assert.equal(await page.evaluate("globalThis.hacked"), undefined);
  const content = await page.content();
  for (const raw of ["\u001B", "\u202E"]) assert.ok(!content.includes(raw));
  assert.equal(await page.evaluate("document.body.scrollWidth - document.body.clientWidth"), 0);
});

test("a snapshot opens from disk with its panels, asks for nothing, and names no container", async () => {
  const folder = makeFolder("static");
  const { code, stderr } = await shop.command("ui", "--static", join(folder, "page"));
  assert.equal(code, 0, stderr);
  const other = await openPage(browser);
  const [faults, requests] = [errorsOf(other), [] as string[]];
  other.on("request", (request) => requests.push(request.url()));
  await other.goto(`file://${folder}/page/index.html`);
  await other.getByText("Snapshot of").waitFor();
  for (const part of [".chip", ".cell-sees", ".server-up", ".query", ".event"])
    await other.locator(part).first().waitFor();
  assert.deepEqual(await other.locator("main section h2").allTextContents(), [
    "Failing now",
    "Over time",
    "Who sees whom",
    "Nameservers",
    "Last queries",
    "Events",
  ]);
  assert.equal(await other.getByRole("button", { name: "Explain" }).count(), 0);
  await other.locator(".query").first().click();
  assert.equal(await other.locator(".explain-card").count(), 0);
  const text = await other.locator("body").innerText();
  for (const name of ["shop", "db", "live-one"]) assert.doesNotMatch(text, new RegExp(`\\b${name}\\b`));
  assert.match(text, /Names and addresses are replaced/);
  assert.deepEqual(faults, []);
  assert.ok(requests.length >= 4, requests.join(" "));
  assert.deepEqual(
    requests.filter((url) => !url.startsWith(`file://${folder}/page/`)),
    [],
  );
  await other.context().close();
});

test("a page of another origin gets nothing, with the token neither", async () => {
  const other = await openPage(browser);
  await other.route("http://127.0.0.1:1/**", async (route) => {
    await route.fulfill({ contentType: "text/html", body: "<!doctype html><title>other</title>" });
  });
  await other.goto("http://127.0.0.1:1/");
  const { token } = ui;
  const attempts = [
    `fetch("${ui.origin}/v1/status").then((r) => r.text())`,
    `fetch("${ui.origin}/v1/status", { headers: { "x-dns11-token": "${token}" } }).then((r) => r.text())`,
    `fetch("${ui.origin}/", { mode: "no-cors" }).then((r) => r.text()).then((text) => text || Promise.reject(new Error("nothing")))`,
    `new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = "${ui.origin}/app.js"; script.onload = resolve; script.onerror = () => reject(new Error("refused"));
      document.head.append(script);
    })`,
    `new Promise((resolve, reject) => {
      const frame = document.createElement("iframe");
      frame.src = "${ui.origin}/";
      frame.onload = () => { try { resolve(frame.contentDocument.title) } catch { reject(new Error("refused")) } };
      document.documentElement.append(frame);
    }).then((title) => title || Promise.reject(new Error("nothing")))`,
    `new Promise((resolve, reject) => {
      const socket = new WebSocket("${ui.origin.replace("http", "ws")}/v1/events?follow=true");
      socket.onopen = resolve; socket.onmessage = resolve; socket.onerror = () => reject(new Error("refused"));
    })`,
    `new Promise((resolve, reject) => {
      const source = new EventSource("${ui.origin}/v1/events?follow=true&token=${token}");
      source.onopen = resolve; source.onmessage = resolve; source.onerror = () => reject(new Error("refused"));
    })`,
  ];
  for (const attempt of attempts) await assert.rejects(async () => await other.evaluate(attempt), Error, attempt);
  // A form is posted, and answered with a refusal.
  const [refused] = await Promise.all([
    other.waitForResponse(`${ui.origin}/v1/explain`),
    other.evaluate(`(() => {
      const form = document.createElement("form");
      form.method = "post"; form.enctype = "text/plain"; form.action = "${ui.origin}/v1/explain";
      document.documentElement.append(form);
      form.submit();
    })()`),
  ]);
  assert.equal(refused.status(), 403);
  await other.context().close();
  const stranger = await openPage(browser);
  await stranger.goto(`${ui.origin}/#token=${"0".repeat(64)}`);
  await stranger.getByText("This page is not allowed to see dns11.").waitFor();
  assert.equal(await stranger.locator(".chip").count(), 0);
  await stranger.context().close();
});

test("a service worker that another program has left for the port does not see the page", async () => {
  const trap = createServer((request, response) => {
    const isWorker = request.url === "/worker.js";
    response.setHeader("content-type", isWorker ? "text/javascript" : "text/html");
    response.end(isWorker ? 'addEventListener("fetch", (event) => event.respondWith(new Response("trapped")))' : "");
  });
  trap.listen(0, "127.0.0.1");
  await once(trap, "listening");
  const { port } = trap.address() as AddressInfo;
  const other = await openPage(browser);
  await other.goto(`http://127.0.0.1:${port}/`);
  await other.evaluate(
    `navigator.serviceWorker.register("/worker.js").then(() => navigator.serviceWorker.ready).then(() => true)`,
  );
  const closed = once(trap, "close");
  trap.close();
  trap.closeAllConnections();
  await closed;
  await other.goto(`http://127.0.0.1:${port}/`);
  await other.getByText("trapped").waitFor();
  await using again = await shop.ui({ args: ["--no-open", "--port", `${port}`] });
  await other.goto(again.url);
  await other.locator(".connection.is-live").waitFor();
  await other.context().close();
});

test("the page goes on when dns11 is started again, and says what is missing until then", async () => {
  await shop.instance.stop();
  await page.getByText("dns11 is not running since").waitFor();
  await page.locator(".verdict.verdict-bad", { hasText: "dns11 is not running" }).waitFor();
  await page.locator(".chip", { hasText: "shop-db-1" }).waitFor();
  await using _again = await startDns11(shop.engine, { stateDir: shop.instance.stateDir });
  await page.locator(".connection.is-live").waitFor();
  await dig(api, "after-restart.example");
  await page.locator(".query", { hasText: "after-restart.example" }).first().waitFor();
  await ui[Symbol.asyncDispose]();
  await page.getByText("`dns11 ui` does not respond since").waitFor();
  assert.deepEqual(errors, []);
});
