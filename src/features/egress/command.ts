import type { Command } from "commander";

import { addExamples } from "../../../cmd/help/help-layout.ts";
import { type ProjectOptions, addProjectOption, containersRequest } from "../../../cmd/options/container-argument.ts";
import {
  type ControlOptions,
  addControlOptions,
  addJsonOption,
  clientFor,
} from "../../../cmd/options/control-options.ts";
import { type WatchOptions, addWatchOption, printOrWatch } from "../../../cmd/screen/watch.ts";
import { jsonLine, printableLines } from "../../../cmd/text/printable.ts";
import { type Column, type Row, table } from "../../../cmd/text/table.ts";
import { type Display, displayOf, ago, localTime } from "../../../cmd/text/terminal.ts";
import { wrapped } from "../../../cmd/text/wrap.ts";
import { type EgressConnection, type EgressContainer, type EgressReport, isUnasked } from "../../api/egress.ts";

interface EgressOptions extends ControlOptions, ProjectOptions, WatchOptions {}

export function add(program: Command): void {
  const command = program
    .command("egress [container]")
    .summary("List where containers connected to")
    .description("List where containers connected to and which names they had asked, in one container or in all");
  addExamples(
    command,
    ["dns11 egress web", "the addresses that web connected to, and the names it had asked"],
    ["dns11 egress --project shop --json", "those of one Compose project, for a program"],
  );
  addJsonOption(command, "print JSON");
  addControlOptions(addProjectOption(addWatchOption(command))).action(
    async (container: string | undefined, options: EgressOptions) => await egress(container, options),
  );
}

async function egress(container: string | undefined, options: EgressOptions): Promise<void> {
  const client = await clientFor(options);
  const chosen = await containersRequest(client, container, options);
  await printOrWatch(options, async () => {
    const report = await client.egress(chosen);
    return options.json === true ? jsonLine(report) : egressText(report, Date.now(), displayOf(process.stdout));
  });
}

const HEAD: readonly Column[] = [
  { title: "CONTAINER", min: 12 },
  { title: "NAME", min: 16 },
  { title: "ADDRESS", min: 15 },
  { title: "PORT" },
  { title: "COUNT", isNumber: true },
  { title: "FIRST", drop: 2 },
  { title: "LAST", drop: 1 },
];

function egressText(report: EgressReport, nowMs: number, display: Display): string {
  const { containers, hasNames, leavesOutAnswers } = report;
  const rows = containers.flatMap((container) =>
    container.connections.map((each) => rowOf(container, each, hasNames, nowMs)),
  );
  const notes = [
    ...containers.flatMap((each) => notesOf(each, nowMs)),
    ...(hasNames ? [] : ["names are not shown, because queries.names is not full"]),
    ...(leavesOutAnswers ? [] : ["before Linux 5.16 answers by UDP look like connections of the container's own"]),
  ];
  return [
    rows.length === 0 ? "no connections\n" : table(HEAD, rows, display),
    notes.length === 0 ? "" : printableLines(["", ...notes.flatMap((note) => wrapped(note, display.width))]),
  ].join("");
}

function rowOf(
  { container, isRunning }: EgressContainer,
  connection: EgressConnection,
  hasNames: boolean,
  nowMs: number,
): Row {
  const { address, protocol, port, count, first, last } = connection;
  return {
    cells: [
      isRunning ? container : `${container} (ended)`,
      { text: nameText(connection, hasNames), colour: hasNames && isUnasked(connection) ? "yellow" : undefined },
      address,
      port === null ? protocol : `${port}/${protocol}`,
      String(count),
      localTime(first, nowMs),
      ago(last, nowMs),
    ],
  };
}

function nameText(connection: EgressConnection, hasNames: boolean): string {
  const { names, owner } = connection;
  if (names.length > 0) return names.join(", ");
  if (owner !== null) return owner.kind === "host" ? `(the host, on ${owner.name})` : `(container ${owner.name})`;
  return hasNames ? "(never asked)" : "(hidden)";
}

function notesOf({ container, sharedWith, notRecorded, missingSince }: EgressContainer, nowMs: number): string[] {
  const full = `too many connections to record all since ${missingSince === null ? "" : localTime(missingSince, nowMs)}`;
  return [
    ...(sharedWith === null
      ? notRecorded.map((reason) => `${container} is not recorded: ${reason}`)
      : [`${container} shares the network of ${sharedWith}: its connections are listed there`]),
    ...(missingSince === null ? [] : [`${container}: ${full}`]),
  ];
}
