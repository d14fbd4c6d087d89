/**
 * dns11 top: a live view of query rates, cache hits, failures and latency, updated every second.
 */
import type { Command } from "commander";

import { loadReports } from "../src/features/load.ts";
import type { ContainersRequest, ControlClient } from "../src/api/control-client.ts";
import type { CountersReport } from "../src/api/queries.ts";
import { codeOf } from "../src/base/lib/fault.ts";
import { sleep } from "../src/base/lib/async.ts";
import { containersCalled } from "../src/base/model/container-choice.ts";
import { type ProjectOptions, addProjectOption, containersRequest } from "./options/container-argument.ts";
import { type ControlOptions, addControlOptions, addJsonOption, clientFor } from "./options/control-options.ts";
import { errorText } from "./process/exit-code.ts";
import { explanationText } from "./text/explanation-text.ts";
import { failuresText } from "./text/failures-text.ts";
import { jsonLine } from "./text/printable.ts";
import { abortOnSignal, stopped } from "./process/own-process.ts";
import { PLAIN, painterFor } from "./text/terminal.ts";
import { QueryStatistics, type Snapshot } from "./top/query-statistics.ts";
import { renderSnapshot } from "./top/render.ts";
import { Screen } from "./screen/screen.ts";
import { type Inquiry, TopView } from "./top/view.ts";

interface TopOptions extends ControlOptions, ProjectOptions {
  readonly once?: boolean;
}

const INTERVAL_MS = 1_000;
/** Finding out why names fail costs more than reading counters. */
const STATE_EVERY_S = 3;
/** Past queries that the first snapshot includes. */
const LAST_COUNTED = 10_000;
const PLAIN_COLUMNS = 80;

export function addTop(program: Command): void {
  const command = program
    .command("top [container]")
    .summary("Live view of the busiest containers and names")
    .description(
      "Live view of the busiest containers and names: rates, cache hits, failures, latency. Press ? for the keys, q to quit.",
    )
    .option("--once", "print one snapshot after a second and exit; the default without a terminal");
  addJsonOption(command, "print a JSON snapshot per line every second, or a single one with --once");
  addControlOptions(addProjectOption(command)).action(
    async (container: string | undefined, options: TopOptions) => await top(container, options),
  );
}

async function top(container: string | undefined, options: TopOptions): Promise<void> {
  const client = await clientFor(options);
  const signal = abortOnSignal();
  const places = await placesOf(client, container, options);
  const isJson = options.json === true;
  if (options.once === true || (!isJson && !process.stdout.isTTY)) {
    await watch(client, places, signal, (snapshot) => {
      process.stdout.write(isJson ? jsonLine(snapshot) : plain(snapshot));
      return false;
    });
  } else if (isJson) {
    await watch(client, places, signal, (snapshot) => process.stdout.write(jsonLine(snapshot)) || true);
  } else {
    await live(client, places, signal);
  }
}

/** The containers that are shown. */
interface Places {
  readonly request: ContainersRequest;
  /** The name of the only one; its counters are chosen here, because those of all come in one reply. */
  readonly only?: string;
}

async function placesOf(client: ControlClient, word: string | undefined, options: TopOptions): Promise<Places> {
  const request = await containersRequest(client, word, options);
  if (request.container === undefined) return { request };
  const { containers } = await client.status();
  const [only] = containersCalled(containers, request.container);
  return { request, ...(only !== undefined && { only: only.name }) };
}

async function countersOf(client: ControlClient, { request, only }: Places): Promise<CountersReport> {
  const { container: _, ...filter } = request;
  const report = await client.counters(filter);
  return only === undefined ? report : { containers: report.containers.filter(({ container }) => container === only) };
}

function plain(snapshot: Snapshot): string {
  const columns = process.stdout.columns || Number(process.env["COLUMNS"]) || PLAIN_COLUMNS;
  const lines = renderSnapshot(snapshot, { columns, rows: undefined }, painterFor(process.stdout));
  return `${lines.map((line) => line.trimEnd()).join("\n")}\n`;
}

async function live(client: ControlClient, places: Places, signal: AbortSignal): Promise<void> {
  const quit = new AbortController();
  const paint = painterFor(process.stdout);
  const draw = (): void => screen.draw(view.frame(screen.size, paint));
  const view = new TopView({
    ask: async (inquiry, width) => await answerTo(client, inquiry, width).catch(errorText),
    onChange: draw,
    onQuit: () => quit.abort(),
  });
  const screen = new Screen((key) => view.press(key), draw);
  try {
    await watch(client, places, AbortSignal.any([signal, quit.signal]), (snapshot) => {
      view.update(snapshot);
      draw();
      return true;
    });
  } finally {
    screen.close();
  }
}

/** Why a name fails in a container, or what fails in it. */
async function answerTo(client: ControlClient, inquiry: Inquiry, width: number): Promise<string> {
  const display = { ...PLAIN, width };
  if (inquiry.kind === "container") {
    return failuresText(await client.failures({ container: inquiry.container }), true, Date.now(), display);
  }
  const { container, name, type } = inquiry;
  return explanationText(await client.explain({ container, name, type }), false, display, await loadReports());
}

/** Passes a snapshot to `show` every second until `show` returns false. */
async function watch(
  client: ControlClient,
  places: Places,
  signal: AbortSignal,
  show: (snapshot: Snapshot) => boolean,
): Promise<void> {
  const statistics = new QueryStatistics();
  const done = new AbortController();
  const end = AbortSignal.any([signal, done.signal]);
  let failure: unknown;
  const following = (async () => {
    for await (const each of client.follow({ ...places.request, last: LAST_COUNTED }, end))
      statistics.addQuery(each, Date.now());
    if (!end.aborted) throw stopped();
  })().catch((error: unknown) => {
    failure = error;
    done.abort();
  });
  try {
    statistics.addCounters(await countersOf(client, places), performance.now());
    await addState(client, places, statistics);
    for (let second = 1; ; second++) {
      await sleep(INTERVAL_MS, end);
      if (end.aborted) break;
      statistics.addCounters(await countersOf(client, places), performance.now());
      if (second % STATE_EVERY_S === 0) await addState(client, places, statistics);
      if (!show(statistics.snapshot(Date.now()))) break;
    }
  } finally {
    done.abort();
    await following;
  }
  if (failure !== undefined) throw failure;
}

/** What fails, and which servers are down. */
async function addState(client: ControlClient, places: Places, statistics: QueryStatistics): Promise<void> {
  statistics.setUpstreams(await client.upstreams());
  try {
    statistics.setFailures(await client.failures(places.request));
  } catch (error) {
    // Failures are not recorded; the stream of queries says so, too.
    if (codeOf(error) !== "QUERIES_OFF") throw error;
  }
}
