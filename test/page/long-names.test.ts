// Proves that the page stays readable with 44 containers whose names are long and alike, at 1440 and at 390 pixels: each cause is there
// once and counted once, what fails is in sight, names keep what tells them apart; and what somebody has chosen or muted lasts.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";

import { overflowOf, startBrowser } from "../support/page/browser.ts";
import { longNames, sampleSnapshot } from "../support/page/sample.ts";
import { type OpenSample, openSample } from "../support/page/served-sample.ts";

const ALL = "13 names fail in 7 containers";
const CAUSES = 3;
/** What one card for each pair of a container and a name took: 4,956 and 12,083 pixels. */
const HEIGHT_MAX = { 1440: 2_800, 390: 5_600 } as const;
const WIDTHS = [1440, 390] as const;

let browser: Browser;
const opened = new Map<number, OpenSample>();
before(async () => {
  browser = await startBrowser();
  const snapshot = sampleSnapshot(longNames());
  for (const width of WIDTHS) opened.set(width, await openSample(browser, snapshot, { view: { width, height: 900 } }));
});
after(async () => await browser.close());

function pageOf(width: number): Page {
  return opened.get(width)?.page ?? assert.fail();
}

async function textsOf(page: Page, selector: string): Promise<string[]> {
  return (await page.locator(selector).allTextContents()).map((each) => each.trim());
}

/** Elements of which the reader does not see the end: what is cut keeps it, and everything else is shown whole. */
const CUT_OFF = `(() => {
  const isSmall = (each) => each.scrollWidth > each.clientWidth + 1 || each.scrollHeight > each.clientHeight + 1;
  const seen = (selector) => [...document.querySelectorAll(selector)].filter((each) => each.getClientRects().length > 0);
  const tails = seen("main .cut-tail").filter((tail) => {
    const [end, box] = [tail.getBoundingClientRect(), tail.parentElement.getBoundingClientRect()];
    return isSmall(tail) || end.right > box.right + 1 || end.bottom > box.bottom + 1;
  });
  const others = seen("#failing *, .matrix th *, .tape td, #servers td, #events li, #events li *").filter((each) => {
    const isCut = each.closest(".cut") !== null || each.querySelector(".cut") !== null;
    return !isCut && each.clientWidth > 0 && each.scrollWidth > each.clientWidth + 1;
  });
  return [...tails, ...others].map((each) => each.outerHTML.slice(0, 200));
})()`;

for (const width of WIDTHS) {
  test(`each cause is one card, and every count is the same, at ${width} pixels`, async () => {
    const page = pageOf(width);
    assert.equal(await page.locator("#failing > .failures > .failure").count(), CAUSES);
    assert.deepEqual(await textsOf(page, ".sentence strong"), [ALL]);
    assert.deepEqual(await textsOf(page, "#failing .panel-head > .note"), [`${CAUSES} causes: ${ALL}`]);
    const names = await page.locator("#failing > .failures .failure-head .name").count();
    assert.equal(names, 4 + 4 + 5);
    const gone = page.locator(".failure", { hasText: "no container on this engine has any of these names" });
    assert.equal(await gone.locator(".name").count(), 5);
    const first = await textsOf(page, "#failing > .failures > .failure:first-child .command code > *");
    assert.deepEqual(first.toSorted(), [
      "docker network connect acme-platform-checkout_back acme-platform-checkout-mail-1",
      "docker network connect acme-platform-checkout_back acme-platform-checkout-web-frontend-internal-1",
      "docker network connect acme-platform-checkout_back acme-platform-checkout-web-frontend-public-1",
    ]);
    assert.equal(await overflowOf(page), 0);
    assert.ok((await page.evaluate<number>("document.documentElement.scrollHeight")) < HEIGHT_MAX[width]);
  });

  test(`what fails is in sight, and no name loses its end, at ${width} pixels`, async () => {
    const page = pageOf(width);
    const inSight = await page.evaluate<number>(`(() => {
      const area = document.querySelector(".matrix-scroll").getBoundingClientRect();
      const cells = [...document.querySelectorAll(".cell-fails")].map((each) => each.getBoundingClientRect());
      return cells.filter((each) => each.right <= area.right && each.bottom <= area.bottom).length;
    })()`);
    // Of three services, the first ones of the names that they need.
    assert.ok(inSight >= 3 * 3, `${inSight} of them`);
    assert.deepEqual(await page.evaluate(CUT_OFF), []);
    const chips = await textsOf(page, ".chip > text");
    assert.ok(chips.every((each) => each.endsWith("-1")));
    assert.deepEqual(
      chips.filter((each) => each.startsWith("payments")).length,
      8,
      "without the project, which its network names",
    );
    const rows = await textsOf(page, ".matrix tbody tr:not(.is-next) > th .cut");
    assert.ok(
      rows.slice(0, 3).every((each) => /^(?:mail|mail-proxy|web-frontend-\w+)-1$/.test(each)),
      rows.join(" "),
    );
  });
}

