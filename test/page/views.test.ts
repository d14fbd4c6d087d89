// Proves how the page looks and behaves, in a real browser with data of any kind: names that are markup, control a terminal or reverse
// text change nothing; every width and both schemes hold 200 containers; all of it works from the keyboard and has names for a
// screen reader; and a snapshot opens from disk without a request.

import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";

import type { Explanation } from "../../src/api/names.ts";
import { type View, errorsOf, openPage, startBrowser } from "../support/page/browser.ts";
import { type Sample, manyContainers, sampleSnapshot } from "../support/page/sample.ts";
import { PAGE_FOLDER, serveSample } from "../support/page/served-sample.ts";

const SHOP: Sample = {
  containers: [
    { name: "shop-web-1", project: "shop", service: "web", networks: ["shop_front"] },
    { name: "shop-api-1", project: "shop", service: "api", networks: ["shop_front"] },
    { name: "shop-db-1", project: "shop", service: "db", networks: ["shop_back"] },
    { name: "plain", networks: ["bridge"] },
  ],
  failures: [
    {
      container: "shop-api-1",
      name: "db",
      code: "other-network",
      sentence: '"db" is shop-db-1 on network shop_back, which shop-api-1 is not on',
      fix: "docker network connect shop_back shop-api-1",
    },
    { container: "shop-web-1", name: "wbe", code: "similar-name", sentence: "no such name", fix: 'use the name "web"' },
  ],
  queries: Array.from({ length: 40 }, (_, index) => ({ name: `name${index}` })),
};

const EXPLANATION: Explanation = {
  container: { id: "1", name: "shop-api-1" },
  question: { name: "db", type: "A" },
  networks: ["shop_front"],
  steps: [
    { layer: "names", isAnswer: false, why: "no such name on shop_front" },
    {
      layer: "servers",
      isAnswer: true,
      why: "host(10.99.0.1) responded",
      events: [{ atMs: 1.2, server: "host(10.99.0.1)", what: "NXDOMAIN" }],
    },
  ],
  answeredBy: "servers",
  server: "host(10.99.0.1)",
  ms: 1.3,
  reply: null,
  owners: [],
  notServed: null,
  notQueried: null,
  causes: [],
  hints: [],
};

const MARKUP = '<img src=x onerror="globalThis.hacked=1"><script>globalThis.hacked=1</script>';
const TERMINAL = "\u001B]0;title\u0007\u001B[31mred";
const REVERSED = "\u202Egnp.exe\u2066";
const HEBREW = "\u05E9\u05DC\u05D5\u05DD.example";
const LONGEST = Array.from({ length: 4 }, () => "x".repeat(63)).join(".");

let browser: Browser;
before(async () => void (browser = await startBrowser()));
after(async () => await browser.close());

async function shown(sample: Sample, view: View = {}): Promise<{ page: Page; errors: string[] } & AsyncDisposable> {
  const page = await openPage(browser, view);
  const errors = errorsOf(page);
  await serveSample(page, sampleSnapshot(sample), EXPLANATION);
  await page.locator(".chip").first().waitFor();
  await page.locator(".query").first().waitFor();
  return { page, errors, [Symbol.asyncDispose]: async () => await page.context().close() };
}

/** How far it can be scrolled sideways: nothing is wider than the window. */
async function overflow(page: Page): Promise<number> {
  return await page.evaluate<number>("document.body.scrollWidth - document.body.clientWidth");
}

