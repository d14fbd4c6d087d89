/**
 * Browser of a test: the machine's Chromium without a window system, which takes half of the processor time of the one with it.
 * It reaches loopback addresses only.
 */
import { type Browser, type Page, chromium } from "playwright-core";

import { WAIT_TIMEOUT_MS } from "../rig/wait.ts";

export interface View {
  readonly width?: number;
  readonly height?: number;
  readonly scheme?: "light" | "dark";
}

/**
 * A process started ahead for the next page takes a fifth of the processor time of a test. Of several such flags the last
 * one counts, so Playwright's features that matter here are repeated.
 */
const WITHOUT = [
  "SpareRendererForSitePerProcess",
  ...["AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsFirstBalancedModeAutoEnable"],
  ...["HttpsUpgrades", "MediaRouter", "NetworkTimeServiceQuerying", "OptimizationHints", "PaintHolding"],
];

export async function startBrowser(): Promise<Browser> {
  return await chromium.launch({
    executablePath: "/usr/bin/chromium-headless-shell",
    args: [
      "--no-sandbox",
      "--no-proxy-server",
      "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE *.localhost",
      `--disable-features=${WITHOUT.join(",")}`,
    ],
    timeout: WAIT_TIMEOUT_MS,
  });
}

/** A page of its own context: nothing is stored from page to page. */
export async function openPage(
  browser: Browser,
  { width = 1440, height = 900, scheme = "light" }: View = {},
): Promise<Page> {
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: scheme,
    reducedMotion: "reduce",
  });
  const page = await context.newPage();
  page.setDefaultTimeout(WAIT_TIMEOUT_MS);
  return page;
}

/** How far it can be scrolled sideways: 0 if nothing is wider than the window. */
export async function overflowOf(page: Page): Promise<number> {
  const all = "[document.body, document.documentElement]";
  return await page.evaluate<number>(`Math.max(0, ...${all}.map((each) => each.scrollWidth - each.clientWidth))`);
}

/** Errors of the page and of its security policy: none is expected. */
export function errorsOf(page: Page): string[] {
  const errors: string[] = [];
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("console", (message) => {
    if (/Content Security Policy|TrustedHTML|Refused to/.test(message.text())) errors.push(message.text());
  });
  return errors;
}
