// Proves that text of others is only text in each panel of the page: names, reasons and records that are markup, control a terminal,
// reverse what is read, or are very long change nothing else.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";

import type { Snapshot } from "../../src/api/snapshot.ts";
import { overflowOf, startBrowser } from "../support/page/browser.ts";
import { EXPLANATION_SAMPLE, type Sample, sampleSnapshot } from "../support/page/sample.ts";
import { type MoreAnswers, type OpenSample, openSample } from "../support/page/served-sample.ts";
import { waitFor } from "../support/rig/wait.ts";

const MARKUP = '<img src=x onerror="globalThis.hacked=1"><script>globalThis.hacked=1</script>';
const TERMINAL = "\u001B]0;title\u0007\u001B[31mred";
const REVERSED = "\u202Egnp.exe\u2066";
const HEBREW = "\u05E9\u05DC\u05D5\u05DD.example";
const LONGEST = Array.from({ length: 4 }, () => "x".repeat(63)).join(".");
const EVIL = [MARKUP, TERMINAL, REVERSED, HEBREW, LONGEST];
/** How the page writes them. */
const SHOWN = [MARKUP, "\\x1b]0;title\\x07\\x1b[31mred", "\\u202egnp.exe\\u2066", HEBREW, LONGEST];

const SAMPLE: Sample = {
  containers: EVIL.map((service) => ({ name: service, project: service, service, networks: [service, "n"] })),
  failures: EVIL.map((name) => ({
    container: name,
    name,
    code: "unknown-name" as const,
    sentence: `no container has the name ${name}`,
    fix: `docker start ${name}`,
  })),
  queries: EVIL.map((name) => ({ name, container: name, upstream: name, rcode: name, type: name })),
};

function evilSnapshot(): Snapshot {
  const snapshot = sampleSnapshot(SAMPLE);
  const { containers, failures, upstreams, events } = snapshot;
  const cause = { code: "ambiguous" as const, fix: null, lastingFix: null, isBreaking: false };
  return {
    ...snapshot,
    containers: {
      omitted: 0,
      containers: (containers?.containers ?? []).map((each) => ({
        ...each,
        reason: each.name,
        upstreams: EVIL,
        resolvConf: { servers: EVIL, search: EVIL, options: EVIL },
      })),
    },
    failures: {
      omitted: 0,
      failures: failures?.failures ?? [],
      misleading: EVIL.map((name) => {
        return { name, network: name, containers: [name], clients: [name], cause: { ...cause, sentence: name } };
      }),
      unwatched: EVIL.map((name) => ({ container: name, cause: { ...cause, sentence: name } })),
    },
    upstreams: {
      tracksServers: true,
      upstreams: EVIL.flatMap((name) =>
        (upstreams?.upstreams ?? []).slice(1).map((each) => {
          return {
            ...each,
            server: name,
            container: name,
            reason: name,
            uses: [{ domain: name, by: null, containers: [name] }],
          };
        }),
      ),
    },
    cache: CACHE,
    events: {
      missed: 0,
      last: 0,
      events: EVIL.flatMap((name, number) =>
        (events?.events ?? []).slice(0, 1).map((each) => {
          return { ...each, number, kind: "network-joined" as const, container: name, network: name, detail: name };
        }),
      ),
    },
  };
}

const CACHE = {
  isCaching: true,
  entries: EVIL.length,
  bytes: 1_000,
  bytesMax: 2_000,
  hits: 1,
  misses: 1,
  stale: 0,
  failures: 0,
  prefetches: 0,
  evictions: 0,
  containers: [],
};