test("names that are markup, control a terminal, are reversed or very long change nothing", async () => {
  const evil = [MARKUP, TERMINAL, REVERSED, HEBREW, LONGEST];
  const sample: Sample = {
    containers: evil.map((service, index) => ({
      name: `c${index}`,
      project: service,
      service,
      networks: [service, "n"],
    })),
    failures: evil.map((name, index) => ({
      container: `c${index}`,
      name,
      code: "unknown-name" as const,
      sentence: `no container has the name ${name}`,
      fix: `docker start ${name}`,
    })),
    queries: evil.map((name) => ({ name, container: name, upstream: name, rcode: name, type: name })),
  };
  await using open = await shown(sample);
  const { page, errors } = open;
  await page.locator(".failure").nth(4).waitFor();
  assert.equal(await page.evaluate("globalThis.hacked"), undefined);
  assert.equal(await page.evaluate("document.querySelectorAll('img, script').length"), 2, "the icon and the program");
  const text = await page.evaluate<string>("document.body.innerText");
  assert.ok(
    text.includes(MARKUP) && text.includes("\\x1b]0;title\\x07\\x1b[31mred") && text.includes("\\u202egnp.exe\\u2066"),
  );
  const content = await page.content();
  for (const raw of ["\u0007", "\u001B", "\u202E", "\u2066"]) assert.ok(!content.includes(raw));
  assert.equal(
    await page.evaluate("getComputedStyle(document.querySelector('.failure .wire')).unicodeBidi"),
    "isolate",
  );
  assert.equal(await overflow(page), 0);
  await page.locator(".failure button", { hasText: "c0" }).first().click();
  await page.locator(".drawer[open] .names").first().waitFor();
  assert.equal(await page.evaluate("globalThis.hacked"), undefined);
  assert.deepEqual(errors, []);
});

test("5 and 200 containers fit every width in both schemes, and the list of queries keeps its height", async () => {
  for (const sample of [SHOP, { ...SHOP, containers: manyContainers(200) }]) {
    for (const view of [
      { width: 1440, scheme: "light" },
      { width: 1024, scheme: "dark" },
      { width: 390, height: 844, scheme: "light" },
    ] as const) {
      await using open = await shown(sample, view);
      assert.equal(await overflow(open.page), 0, `${sample.containers.length} containers, ${view.width} pixels`);
      assert.deepEqual(open.errors, []);
      const height = await open.page.evaluate("document.querySelector('.tape').offsetHeight");
      assert.equal(height, 340);
    }
  }
});

test("everything is reached with the keyboard, and tables are one stop each", async () => {
  await using open = await shown(SHOP);
  const { page } = open;
  const stops: string[] = [];
  await page.evaluate("document.activeElement.blur()");
  for (let times = 0; times < 60; times++) {
    await page.keyboard.press("Tab");
    const stop = await page.evaluate<string>(
      "document.activeElement === document.body ? '' : document.activeElement.getAttribute('aria-label') || document.activeElement.innerText || document.activeElement.id || document.activeElement.outerHTML",
    );
    if (stop === "") break;
    stops.push(stop.trim());
  }
  const at = (wanted: string): number => stops.findIndex((each) => each.startsWith(wanted));
  const order = ["Skip", "shop-api-1", "Copy: docker network", "Explain", "Mute", "Run checks", "Cache", "Settings"];
  for (const each of order) assert.notEqual(at(each), -1, `${each} is not among ${stops.join(" | ")}`);
  assert.ok(stops.length < 45, "a table is not one stop");

  await page.locator(".matrix [data-stop]").first().focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  const cell = await page.evaluate<string>("document.activeElement.getAttribute('aria-label')");
  assert.match(cell, /^shop-api-1 resolves web to 1 container$/);

  await page.keyboard.press("/");
  assert.equal(await page.evaluate("document.activeElement.id"), "ask-name");
  await page.keyboard.type("db");
  await page.keyboard.press("Enter");
  await page.locator(".station").nth(2).waitFor();

  const link = page.locator(".failure .link").first();
  await link.focus();
  await page.keyboard.press("Enter");
  await page.locator(".drawer[open]").waitFor();
  await page.keyboard.press("Escape");
  await page.locator(".drawer:not([open])").waitFor({ state: "attached" });
  const focused = await page.evaluate("document.activeElement === document.querySelector('.failure .link')");
  assert.equal(focused, true, "the focus is where it was");
});