test("what is muted does not count, and says so", async () => {
  const page = pageOf(1440);
  await page.locator(".failure", { hasText: "any of these names" }).getByText("Mute").click();
  await page.locator(".sentence strong", { hasText: "8 names fail in 6 containers" }).waitFor();
  assert.deepEqual(await textsOf(page, "#failing .panel-head > .note"), ["2 causes: 8 names fail in 6 containers"]);
  for (let left = 2; left > 0; left--) await page.locator(".failures > .failure-bad").first().getByText("Mute").click();
  await page.locator(".sentence strong", { hasText: "All other names of containers resolve" }).waitFor();
  await page.locator(".sentence", { hasText: "3 causes muted" }).waitFor();
  await page.locator("#failing", { hasText: "Nothing else fails." }).waitFor();
  await page.getByText("Show 3 muted").click();
  await page.locator(".sentence strong", { hasText: ALL }).waitFor();
});

test("a container that shares the namespace of another one fails as that one does", async () => {
  const page = pageOf(1440);
  const label = "acme-platform-checkout-mail-proxy-1 looks up db, and it fails";
  await page.getByRole("button", { name: label }).first().waitFor();
  await page.locator(".chip-fails", { hasText: "mail-proxy-1" }).waitFor();
});

test("the chosen container stays when another project is shown, and ? shows the keys", async () => {
  const page = pageOf(390);
  const chosen = page.locator("#ask").getByLabel("In");
  await chosen.selectOption("observability-api-1");
  await page.getByLabel("Compose project").selectOption("shop");
  await page.locator(".matrix tbody tr").nth(10).waitFor();
  assert.equal(await chosen.inputValue(), "observability-api-1");
  await page.evaluate("document.activeElement.blur()");
  await page.keyboard.press("?");
  await page.locator(".dialog[open]", { hasText: "filter the live queries" }).waitFor();
  await page.keyboard.press("Escape");
});

test("of a container's last queries only those that failed are red", async () => {
  const page = pageOf(1440);
  await page.route("**/v1/queries?container=*", async (route) => {
    const query = { ...QUERY, time: new Date().toISOString() };
    const failed = { ...query, seq: 2, rcode: "NXDOMAIN", addresses: [], answers: 0 };
    await route.fulfill({ json: { queries: [{ ...query, seq: 1 }, failed], missed: 0, last: 2 } });
  });
  await page.locator(".chip", { hasText: "shop-mail-1" }).click();
  const colourOf = async (text: string): Promise<string> => {
    await page.locator(".own-queries td.result", { hasText: text }).waitFor();
    const cells = "[...document.querySelectorAll('.own-queries td.result')]";
    const cell = `${cells}.find((each) => each.textContent.includes("${text}"))`;
    return await page.evaluate<string>(`getComputedStyle(${cell}).color`);
  };
  const plain = await page.evaluate<string>("getComputedStyle(document.body).color");
  assert.equal(await colourOf("172.18.0.2"), plain);
  assert.notEqual(await colourOf("NXDOMAIN"), plain);
  await page.keyboard.press("Escape");
  for (const { errors } of opened.values()) assert.deepEqual(errors, []);
});

test("as long as nothing is known, the page says nothing about names", async () => {
  const page = pageOf(390);
  await page.route("**/v1/**", async (route) => {
    await route.fulfill({ status: 503, json: { error: "dns11 is not running", code: "NOT_RUNNING" } });
  });
  const answered = page.waitForResponse("**/v1/containers*");
  await page.reload();
  await answered;
  await page.getByText("dns11 is not running since").waitFor();
  assert.deepEqual(await textsOf(page, ".sentence strong"), ["dns11 is not running"]);
  assert.equal(await page.getByText("No name of a container fails").count(), 0);
  assert.equal(await page.locator("main > *").count(), 0);
});

const QUERY = {
  container: "shop-mail-1",
  name: "api",
  type: "A",
  rcode: "NOERROR",
  answers: 1,
  addresses: ["172.18.0.2"],
  ttl: 5,
  transport: "udp",
  result: "local",
  source: "network",
  upstream: null,
  ms: 0,
};
