/**
 * dns11 top: who asks how much, and what becomes of it, every second anew.
 */
import type { Command } from "commander";

import type { ControlClient } from "../src/api/control-client.ts";
import { Fault } from "../src/base/lib/fault.ts";
import { type ControlOptions, addControlOptions, clientFor } from "./control-options.ts";
import { abortOnSignal } from "./run.ts";
import { painterFor } from "./terminal.ts";
import { renderSnapshot } from "./top/render.ts";
import { Screen } from "./top/screen.ts";
import { type Snapshot, QueryStatistics } from "./top/query-statistics.ts";

interface TopOptions extends ControlOptions {
  readonly once?: boolean;
}

const EVERY_MS = 1_000;
/** Of what is there already, so much is counted in. */
const LAST_COUNTED = 10_000;
const PLAIN_COLUMNS = 80;

export function addTop(program: Command): void {
  const command = program
    .command("top")
    .description("Show who asks how much, what is cached, fails or takes long, by container and by name; q ends it")
    .option("--once", "show it once, after a second, and end; so it is where there is no terminal")
    .option("--json", "as JSON: with --once one snapshot, otherwise one a second, a line each");
  addControlOptions(command).action(async (options: TopOptions) => await top(options));
}

async function top(options: TopOptions): Promise<void> {
  const client = await clientFor(options);
  const signal = abortOnSignal();
  const isJson = options.json === true;
  if (options.once === true || (!isJson && !process.stdout.isTTY)) {
    await watch(client, signal, (snapshot) => {
      process.stdout.write(isJson ? `${JSON.stringify(snapshot)}\n` : plain(snapshot));
      return false;
    });
  } else if (isJson) {
    process.stdout.on("error", () => process.exit());
    await watch(client, signal, (snapshot) => process.stdout.write(`${JSON.stringify(snapshot)}\n`) || true);
  } else {
    await live(client, signal);
  }
}

function plain(snapshot: Snapshot): string {
  const columns = process.stdout.columns || Number(process.env["COLUMNS"]) || PLAIN_COLUMNS;
  const lines = renderSnapshot(snapshot, { columns, rows: undefined }, painterFor(process.stdout));
  return `${lines.map((line) => line.trimEnd()).join("\n")}\n`;
}

async function live(client: ControlClient, signal: AbortSignal): Promise<void> {
  const quit = new AbortController();
  const paint = painterFor(process.stdout);
  let last: Snapshot | undefined;
  const draw = (): void => {
    if (last !== undefined) screen.draw(renderSnapshot(last, screen.size, paint));
  };
  const screen = new Screen(() => quit.abort(), draw);
  try {
    await watch(client, AbortSignal.any([signal, quit.signal]), (snapshot) => {
      last = snapshot;
      draw();
      return true;
    });
  } finally {
    screen.close();
  }
}

/** Takes a snapshot every second, as long as whoever is shown one wants another. */
async function watch(client: ControlClient, signal: AbortSignal, show: (snapshot: Snapshot) => boolean): Promise<void> {
  const tally = new QueryStatistics();
  const over = new AbortController();
  const end = AbortSignal.any([signal, over.signal]);
  let failure: unknown;
  const following = (async () => {
    for await (const each of client.follow({ last: LAST_COUNTED }, end)) tally.addQuery(each, Date.now());
    if (!end.aborted) throw new Fault("ENDED", "dns11 has ended, and with it what there is to see");
  })().catch((error: unknown) => {
    failure = error;
    over.abort();
  });
  try {
    tally.addCounters(await client.counters(), Date.now());
    for (;;) {
      await pause(EVERY_MS, end);
      if (end.aborted) break;
      tally.addCounters(await client.counters(), Date.now());
      if (!show(tally.snapshot(Date.now()))) break;
    }
  } finally {
    over.abort();
    await following;
  }
  if (failure !== undefined) throw failure;
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    if (signal.aborted) done();
    else signal.addEventListener("abort", done, { once: true });
  });
}