test("each part has a name for a screen reader", async () => {
  await using open = await shown(SHOP);
  const { page } = open;
  const titles = await page.locator("main section h2").allTextContents();
  assert.deepEqual(titles, ["Failing now", "Who sees whom", "Nameservers", "Ask", "Live queries", "Checks", "Events"]);
  const snapshot = await page.locator("body").ariaSnapshot();
  for (const landmark of ["- banner", "- main", "- contentinfo", '- region "Failing now"', "- status"]) {
    assert.ok(snapshot.includes(landmark), `${landmark} is not in ${snapshot.slice(0, 2_000)}`);
  }
  const nameless = await page.evaluate(
    "[...document.querySelectorAll('button, input, select')].filter((each) => !(each.labels?.length || each.ariaLabel || each.innerText.trim())).map((each) => each.outerHTML)",
  );
  assert.deepEqual(nameless, []);
  // One live region for the verdict, one for the answer and one for the checks: not the queries.
  assert.equal(await page.locator("[aria-live], [role=status], [role=alert]").count(), 3);
});

test("what is muted is hidden, also after a reload, until it is shown again", async () => {
  await using open = await shown(SHOP);
  const { page } = open;
  assert.equal(await page.locator(".failure").count(), 2);
  await page
    .locator(".failure", { hasText: "other-network" })
    .or(page.locator(".failure").first())
    .getByText("Mute")
    .click();
  await page.getByText("Show 1 muted").waitFor();
  assert.equal(await page.locator(".failure").count(), 1);
  await page.reload();
  await page.getByText("Show 1 muted").click();
  await page.locator(".failure").nth(1).waitFor();
});

test("a project is chosen, and names become short", async () => {
  await using open = await shown({ ...SHOP, containers: [...SHOP.containers, ...manyContainers(25)] });
  const { page } = open;
  await page.getByLabel("Compose project").selectOption("shop");
  await page.locator(".chip", { hasText: /^api-1$/ }).waitFor();
  assert.equal(await page.locator(".chip").count(), 3);
  assert.equal(await page.locator(".matrix tbody tr").count(), 3);
});

test("without the right token, or without a run, the page says so and keeps what it had", async () => {
  await using open = await shown(SHOP);
  const { page } = open;
  const answer = async (status: number, code: string): Promise<void> => {
    await page.route("**/v1/failures", async (route) => await route.fulfill({ status, json: { error: code, code } }));
  };
  await answer(503, "NOT_RUNNING");
  await page.getByText("dns11 is not running since").waitFor();
  assert.equal(await page.locator(".failure").count(), 2);
  await page.unroute("**/v1/failures");
  await page.locator(".notice").waitFor({ state: "detached" });
  await answer(401, "UI_TOKEN");
  await page.getByText("This page is not allowed to see dns11.").waitFor();
});

test("a snapshot opens from disk, asks for nothing, and hides what needs a run", async () => {
  const folder = mkdtempSync(join(tmpdir(), "d11-snapshot-"));
  try {
    cpSync(PAGE_FOLDER, folder, { recursive: true });
    const index = readFileSync(join(folder, "index.html"), "utf8");
    const policy = "default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src 'self' file:";
    const head = `<meta http-equiv="Content-Security-Policy" content="${policy}"><script src="data.js" defer></script>`;
    assert.ok(index.includes("<!-- snapshot -->"));
    writeFileSync(join(folder, "index.html"), index.replace("<!-- snapshot -->", head));
    writeFileSync(join(folder, "data.js"), `globalThis.dns11Snapshot = ${JSON.stringify(sampleSnapshot(SHOP))};`);
    const page = await openPage(browser);
    const [errors, requests] = [errorsOf(page), [] as string[]];
    page.on("request", (request) => requests.push(request.url()));
    await page.goto(`file://${folder}/index.html`);
    await page.getByText("Snapshot of").waitFor();
    await page.locator(".query").first().waitFor();
    assert.equal(await page.locator(".failure").count(), 2);
    assert.deepEqual(await page.locator("main section h2").allTextContents(), [
      "Failing now",
      "Who sees whom",
      "Nameservers",
      "Last queries",
      "Events",
    ]);
    assert.equal(await page.getByText("Explain").count(), 0);
    assert.deepEqual(errors, []);
    assert.deepEqual(
      requests.filter((url) => !url.startsWith("file:")),
      [],
    );
    await page.context().close();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
