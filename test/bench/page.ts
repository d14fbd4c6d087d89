// What the page of `dns11 ui` costs the daemon: its queries a second, and its processor time at a steady rate, with all that an open page
// requests and streams, beside none. The browser is this process: it reads what a page reads, at the same intervals.

import { writeFileSync } from "node:fs";
import { join } from "node:path";

import type { Container } from "../support/engine/container.ts";
import { startEngine } from "../support/engine/engine.ts";
import { startDns11 } from "../support/program/dns11.ts";
import { UiCommand } from "../support/program/ui-command.ts";
import { waitFor } from "../support/rig/wait.ts";
import { cpuSeconds } from "./cpu-time.ts";
import { startContainers } from "./crowd.ts";
import { STEADILY_PER_SECOND, atFullSpeed, steadily } from "./dnsperf.ts";
import { type Row, median, readable, spreadOf } from "./figures.ts";

const CONTAINERS = 200;
const NAMES = 10;
const ROUNDS = 5;
const FULL_SECONDS = 2;
// Long enough for every interval of the page.
const STEADY_SECONDS = 5;
const ADDED_MAX = 0.05;

// As the page does.
const STREAMS = ["/v1/queries?follow=true&perSecond=100&last=50", "/v1/events?follow=true&last=100"];
const POLLED = { "/v1/failures": 1_000, "/v1/upstreams": 2_000, "/v1/history": 5_000, "/v1/status": 5_000 };
const ONCE = ["/v1/containers?all=true", "/v1/networks", "/v1/matrix"];

const SIDES = ["without a page", "with a page"] as const;
type Side = (typeof SIDES)[number];
type Figures = { perSecond: number[]; cpuShare: number[] };

export async function benchPage(): Promise<Row[]> {
  await using engine = await startEngine();
  const containers = await startContainers(engine, CONTAINERS);
  const client = containers[0] as Container;
  const file = join(engine.folder, "page-queries");
  writeFileSync(file, Array.from({ length: NAMES }, (_, at) => `crowd${at} A\n`).join(""));
  await using instance = await startDns11(engine, { settings: { keeper: "off" } });
  await waitFor("all containers to be attached", async () => {
    const { containers: all } = await instance.status();
    return all.filter(({ state }) => state === "attached").length === CONTAINERS ? true : undefined;
  });
  await instance.waitForKernel();
  const input = { file, rcode: "NOERROR" } as const;
  const found: Record<Side, Figures> = {
    "without a page": { perSecond: [], cpuShare: [] },
    "with a page": { perSecond: [], cpuShare: [] },
  };
  const measure = async (side: Side): Promise<void> => {
    const { perSecond = 0 } = await atFullSpeed(client, input, instance.pid, FULL_SECONDS);
    found[side].perSecond.push(perSecond);
    const before = cpuSeconds(instance.pid);
    await steadily(client, input, STEADY_SECONDS);
    found[side].cpuShare.push((cpuSeconds(instance.pid) - before) / STEADY_SECONDS);
  };
  for (let round = 0; round < ROUNDS; round++) {
    console.error(`bench: page, round ${round + 1} of ${ROUNDS}`);
    await measure("without a page");
    await using ui = await UiCommand.start({ host: engine.host, stateDir: instance.stateDir });
    using _page = openPage(ui);
    await measure("with a page");
  }
  return rowsOf(found);
}

function openPage(ui: UiCommand): Disposable {
  const closed = new AbortController();
  const { signal } = closed;
  const read = async (path: string): Promise<void> => {
    const { body } = await ui.fetch(path, { signal });
    for await (const _chunk of body ?? []) if (signal.aborted) return;
  };
  const ignore = (): undefined => undefined;
  for (const path of [...STREAMS, ...ONCE]) read(path).catch(ignore);
  const timers = Object.entries(POLLED).map(([path, everyMs]) =>
    setInterval(() => void read(path).catch(ignore), everyMs),
  );
  return {
    [Symbol.dispose]: () => {
      for (const timer of timers) clearInterval(timer);
      closed.abort();
    },
  };
}

function rowsOf(found: Record<Side, Figures>): Row[] {
  const kept = median(found["with a page"].perSecond) / median(found["without a page"].perSecond);
  const speeds = SIDES.map((side) => ({
    what: `queries/s, ${side}`,
    measured: readable(spreadOf(found[side].perSecond), 0),
  }));
  const shares = SIDES.map((side) => ({
    what: `processor time at ${STEADILY_PER_SECOND} queries/s, ${side}`,
    measured: `${readable(spreadOf(found[side].cpuShare.map((share) => share * 100)), 1)} % of a core`,
  }));
  // On a machine with two cores, the page and the load take processor time from the daemon, too.
  const added = median(found["with a page"].cpuShare) - median(found["without a page"].cpuShare);
  return [
    ...speeds,
    { what: "queries/s with a page, of those without", measured: `${(kept * 100).toFixed(1)} %` },
    ...shares,
    {
      what: "processor time that the page adds",
      measured: `${(added * 100).toFixed(1)} % of a core`,
      target: `<= ${ADDED_MAX * 100} %`,
      isReached: added <= ADDED_MAX,
    },
  ];
}
