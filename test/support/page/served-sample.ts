/** ServedSample: the page as built, with data of a sample instead of a run's: requests are answered inside the browser. */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Page, Route } from "playwright-core";

import type { Explanation } from "../../../src/api/names.ts";
import type { Snapshot } from "../../../src/api/snapshot.ts";

export const PAGE_FOLDER = fileURLToPath(new URL("../../../ui", import.meta.url));
const SAMPLE_ORIGIN = "http://127.0.0.1:9512";
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; " +
  "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

export async function serveSample(page: Page, snapshot: Snapshot, explanation?: Explanation): Promise<void> {
  await page.route(`${SAMPLE_ORIGIN}/**`, async (route) => {
    const path = new URL(route.request().url()).pathname;
    if (!path.startsWith("/v1/")) return await serveFile(route, path === "/" ? "/index.html" : path);
    const part = path.slice("/v1/".length);
    if (part === "queries") return await serveLines(route, snapshot.queries?.queries ?? []);
    if (part === "events") return await serveLines(route, snapshot.events?.events ?? []);
    if (part === "explain") return await route.fulfill({ json: explanation });
    return await route.fulfill({ json: snapshot[part as keyof Snapshot] ?? null });
  });
  await page.goto(`${SAMPLE_ORIGIN}/#token=sample`);
}

async function serveFile(route: Route, name: string): Promise<void> {
  if (!existsSync(PAGE_FOLDER + name)) return await route.fulfill({ status: 404 });
  await route.fulfill({ path: PAGE_FOLDER + name, headers: { "content-security-policy": POLICY } });
}

async function serveLines(route: Route, lines: readonly unknown[]): Promise<void> {
  const body = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
  await route.fulfill({ contentType: "application/x-ndjson", body });
}
