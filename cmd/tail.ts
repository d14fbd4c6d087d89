/**
 * dns11 tail: queries as they arrive, with their answers, and why they failed.
 */
import { type Command, InvalidArgumentError, Option } from "commander";

import type { MissedReport, QueryReport } from "../src/api/queries.ts";
import { type ProjectOptions, addProjectOption, containersRequest } from "./options/container-argument.ts";
import { type ControlOptions, addControlOptions, addJsonOption, clientFor } from "./options/control-options.ts";
import { loadReports } from "../src/features/load.ts";
import { jsonLine } from "./text/printable.ts";
import { abortOnSignal, stopped } from "./process/own-process.ts";
import { QueryLines } from "./text/query-lines.ts";
import { displayOf } from "./text/terminal.ts";

interface TailOptions extends ControlOptions, ProjectOptions {
  readonly name?: string;
  readonly rcode?: string;
  readonly last?: number;
  readonly follow?: boolean;
}

export function addTail(program: Command): void {
  const command = program
    .command("tail [container]")
    .summary("Show queries and their results as they arrive")
    .description("Show queries and their results as they arrive, of one container or of all")
    .option("--name <pattern>", "only names that match the pattern (* any text, ? one character)")
    .option("--rcode <codes>", "only these response codes, such as NXDOMAIN,SERVFAIL")
    .addOption(
      new Option("-n, --last <number>", "show this many past queries and exit; with -f, go on").argParser(readCount),
    )
    .option("-f, --follow", "show queries as they arrive; the default without -n");
  addJsonOption(command, "print one JSON object per line");
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
    causes: true,
  };
  const { container: only, ...places } = chosen;
  const names = only === undefined ? (await client.counters(places)).containers.map((each) => each.container) : [];
  const lines = new QueryLines(displayOf(process.stdout), names, await loadReports());
  const show = (each: QueryReport | MissedReport): string =>
    options.json === true ? jsonLine(each) : `${lines.next(each)}\n`;
  if (last !== undefined && options.follow !== true) {
    const { queries } = await client.queries({ ...filter, last });
    for (const query of queries) process.stdout.write(show(query));
    return;
  }
  for await (const each of client.follow({ ...filter, ...(last !== undefined && { last }) }, signal)) {
    process.stdout.write(show(each));
  }
  if (!signal.aborted) throw stopped();
}

function readCount(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 10_000) return Number(text);
  throw new InvalidArgumentError("Use a whole number from 0 to 10000.");
}
