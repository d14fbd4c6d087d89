// Proves that an explanation is beside what it explains and stays there: while the list of failures changes, when what it explains is mended,
// and in a container's drawer; and that it is gone when it is closed.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, Locator, Page } from "playwright-core";

import type { FailuresReport } from "../../src/api/failures.ts";
import { startBrowser } from "../support/page/browser.ts";
import { EXPLANATION_SAMPLE, SHOP_SAMPLE, sampleSnapshot } from "../support/page/sample.ts";
import { type OpenSample, openSample } from "../support/page/served-sample.ts";

const SNAPSHOT = sampleSnapshot(SHOP_SAMPLE);
const REPORT = SNAPSHOT.failures ?? assert.fail();

let browser: Browser;
before(async () => (browser = await startBrowser()));
after(async () => await browser.close());

async function shown(): Promise<OpenSample> {
  return await openSample(browser, SNAPSHOT, { view: { height: 700 }, more: { explain: EXPLANATION_SAMPLE } });
}

function failureOf(page: Page, container: string): Locator {
  return page.locator("#failing > .failures > .failure", { hasText: container });
}

async function explain(failure: Locator): Promise<Locator> {
  await failure.getByRole("button", { name: "Explain" }).click();
  const card = failure.locator(".explain-card");
  await card.locator(".way").waitFor();
  return card;
}

/** Sends other failures from now on. */
async function sendFailures(page: Page, change: (report: FailuresReport) => FailuresReport): Promise<void> {
  const json = change(REPORT);
  await page.unroute("**/v1/failures");
  await page.route("**/v1/failures", async (route) => await route.fulfill({ json }));
}

test("an explanation is in the entry that it explains, which keeps its place while others change", async () => {
  await using open = await shown();
  const { page } = open;
  const card = await explain(failureOf(page, "shop-api-1"));
  const place = await card.boundingBox();
  // The other one fails more often, and there is a new one.
  await sendFailures(page, (report) => {
    const [first = assert.fail(), second = assert.fail()] = report.failures;
    const own = { container: "shop-db-1", name: "gone", perMinute: 900 };
    const cause = { ...(first.cause ?? assert.fail()), sentence: "another cause", about: "else" };
    return { ...report, failures: [first, { ...second, perMinute: 1_200 }, { ...second, ...own, cause }] };
  });
  await failureOf(page, "gone").waitFor();
  assert.deepEqual(await card.boundingBox(), place);
  const heads = page.locator("#failing > .failures > .failure .pairs");
  assert.match(await heads.first().innerText(), /shop-api-1/);
  await card.getByRole("button", { name: "Close the explanation" }).click();
  await card.waitFor({ state: "detached" });
  await heads.first().filter({ hasText: "shop-web-1" }).waitFor();
});

test("an explanation stays when what it explains is mended", async () => {
  await using open = await shown();
  const { page } = open;
  await explain(failureOf(page, "shop-api-1"));
  await sendFailures(page, (report) => ({ ...report, failures: report.failures.slice(1) }));
  await failureOf(page, "shop-api-1").waitFor({ state: "detached" });
  await page.locator("#failing > .explain-card .way").waitFor();
  assert.equal(await page.locator(".explain-card").count(), 1);
});

test("there is one explanation, where it was asked for last, and what is typed below Ask stays", async () => {
  await using open = await shown();
  const { page } = open;
  await page.locator("#ask-name").fill("typed");
  await explain(failureOf(page, "shop-api-1"));
  await page.getByRole("button", { name: "shop-api-1 looks up db, and it fails" }).click();
  const card = page.locator("#visibility .explain-card");
  await card.locator(".way").waitFor();
  assert.equal(await page.locator(".explain-card").count(), 1);
  assert.equal(await page.locator("#ask-name").inputValue(), "typed");
  const [seen, table] = [await card.boundingBox(), await page.locator(".matrix").boundingBox()];
  assert.ok(seen !== null && table !== null && seen.y - (table.y + table.height) < 40, "it is right below the table");
});

test("in a container's drawer it is below the queries, and gone with the drawer", async () => {
  await using open = await shown();
  const { page } = open;
  await page.locator(".chip").first().click();
  const drawer = page.locator(".drawer[open]");
  await drawer.locator(".own-queries .query").first().click();
  await drawer.locator(".explain-card .way").waitFor();
  await page.keyboard.press("Escape");
  await page.locator(".explain-card").waitFor({ state: "detached" });
  await page.locator(".chip").nth(1).click();
  await drawer.locator(".own-queries .query").first().waitFor();
  assert.equal(await page.locator(".explain-card").count(), 0);
});
