// Proves how the page looks and behaves, in a real browser with a sample instead of a run: every width and both schemes hold 200
// containers, nothing jumps while data arrives, and choices last.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";

import type { QueryReport } from "../../src/api/queries.ts";
import { type View, overflowOf, startBrowser } from "../support/page/browser.ts";
import { SHOP_SAMPLE as SHOP, type Sample, manyContainers, sampleSnapshot } from "../support/page/sample.ts";
import { type OpenSample, openSample } from "../support/page/served-sample.ts";
import { untilSame, waitFor } from "../support/rig/wait.ts";

/** What a page looks like once it is filled. */
interface Look {
  readonly name: string;
  /** How far it can be scrolled sideways. */
  readonly overflow: number;
  readonly errors: readonly string[];
  /** The height of the list of queries. */
  readonly height: number;
  /** How far things moved while it filled. */
  readonly shifts: number;
}

let browser: Browser;
/** Two tests judge the same pages, because opening them takes most of its time. */
let looks: readonly Look[];
before(async () => {
  browser = await startBrowser();
  looks = await looksOfEach();
});
after(async () => await browser.close());

async function shown(sample: Sample, view: View = {}): Promise<OpenSample> {
  return await openSample(browser, sampleSnapshot(sample), { view });
}

const AN_HOUR_AGO = new Date(Date.now() - 61 * 60_000).toISOString();

/** How far things moved without anything having been done, as browsers count it. */
const SHIFTS = `new Promise((resolve) => {
  let sum = 0;
  const add = (list) => { for (const each of list) if (!each.hadRecentInput) sum += each.value; };
  const observer = new PerformanceObserver((list) => add(list.getEntries()));
  observer.observe({ type: "layout-shift", buffered: true });
  requestAnimationFrame(() => requestAnimationFrame(() => { add(observer.takeRecords()); resolve(sum); }));
})`;

/** With 5 and with 200 containers, at every width and in both schemes. */
async function looksOfEach(): Promise<readonly Look[]> {
  const found: Look[] = [];
  for (const sample of [SHOP, { ...SHOP, containers: manyContainers(200) }]) {
    for (const view of [
      { width: 1440, scheme: "light" },
      { width: 1024, scheme: "dark" },
      { width: 390, height: 844, scheme: "light" },
    ] as const) {
      await using open = await shown(sample, view);
      const { page, errors } = open;
      await page.locator(".server-up").first().waitFor();
      found.push({
        name: `${sample.containers.length} containers, ${view.width} pixels`,
        shifts: await page.evaluate<number>(SHIFTS),
        overflow: await overflowOf(page),
        height: await page.evaluate<number>("document.querySelector('.tape').offsetHeight"),
        errors,
      });
    }
  }
  return found;
}

test("5 and 200 containers fit every width in both schemes, and the list of queries keeps its height", () => {
  for (const { name, overflow, errors, height } of looks) {
    assert.equal(overflow, 0, name);
    assert.deepEqual(errors, []);
    assert.equal(height, 340);
  }
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

test("A and AAAA of one lookup are one line, and fail as one", async () => {
  const twice = (changes: Partial<QueryReport>): Partial<QueryReport>[] =>
    ["A", "AAAA"].map((type) => ({ ...changes, type, time: new Date(0).toISOString() }));
  const fails = { rcode: "NXDOMAIN", answers: 0, addresses: [] };
  const [failure = assert.fail()] = SHOP.failures ?? [];
  const queries = [...twice({ name: "db", ...fails }), ...twice({ name: "api" })];
  await using open = await shown({ ...SHOP, queries, failures: [failure, { ...failure, type: "AAAA" }] });
  const { page } = open;
  await page.locator(".query", { hasText: "api" }).filter({ hasText: "A, AAAA" }).waitFor();
  assert.deepEqual(await page.locator("#live .query td.what").allInnerTexts(), ["api", "db"]);
  assert.equal(await page.locator("#live .query-bad").count(), 1);
  assert.equal(await page.locator("#failing > .failures > .failure").count(), 1);
});

test("the page looks back as far as is chosen, in bars and in lists, and the bars are bounded", async () => {
  const snapshot = sampleSnapshot({ ...SHOP, queries: [...(SHOP.queries ?? []), { name: "old", time: AN_HOUR_AGO }] });
  const [history, failures] = [snapshot.history ?? assert.fail(), snapshot.failures ?? assert.fail()];
  const day = Array.from({ length: 1_440 }, () => 10);
  const minutes = { ...history.minutes, queries: day, failures: day.map((_, index) => (index < 1_380 ? 1 : 2)) };
  const [first = assert.fail()] = failures.failures;
  const mended = { ...first, name: "mended", last: AN_HOUR_AGO, earlier: "resolved" as const };
  const more = {
    history: { ...history, minutes },
    failures: { ...failures, failures: [...failures.failures, { ...mended, cause: null }] },
  };
  await using open = await openSample(browser, snapshot, { more });
  const { page } = open;
  const past = page.locator("#past");
  const look = async (label: string): Promise<readonly unknown[]> => {
    await past.getByRole("button", { name: label }).click();
    await past.locator("[aria-pressed=true]", { hasText: label }).waitFor();
    const counts = [".bars g", "#events .event", ".earlier .failure"].map(
      async (part) => await page.locator(part).count(),
    );
    const old = await page.locator("#live .query", { hasText: "old" }).count();
    return [...(await Promise.all(counts)), old, await past.locator(".panel-head .note").innerText()];
  };
  const all = [96, 4, 1, 1, "14,400 queries, 1,500 with NXDOMAIN or an error"];
  await untilSame("all that is kept", async () => await look("All kept"), all);
  const hour = [60, 4, 0, 0, "600 queries, 120 with NXDOMAIN or an error"];
  await untilSame("one hour", async () => await look("1 hour"), hour);
  const [from, until] = (await page.locator(".bars-times span").allInnerTexts()).map((each) => each.slice(-5));
  assert.equal(from, until, "an hour is between them");
  await untilSame("five minutes", async () => (await look("5 minutes")).slice(0, 3), [60, 0, 0]);
  await page.getByText("Nothing has happened in this time.").waitFor();
  assert.equal(await page.locator("#failing > .failures > .failure").count(), 2, "what fails now is shown in any case");
});

test("a project is chosen, and names become short", async () => {
  await using open = await shown({ ...SHOP, containers: [...SHOP.containers, ...manyContainers(25)] });
  const { page } = open;
  await page.getByLabel("Compose project").selectOption("shop");
  await page.locator(".chip > text", { hasText: /^api-1$/ }).waitFor();
  for (const part of [".chip", ".matrix tbody tr"])
    await waitFor(`three of ${part}`, async () => ((await page.locator(part).count()) === 3 ? true : undefined));
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

/** Browsers call less than 0.1 good. */
const SHIFTS_MAX = 0.02;

test("nothing jumps while the page fills", () => {
  for (const { name, shifts } of looks) assert.ok(shifts < SHIFTS_MAX, `${name}: ${shifts}`);
});