const MORE: MoreAnswers = {
  "cache/entries": {
    isCaching: true,
    omitted: 0,
    entries: EVIL.map((name) => {
      return { name, type: name, rcode: "NOERROR", answers: [name], expiresInS: 1, bytes: 1, container: name };
    }),
  },
  explain: {
    ...EXPLANATION_SAMPLE,
    question: { name: MARKUP, type: REVERSED },
    container: { id: "1", name: TERMINAL },
    networks: EVIL,
    steps: EVIL.map((why) => {
      return { layer: "servers", isAnswer: true, why, events: [{ atMs: 1, server: why, what: why }] };
    }),
    reply: {
      rcode: "NOERROR",
      isTruncated: false,
      isAuthoritative: false,
      isUnreadable: false,
      answers: EVIL.map((name) => ({ name, type: "TXT", ttl: 1, data: name })),
      authority: [],
      additional: [],
      extendedErrors: EVIL.map((text) => ({ code: 1, name: text, text })),
    },
    causes: EVIL.map((sentence) => ({
      code: "unknown-name",
      sentence,
      fix: sentence,
      lastingFix: null,
      isBreaking: true,
    })),
    hints: EVIL,
  },
  doctor: [
    ...EVIL.map((what) => ({ subject: what, finding: { what, state: "problem", detail: what, remedy: what } })),
    {
      problems: EVIL.map((title) => ({
        state: "problem",
        title,
        why: [title],
        subjects: [title],
        symptoms: [{ text: title, subjects: [title] }],
        fixNow: [title],
        fixForGood: [title],
        remedies: [title],
      })),
    },
  ],
};

let browser: Browser;
let open: OpenSample;
before(async () => {
  browser = await startBrowser();
  open = await openSample(browser, evilSnapshot(), { more: MORE });
});
after(async () => await browser.close());

/** Nothing has run, nothing became an element or a control character, and nothing is wider than the page. */
async function assertHarmless(page: Page): Promise<void> {
  assert.equal(await page.evaluate("globalThis.hacked"), undefined);
  assert.equal(await page.evaluate("document.querySelectorAll('img, script').length"), 2, "the icon and the program");
  const content = await page.content();
  for (const raw of ["\u0007", "\u001B", "\u202E", "\u2066"]) assert.ok(!content.includes(raw));
  assert.equal(await overflowOf(page), 0);
  assert.deepEqual(open.errors, []);
}

/** All of them come to be in the panel, as text; where a text is cut short, its beginning is. */
async function assertShown(selector: string, chars = Infinity): Promise<void> {
  await waitFor(`all texts in ${selector}`, async () => {
    const text = (await open.page.locator(selector).first().textContent()) ?? "";
    return SHOWN.every((each) => text.includes(each.slice(0, chars))) ? true : undefined;
  });
}

test("in what fails, the table, the drawing, the servers, the queries and the events", async () => {
  const { page } = open;
  // What the outside world does not know is folded away.
  await page.locator(".failure").nth(4).waitFor({ state: "attached" });
  for (const panel of ["#failing", ".matrix", "#servers", "#live tbody", "#events"]) await assertShown(panel);
  await assertShown(".drawing svg", 10);
  await assertHarmless(page);
  assert.equal(
    await page.evaluate("getComputedStyle(document.querySelector('.failure .wire')).unicodeBidi"),
    "isolate",
  );
});

test("in a container's drawer", async () => {
  const { page } = open;
  await page.locator("#failing .link").first().click();
  await page.locator(".drawer[open] .own-queries .query").first().waitFor();
  await page.locator(".drawer[open]", { hasText: "search" }).waitFor();
  await assertShown(".drawer .pairs-list");
  await assertHarmless(page);
  await page.keyboard.press("Escape");
});

test("in an explanation", async () => {
  const { page } = open;
  await page.locator("#ask-name").fill(MARKUP);
  await page.locator("#ask").getByRole("button", { name: "Explain" }).click();
  await page.locator(".station").nth(5).waitFor();
  await assertShown("#ask .answer");
  await assertHarmless(page);
});

test("in the checks", async () => {
  const { page } = open;
  await page.getByRole("button", { name: "Run checks" }).click();
  await page.locator(".problem").nth(4).waitFor();
  await assertShown(".checks");
  await assertHarmless(page);
});

test("in the entries of the cache", async () => {
  const { page } = open;
  await page.getByRole("button", { name: "Cache" }).click();
  await page.locator(".dialog[open] tbody tr").nth(4).waitFor();
  await assertShown(".dialog[open] tbody");
  await assertHarmless(page);
  await page.keyboard.press("Escape");
});

test("in the choice of a project", async () => {
  const { page } = open;
  await page.getByLabel("Compose project").selectOption({ index: 1 });
  await page.locator(".failure").first().waitFor();
  await assertHarmless(page);
});
