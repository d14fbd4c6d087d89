/**
 * dns11 tail: queries as they arrive.
 */
import { type Command, InvalidArgumentError, Option } from "commander";

import type { MissedReport, QueryReport } from "../src/api/queries.ts";
import { Fault } from "../src/base/lib/fault.ts";
import { type ProjectOptions, addProjectOption, containersRequest } from "./container-argument.ts";
import { type ControlOptions, addControlOptions, clientFor } from "./control-options.ts";
import { abortOnSignal } from "./run.ts";
import { printable } from "./printable.ts";
import { type Colour, type Paint, painterFor } from "./terminal.ts";

interface TailOptions extends ControlOptions, ProjectOptions {
  readonly name?: string;
  readonly rcode?: string;
  readonly last?: number;
  readonly follow: boolean;
}

/** The default of --last with --no-follow. */
const LAST_SHOWN = 20;

export function addTail(program: Command): void {
  const command = program
    .command("tail [container]")
    .summary("Show queries and their results as they arrive")
    .description("Show queries and their results as they arrive, of one container or of all")
    .option("--name <pattern>", "only names that match the pattern (* any text, ? one character)")
    .option("--rcode <codes>", "only these response codes, such as NXDOMAIN,SERVFAIL")
    .addOption(new Option("--last <number>", "start with this many past queries").argParser(readCount))
    .option("--no-follow", `show past queries (the last ${LAST_SHOWN}, or --last) and exit`)
    .option("--json", "print one JSON object per line");
  addControlOptions(addProjectOption(command)).action(
    async (container: string | undefined, options: TailOptions) => await tail(container, options),
  );
}

async function tail(container: string | undefined, options: TailOptions): Promise<void> {
  const { name, rcode, last } = options;
  const client = await clientFor(options);
  const signal = abortOnSignal();
  const chosen = await containersRequest(client, container, options);
  const filter = {
    ...chosen,
    ...(name !== undefined && { name }),
    ...(rcode !== undefined && { rcode }),
  };
  const { container: only, ...places } = chosen;
  const names = only === undefined ? (await client.counters(places)).containers.map((each) => each.container) : [];
  const write = lineWriter(painterFor(process.stdout), names);
  const show = options.json === true ? (each: object) => JSON.stringify(each) : write;
  if (!options.follow) {
    const { queries } = await client.queries({ ...filter, last: last ?? LAST_SHOWN });
    for (const query of queries) process.stdout.write(`${show(query)}\n`);
    return;
  }
  // The reader may close the pipe at any time: `dns11 tail | head`.
  let isRead = true;
  process.stdout.on("error", () => {
    isRead = false;
    process.exit();
  });
  for await (const each of client.follow({ ...filter, ...(last !== undefined && { last }) }, signal)) {
    if (!isRead) return;
    process.stdout.write(`${show(each)}\n`);
  }
  if (!signal.aborted) throw new Fault("ENDED", "dns11 has stopped");
}

/** Formats lines with aligned columns, as far as the length of the names allows. */
function lineWriter(paint: Paint, names: readonly string[]): (each: QueryReport | MissedReport) => string {
  let width = 0;
  const widen = (name: string): void => {
    width = Math.max(width, Math.min(CONTAINER_WIDTH_MAX, name.length));
  };
  for (const name of names) widen(name);
  return (each) => {
    widen(each.container);
    const container = printable(each.container).padEnd(width);
    if ("missed" in each) return paint(`-- ${container}  ${each.missed} queries skipped (too many to show)`, "dim");
    const { time, rcode, result, ms, type, name } = each;
    return [
      paint(time.slice(11, 23), "dim"),
      container,
      paint(rcode.padEnd(8), colourOf(rcode)),
      result.padEnd(9),
      (ms === 0 ? "-" : `${ms.toFixed(1)} ms`).padStart(9),
      (type ?? "-").padEnd(5),
      `${printable(name ?? "(no name)")}  ${paint(detailsOf(each), "dim")}`.trimEnd(),
    ].join("  ");
  };
}

const CONTAINER_WIDTH_MAX = 32;

function detailsOf({ answers, ttl, upstream, transport }: QueryReport): string {
  const parts = [
    answers === 0 ? undefined : `${answers} ${answers === 1 ? "record" : "records"}`,
    ttl === null ? undefined : `ttl ${ttl}`,
    transport === "tcp" ? "tcp" : undefined,
    upstream === null ? undefined : `from ${printable(upstream)}`,
  ];
  return parts.filter((part) => part !== undefined).join(", ");
}

function colourOf(rcode: string): Colour {
  return rcode === "NOERROR" ? "green" : rcode === "NXDOMAIN" ? "yellow" : "red";
}

function readCount(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 10_000) return Number(text);
  throw new InvalidArgumentError("Use a whole number from 0 to 10000.");
}
