// From a breakage to the verdict in the browser, and from its mend: a container leaves the network of a service that it looks up, and
// joins it again. Measured from the reply that shows the change to a program in the container.

import { performance } from "node:perf_hooks";
import type { Browser } from "playwright-core";

import { createNetwork, runContainer } from "../support/engine/container.ts";
import { startEngine } from "../support/engine/engine.ts";
import { dig } from "../support/client/dig.ts";
import { startDns11 } from "../support/program/dns11.ts";
import { startUpstream } from "../support/servers/upstream.ts";
import { UiCommand } from "../support/program/ui-command.ts";
import { openPage } from "../support/page/browser.ts";
import { pause, waitFor } from "../support/rig/wait.ts";
import { type Row, median } from "./figures.ts";

const ROUNDS = 10;
const SEEN_MAX_MS = 2_000;
/** Between two rounds, so that they begin anywhere between two requests of the page. */
const PAUSE_MAX_MS = 1_000;

export async function benchBreakage(browser: Browser): Promise<Row[]> {
  await using engine = await startEngine({ resolvConf: "nameserver 127.0.0.1\n" });
  await using _upstream = await startUpstream(engine);
  for (const name of ["front", "back"]) await createNetwork(engine, name);
  const api = await runContainer(engine, { name: "api", networks: ["front", "back"] });
  await runContainer(engine, { name: "db", networks: ["back"] });
  await using instance = await startDns11(engine);
  await using ui = await UiCommand.start({ host: engine.host, stateDir: instance.stateDir });
  const page = await openPage(browser);
  await page.goto(ui.url);
  const untilSeen = async (command: string, answers: number, verdict: string): Promise<number> => {
    await engine.docker("network", command, "back", "api");
    await waitFor("the change to be answered", async () =>
      (await dig(api, "db")).answer.length === answers ? true : undefined,
    );
    const startMs = performance.now();
    await page.locator(".sentence strong", { hasText: verdict }).waitFor();
    return performance.now() - startMs;
  };
  const [broken, mended]: [number[], number[]] = [[], []];
  for (let round = 0; round < ROUNDS; round++) {
    await pause(Math.random() * PAUSE_MAX_MS);
    broken.push(await untilSeen("disconnect", 0, "1 name fails in 1 container"));
    await pause(Math.random() * PAUSE_MAX_MS);
    mended.push(await untilSeen("connect", 1, "All names of containers resolve"));
  }
  await page.context().close();
  return [...rowsOf("a name fails until the verdict", broken), ...rowsOf("it resolves until the verdict", mended)];
}

function rowsOf(what: string, took: readonly number[]): Row[] {
  const max = Math.max(...took);
  return [
    { what: `${what}, p50`, measured: `${median(took).toFixed(0)} ms` },
    {
      what: `${what}, maximum`,
      measured: `${max.toFixed(0)} ms`,
      target: `<= ${SEEN_MAX_MS} ms`,
      isReached: max <= SEEN_MAX_MS,
    },
  ];
}
