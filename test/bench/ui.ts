// The page of dns11 ui in a real browser: 200 containers, and 2,000 queries a second that all reach the page, which is more than dns11
// sends to it. How smooth it is, and how much memory it takes. The daemon's side is a control socket that sends the sample.

import type { ServerResponse } from "node:http";
import { readFileSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

import { openPage, startBrowser } from "../support/page/browser.ts";
import { manyContainers, sampleSnapshot } from "../support/page/sample.ts";
import { SampleControl } from "../support/page/sample-control.ts";
import { PAGE_FOLDER } from "../support/page/served-sample.ts";
import { UiCommand } from "../support/program/ui-command.ts";
import type { Row } from "./figures.ts";
import { benchBreakage } from "./ui-breakage.ts";
import { median, quantile } from "./figures.ts";

const CONTAINERS = 200;
const PER_SECOND = 2_000;
const EVERY_MS = 20;
const MEASURED_MS = 10_000;
const FRAMES_MIN = 30;
const WIRE_KIB_MAX = 150;

/** Intervals between frames, and tasks that are longer than 50 ms. */
const MEASURE = `new Promise((resolve) => {
  const [frames, long] = [[], []];
  new PerformanceObserver((list) => { for (const each of list.getEntries()) long.push(each.duration); }).observe({ entryTypes: ["longtask"] });
  const startMs = performance.now();
  let beforeMs = startMs;
  const frame = (nowMs) => {
    frames.push(nowMs - beforeMs);
    beforeMs = nowMs;
    if (nowMs - startMs < ${MEASURED_MS}) requestAnimationFrame(frame);
    else resolve({ frames, long });
  };
  requestAnimationFrame(frame);
})`;

export async function benchUi(): Promise<Row[]> {
  const containers = manyContainers(CONTAINERS);
  const names = containers.map(({ name }) => name);
  await using control = await SampleControl.start(sampleSnapshot({ containers }), (response) =>
    sendQueries(response, names),
  );
  const browser = await startBrowser();
  try {
    await using ui = await UiCommand.start(control);
    const page = await openPage(browser);
    const startMs = performance.now();
    await page.goto(ui.url);
    await page.locator(".query").nth(20).waitFor();
    const drawnMs = performance.now() - startMs;
    const { frames, long } = await page.evaluate<{ frames: number[]; long: number[] }>(MEASURE);
    const perSecond = (frames.length * 1_000) / sum(frames);
    const heapMiB = (await page.evaluate<number>("performance.memory.usedJSHeapSize")) / 1024 / 1024;
    await page.context().close();
    const wireKiB = wireBytes() / 1024;
    return [
      {
        what: "page, compressed",
        measured: `${wireKiB.toFixed(0)} KiB`,
        target: `<= ${WIRE_KIB_MAX} KiB`,
        isReached: wireKiB <= WIRE_KIB_MAX,
      },
      { what: `${CONTAINERS} containers, from the URL to the last panel`, measured: `${drawnMs.toFixed(0)} ms` },
      {
        what: `${PER_SECOND} queries/s, frames/s`,
        measured: perSecond.toFixed(0),
        target: `>= ${FRAMES_MIN}`,
        isReached: perSecond >= FRAMES_MIN,
      },
      { what: "between two frames, p50", measured: `${median(frames).toFixed(1)} ms` },
      { what: "between two frames, p99", measured: `${quantile(frames, 0.99).toFixed(1)} ms` },
      {
        what: `tasks over 50 ms in ${MEASURED_MS / 1_000} s`,
        measured: `${long.length}, ${sum(long).toFixed(0)} ms in all`,
      },
      { what: "memory of the page's program", measured: `${heapMiB.toFixed(1)} MiB` },
      ...(await benchBreakage(browser)),
    ];
  } finally {
    await browser.close();
  }
}

function sendQueries(response: ServerResponse, containers: readonly string[]): void {
  response.writeHead(200, { "content-type": "application/x-ndjson" });
  let seq = 0;
  const timer = setInterval(() => {
    const lines = Array.from({ length: (PER_SECOND * EVERY_MS) / 1_000 }, () => {
      seq += 1;
      const time = new Date().toISOString();
      const query = {
        container: containers[seq % containers.length],
        seq,
        time,
        name: `name${seq}.example.com`,
        type: "A",
        rcode: "NOERROR",
      };
      return `${JSON.stringify({ ...query, answers: 1, addresses: ["172.18.0.2"], ttl: 5, transport: "udp", result: "local", upstream: null, ms: 0 })}\n`;
    });
    response.write(lines.join(""));
  }, EVERY_MS);
  response.on("close", () => clearInterval(timer));
}

function wireBytes(): number {
  return sum(
    readdirSync(PAGE_FOLDER)
      .map((name) => join(PAGE_FOLDER, name))
      .filter((path) => statSync(path).isFile())
      .map((path) => gzipSync(readFileSync(path)).length),
  );
}

function sum(values: readonly number[]): number {
  return values.reduce((total, each) => total + each, 0);
}
