// Proves that everybody can use the page: all of it is reached with the keyboard and shows where the focus is, has names for a screen
// reader, and every text has the contrast of WCAG AA in both colour schemes.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";

import { type View, startBrowser } from "../support/page/browser.ts";
import { EXPLANATION_SAMPLE, SHOP_SAMPLE, sampleSnapshot } from "../support/page/sample.ts";
import { type OpenSample, openSample } from "../support/page/served-sample.ts";
import { type LowContrast, LOW_CONTRASTS } from "../support/page/contrast.ts";

let browser: Browser;
before(async () => void (browser = await startBrowser()));
after(async () => await browser.close());

async function shown(view: View = {}): Promise<OpenSample> {
  return await openSample(browser, sampleSnapshot(SHOP_SAMPLE), { view, more: { explain: EXPLANATION_SAMPLE } });
}

test("everything is reached with the keyboard, and tables are one stop each", async () => {
  await using open = await shown();
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
  assert.match(cell, /^shop-web-1 cannot resolve db$/);

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
  await using open = await shown();
  const { page } = open;
  const titles = await page.locator("main section h2").allTextContents();
  assert.deepEqual(titles, [
    "Failing now",
    "Over time",
    "Who sees whom",
    "Nameservers",
    "Ask",
    "Live queries",
    "Checks",
    "Events",
  ]);
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

/** What can be operated, and is reached with Tab; of the elements with `data-stop`, one of each group is. */
const OPERABLE = "(each) => each.tabIndex >= 0 && !each.disabled && each.getClientRects().length > 0";
const CONTROLS = `[...document.querySelectorAll('a[href], button, input, select, summary, [tabindex]')].filter(${OPERABLE})`;

/** A control without a name of its own is told apart by its place. */
const PLACE =
  "((each) => { const all = []; for (let at = each; at !== document.body && at !== null; at = at.parentElement) all.unshift([...at.parentElement.children].indexOf(at)); return all.join(' '); })";

test("each control is reached with Tab, and the focus can be seen on it", async () => {
  for (const scheme of ["light", "dark"] as const) {
    await using open = await shown({ scheme });
    const { page } = open;
    const count = await page.evaluate<number>(`(globalThis.unreached = new Set(${CONTROLS})).size`);
    await page.evaluate("document.activeElement.blur()");
    let left = await page.evaluate<string[]>(LEFT);
    // Areas that scroll are stops, too.
    for (let times = 0; times < 2 * count && left.length > 0; times++) {
      await page.keyboard.press("Tab");
      const stop = await page.evaluate<{ readonly unseen: string | null; readonly left: string[] }>(
        `({ unseen: ${UNSEEN_FOCUS}, left: (unreached.delete(document.activeElement), ${LEFT}) })`,
      );
      assert.equal(stop.unseen, null, `the focus cannot be seen on ${String(stop.unseen)}`);
      ({ left } = stop);
    }
    assert.deepEqual(left, []);
  }
});

/** Controls that have not been reached, of those that are still there: a late reply changes what is shown. */
const LEFT = `[...unreached].filter(${OPERABLE}).map((each) => each.outerHTML.slice(0, 200))`;

/** The control with the focus if it has no outline, or is outside of the window; null if all is well. */
const UNSEEN_FOCUS = `(() => {
  const element = document.activeElement;
  // After the last control the browser itself has the focus.
  if (element === document.body) return null;
  const shape = element.matches("g.chip") ? element.querySelector("rect") : null;
  const style = getComputedStyle(shape ?? element);
  const isMarked = shape === null ? style.outlineStyle === "solid" && parseFloat(style.outlineWidth) >= 2 : parseFloat(style.strokeWidth) >= 2;
  const { top, bottom, left, right } = element.getBoundingClientRect();
  const isInside = bottom > 0 && right > 0 && top < innerHeight && left < innerWidth;
  return isMarked && isInside ? null : element.outerHTML.slice(0, 200);
})()`;

test("arrows reach each cell of the table, each container of the drawing and each query", async () => {
  await using open = await shown();
  const { page } = open;
  for (const area of [".matrix", ".drawing", ".tape tbody"]) {
    const stops = page.locator(`${area} [data-stop]`);
    const count = await stops.count();
    await stops.first().focus();
    const reached = new Set<string>();
    for (let times = 0; times < count; times++) {
      reached.add(await page.evaluate<string>(`${PLACE}(document.activeElement)`));
      await page.keyboard.press("ArrowRight");
    }
    assert.equal(reached.size, count, area);
  }
});

async function lowContrasts(page: Page): Promise<readonly LowContrast[]> {
  const { texts, low } = await page.evaluate<{ texts: number; low: LowContrast[] }>(LOW_CONTRASTS);
  assert.ok(texts > 20, `${texts} texts`);
  return low;
}

test("each text has a contrast of 4.5 or more, in both schemes, with what opens and while the page is old", async () => {
  for (const scheme of ["light", "dark"] as const) {
    await using open = await shown({ scheme });
    const { page } = open;
    assert.deepEqual(await lowContrasts(page), [], scheme);
    await page.locator(".failure").first().getByRole("button", { name: "Explain" }).click();
    await page.locator(".station").nth(2).waitFor();
    assert.deepEqual(await lowContrasts(page), [], `${scheme}, an explanation`);
    await page.locator(".failure .link").first().click();
    await page.locator(".drawer[open] .query").first().waitFor();
    assert.deepEqual(await lowContrasts(page), [], `${scheme}, a drawer`);
    await page.keyboard.press("Escape");
    await page.route("**/v1/failures", async (route) => {
      await route.fulfill({ status: 503, json: { error: "no", code: "NOT_RUNNING" } });
    });
    await page.getByText("dns11 is not running since").waitFor();
    assert.deepEqual(await lowContrasts(page), [], `${scheme}, old`);
  }
});
