/**
 * EgressText: where containers connected to, as text.
 */
import { type EgressConnection, type EgressContainer, type EgressReport, isUnasked } from "../../src/api/egress.ts";
import { ago, localTime } from "./time.ts";
import { printableLines } from "./printable.ts";
import { type Column, type Row, table } from "./table.ts";
import { type Display, PLAIN } from "./terminal.ts";
import { wrapped } from "./wrap.ts";

const HEAD: readonly Column[] = [
  { title: "CONTAINER", min: 12 },
  { title: "NAME", min: 16 },
  { title: "ADDRESS", min: 15 },
  { title: "PORT" },
  { title: "COUNT", isNumber: true },
  { title: "FIRST", drop: 2 },
  { title: "LAST", drop: 1 },
];

export function egressText(report: EgressReport, nowMs = Date.now(), display: Display = PLAIN): string {
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
