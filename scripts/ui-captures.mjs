// @ts-check
/**
 * Captures of the page: pictures of `dns11 ui` for the documents, in several widths and both colour schemes, from one real run with a
 * broken project beside a private engine, which is started and removed here. Needs root and Chromium (make ui-captures installs it).
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { shopService, startShop } from "./shop.mjs";
import { startEngine } from "../dist/test/support/engine/engine.js";
import { openPage, startBrowser } from "../dist/test/support/page/browser.js";
import { UiCommand } from "../dist/test/support/program/ui-command.js";
import { inNetns } from "../dist/test/support/rig/netns.js";
import { waitFor } from "../dist/test/support/rig/wait.js";
import { startUpstream } from "../dist/test/support/servers/upstream.js";

const FOLDER = "docs/img";
const WIDTHS = /** @type {const} */ ([
  [1440, 1000],
  [1024, 1000],
  [390, 844],
]);
const SCHEMES = /** @type {const} */ (["light", "dark"]);
/** Enough for sparklines that show something. */
const HISTORY_MS = 60_000;

const work = mkdtempSync(join(tmpdir(), "d11-ui-captures-"));
const stateDir = join(work, "run");
const engine = await startEngine({ suite: "forky", resolvConf: "nameserver 127.0.0.1\n" });
const upstream = await startUpstream(engine);
/** @type {import("node:child_process").ChildProcess | undefined} */
let daemon;
/** @type {UiCommand | undefined} */
let ui;
try {
  const { web, api, worker } = await startShop(engine);
  const cache = await shopService(engine, "cache", 1, ["shop_back"]);
  daemon = startDaemon();
  ui = await untilStarted();
  await cache.stop();
  for (const [container, names] of /** @type {const} */ ([
    [web, "api api www.ok.test"],
    [api, "db web"],
    [worker, "db api cache cdn.ok.test"],
  ])) {
    const loop = `while true; do for name in ${names}; do nslookup $name >/dev/null 2>&1; sleep 0.4; done; done`;
    await engine.docker("exec", "--detach", container.name, "sh", "-c", loop);
  }
  const browser = await startBrowser();
  const first = await openPage(browser);
  await first.goto(ui.url);
  await first.locator("#failing > .failures > .failure-bad").nth(1).waitFor();
  await new Promise((resolve) => setTimeout(resolve, HISTORY_MS));
  for (const scheme of SCHEMES) {
    for (const [width, height] of WIDTHS) {
      const page = await openPage(browser, { width, height, scheme });
      await page.goto(ui.url);
      await page.locator("#failing > .failures > .failure-bad").nth(1).waitFor();
      for (const part of [".cell-fails", ".chip-fails", ".server-up", ".query", ".event"])
        await page.locator(part).first().waitFor();
      await page.screenshot({ path: `${FOLDER}/ui-${width}-${scheme}.png` });
      console.log(`docs: ${FOLDER}/ui-${width}-${scheme}.png written`);
      if (width === 1440) {
        await page.locator("#failing").getByRole("button", { name: "Explain" }).first().click();
        await page.locator(".station-fail, .station-answer").waitFor();
        await page.locator("#failing .explain-card").screenshot({ path: `${FOLDER}/ui-explain-${scheme}.png` });
      }
      await page.context().close();
    }
  }
  await browser.close();
} finally {
  await ui?.[Symbol.asyncDispose]();
  if (daemon?.kill("SIGTERM") === true) await once(daemon, "close");
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
  rmSync(work, { recursive: true, force: true });
}

function startDaemon() {
  const [command = "", ...args] = inNetns(engine.netnsPath, process.execPath, [
    "dist/cmd/dns11.js",
    "run",
    "-H",
    engine.host,
    "--state-dir",
    stateDir,
  ]);
  return spawn(command, args, { stdio: ["ignore", "inherit", "ignore"] });
}

/** The command fails as long as dns11 is not there. */
async function untilStarted() {
  return await waitFor("dns11 ui to start", async () => {
    return await UiCommand.start({ host: engine.host, stateDir }).catch(() => undefined);
  });
}
