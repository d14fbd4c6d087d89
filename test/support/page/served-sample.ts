/** ServedSample: the page as built, with data of a sample instead of a run's: requests are answered inside the browser. */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Browser, Page, Route } from "playwright-core";

import type { Snapshot } from "../../../src/api/snapshot.ts";
import { type View, errorsOf, openPage } from "./browser.ts";

export const PAGE_FOLDER = fileURLToPath(new URL("../../../ui", import.meta.url));
const SAMPLE_ORIGIN = "http://127.0.0.1:9512";
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; " +
  "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

/** Answers of routes that a snapshot does not have, such as `explain`; an array is a stream. */
export type MoreAnswers = Readonly<Record<string, unknown>>;

export interface OpenSample extends AsyncDisposable {
  readonly page: Page;
  readonly errors: readonly string[];
}

/** An open page with all of the sample's panels. */
export async function openSample(
  browser: Browser,
  snapshot: Snapshot,
  { view = {}, more }: { readonly view?: View; readonly more?: MoreAnswers } = {},
): Promise<OpenSample> {
  const page = await openPage(browser, view);
  const errors = errorsOf(page);
  await serveSample(page, snapshot, more);
  await page.goto(`${SAMPLE_ORIGIN}/#token=sample`);
  await page.locator(".chip").first().waitFor();
  await page.locator(".query").first().waitFor();
  return { page, errors, [Symbol.asyncDispose]: async () => await page.context().close() };
}

async function serveSample(page: Page, snapshot: Snapshot, more: MoreAnswers = {}): Promise<void> {
  await page.route(`${SAMPLE_ORIGIN}/**`, async (route) => {
    const { pathname: path, searchParams } = new URL(route.request().url());
    if (!path.startsWith("/v1/")) return await serveFile(route, path === "/" ? "/index.html" : path);
    const part = path.slice("/v1/".length);
    const isStream = searchParams.get("follow") === "true";
    if (part === "queries" && isStream) return await serveLines(route, snapshot.queries?.queries ?? []);
    if (part === "events" && isStream) return await serveLines(route, snapshot.events?.events ?? []);
    const answer = more[part] ?? snapshot[part as keyof Snapshot] ?? null;
    return Array.isArray(answer) ? await serveLines(route, answer) : await route.fulfill({ json: answer });
  });
}

async function serveFile(route: Route, name: string): Promise<void> {
  if (!existsSync(PAGE_FOLDER + name)) return await route.fulfill({ status: 404 });
  await route.fulfill({ path: PAGE_FOLDER + name, headers: { "content-security-policy": POLICY } });
}

async function serveLines(route: Route, lines: readonly unknown[]): Promise<void> {
  const body = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
  await route.fulfill({ contentType: "application/x-ndjson", body });
}
