// Proves how the page looks and behaves, in a real browser with a sample instead of a run: every width and both schemes hold 200
// containers, nothing jumps while data arrives, and choices last.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";

import { type View, overflowOf, startBrowser } from "../support/page/browser.ts";
import { SHOP_SAMPLE as SHOP, type Sample, manyContainers, sampleSnapshot } from "../support/page/sample.ts";
import { type OpenSample, openSample } from "../support/page/served-sample.ts";

let browser: Browser;
before(async () => void (browser = await startBrowser()));
after(async () => await browser.close());

async function shown(sample: Sample, view: View = {}): Promise<OpenSample> {
  return await openSample(browser, sampleSnapshot(sample), { view });
}

test("5 and 200 containers fit every width in both schemes, and the list of queries keeps its height", async () => {
  for (const sample of [SHOP, { ...SHOP, containers: manyContainers(200) }]) {
    for (const view of [
      { width: 1440, scheme: "light" },
      { width: 1024, scheme: "dark" },
      { width: 390, height: 844, scheme: "light" },
    ] as const) {
      await using open = await shown(sample, view);
      assert.equal(await overflowOf(open.page), 0, `${sample.containers.length} containers, ${view.width} pixels`);
      assert.deepEqual(open.errors, []);
      const height = await open.page.evaluate("document.querySelector('.tape').offsetHeight");
      assert.equal(height, 340);
    }
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

/** Browsers call less than 0.1 good. */
const SHIFTS_MAX = 0.02;
/** How far things moved without anything having been done, as browsers count it. */
const SHIFTS = `new Promise((resolve) => {
  let sum = 0;
  const add = (list) => { for (const each of list) if (!each.hadRecentInput) sum += each.value; };
  const observer = new PerformanceObserver((list) => add(list.getEntries()));
  observer.observe({ type: "layout-shift", buffered: true });
  requestAnimationFrame(() => requestAnimationFrame(() => { add(observer.takeRecords()); resolve(sum); }));
})`;

test("nothing jumps while the page fills", async () => {
  for (const sample of [SHOP, { ...SHOP, containers: manyContainers(200) }]) {
    for (const view of [{ width: 1440 }, { width: 390, height: 844 }]) {
      await using open = await shown(sample, view);
      const { page } = open;
      await page.locator(".server-up").first().waitFor();
      const shifts = await page.evaluate<number>(SHIFTS);
      assert.ok(shifts < SHIFTS_MAX, `${sample.containers.length} containers, ${view.width} pixels: ${shifts}`);
    }
  }
});
