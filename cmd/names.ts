/**
 * dns11 names: the names of containers: as one container resolves them, or all of the engine by network.
 */
import type { Command } from "commander";

import type { ContainerRef, ListedName, NameList } from "../src/api/names.ts";
import {
  type ProjectOptions,
  addEachOption,
  addProjectOption,
  containersRequest,
  containersToAsk,
} from "./options/container-argument.ts";
import {
  type ControlOptions,
  type Format,
  addControlOptions,
  addFormatOption,
  clientFor,
} from "./options/control-options.ts";
import { jsonLine, printableLines } from "./text/printable.ts";
import { type Cell, type Column, table } from "./text/table.ts";
import { type Display, PLAIN, displayOf } from "./text/terminal.ts";
import { wrapped } from "./text/wrap.ts";

interface NamesOptions extends ControlOptions, ProjectOptions {
  readonly in?: string;
  readonly each?: boolean;
  readonly output?: Format;
}

export function addNames(program: Command): void {
  const command = program
    .command("names")
    .summary("List the names that a container can resolve")
    .description("List the names that a container can resolve, with their source, or all container names by network")
    .option("--in <container>", "as this container resolves them: its name, Compose service or ID");
  addFormatOption(addControlOptions(addEachOption(addProjectOption(command)))).action(async (options: NamesOptions) => {
    const client = await clientFor(options);
    const { in: word } = options;
    const requests =
      word === undefined
        ? [await containersRequest(client, undefined, options)]
        : containersToAsk((await client.status()).containers, word, options).map(({ id }) => ({ container: id }));
    const display = displayOf(process.stdout);
    for (const [index, each] of requests.entries()) {
      const list = await client.names(each);
      if (options.json === true) process.stdout.write(jsonLine(list));
      else
        process.stdout.write((index > 0 ? "\n" : "") + namesText(list, { isWide: options.output === "wide", display }));
    }
  });
}

interface NamesView {
  /** Also names that are the beginning of an ID. */
  readonly isWide?: boolean;
  readonly display?: Display;
}

export function namesText(list: NameList, { isWide = false, display = PLAIN }: NamesView = {}): string {
  const { container, names, omitted } = list;
  const shown = isWide ? names : names.filter(({ isId }) => !isId);
  const rows = container === null ? shown.toSorted(byNetwork) : shown.toSorted((a, b) => rank(a) - rank(b));
  const ids = names.length - shown.length;
  const notes = [
    ...(ids === 0 ? [] : [`${ids} container ${ids === 1 ? "ID is a name" : "IDs are names"}, too (-o wide)`]),
    ...(omitted === 0 ? [] : [`${omitted} more names are not listed; -p selects a project`]),
  ];
  const head = container === null ? [] : headOf(container, list, display);
  const body =
    rows.length === 0
      ? "no names\n"
      : table(
          container === null ? BY_NETWORK : IN_CONTAINER,
          rows.map(container === null ? networkCells : cells),
          display,
        );
  return `${printableLines(head)}${body}${printableLines(notes.flatMap((note) => wrapped(note, display.width)))}`;
}

function headOf({ name, sharedWith }: ContainerRef, { networks }: NameList, { width }: Display): string[] {
  const shared = sharedWith === undefined ? "" : ` (network namespace of ${sharedWith})`;
  return [...wrapped(`${name}${shared}, networks in search order: ${networks.join(", ") || "none"}`, width, "  "), ""];
}

const IN_CONTAINER: readonly Column[] = [
  { title: "NAME", min: 10 },
  { title: "ADDRESS", min: 19 },
  { title: "CONTAINER", min: 12 },
  { title: "PROJECT", min: 7, drop: 1 },
  { title: "SOURCE", min: 10 },
];

const BY_NETWORK: readonly Column[] = [
  { title: "NETWORK", min: 10 },
  { title: "NAME", min: 10 },
  { title: "ADDRESS", min: 15 },
  { title: "CONTAINER", min: 12 },
  { title: "PROJECT", min: 7, drop: 1 },
];

function cells(listed: ListedName): Cell[] {
  return [listed.name, addressCell(listed), ...ownerCells(listed), sourceText(listed)];
}

/** Docker's names are named by their network alone. */
function sourceText({ network, source, state }: ListedName): string {
  if (source === undefined || state === "not-running") return network ?? "-";
  return network === null ? source : `${source} on ${network}`;
}

function networkCells(listed: ListedName): Cell[] {
  const { name, network } = listed;
  return [network ?? "-", name, addressCell(listed), ...ownerCells(listed)];
}

function addressCell({ state, addresses, records = [], shadowedBy }: ListedName): Cell {
  switch (state) {
    case "resolves":
      return [...addresses, ...records].join(", ") || "-";
    case "shadowed":
      return { text: `shadowed by ${shadowedBy ?? "-"}`, colour: "yellow" };
    case "other-network":
      return { text: "not on its networks", colour: "yellow" };
    case "not-running":
      return { text: [...addresses, "not running"].join(", "), colour: "dim" };
    case "no-network":
      return { text: "no DNS name", colour: "dim" };
  }
}

/** Containers of several projects with one name are probably a mistake. */
function ownerCells({ owners, state }: ListedName): Cell[] {
  const containers = [...new Set(owners.map(({ container }) => container))];
  const projects = [...new Set(owners.map(({ project }) => project ?? "-"))];
  const isMixed = state === "resolves" && projects.length > 1;
  return [containers.join(", ") || "-", { text: projects.join(", ") || "-", colour: isMixed ? "yellow" : undefined }];
}

const RANKS: readonly ListedName["state"][] = ["resolves", "shadowed", "other-network", "no-network", "not-running"];

/** What resolves comes first; within a state, the order of the names stays. */
function rank({ state }: ListedName): number {
  return RANKS.indexOf(state);
}

function byNetwork(a: ListedName, b: ListedName): number {
  const [one, other] = [a, b].map(({ network, name }) => `${network === null ? "1" : `0${network}`}\n${name}`);
  return (one ?? "") < (other ?? "") ? -1 : 1;
}
