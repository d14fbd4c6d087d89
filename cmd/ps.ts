/**
 * dns11 ps: every running container: its place in a project, whether it is served, its networks, and its queries of the last
 * minute.
 */
import { type Command, Option } from "commander";
import type { ContainerColumn, FeatureReport } from "../src/features/contract.ts";
import { loadReports } from "../src/features/load.ts";
import { NOT_ASKED } from "../src/base/model/finding.ts";
import type { ContainerStatus, RecentQueries, Status } from "../src/api/status.ts";
import { containersCalled, inProject } from "../src/base/model/container-choice.ts";
import { type ProjectOptions, addProjectOption, note } from "./options/container-argument.ts";
import {
  type ControlOptions,
  type Format,
  addControlOptions,
  addFormatOption,
  clientFor,
} from "./options/control-options.ts";
import { jsonLine } from "./text/printable.ts";
import { type Cell, type Column, fits, table } from "./text/table.ts";
import { type Colour, type Display, PLAIN, displayOf, age, ago } from "./text/terminal.ts";
import { type WatchOptions, addWatchOption, printOrWatch } from "./screen/watch.ts";

/** Why it is not served, what may become a problem, what features say, and where to look. */
export function whyOf(container: ContainerStatus, reports: readonly FeatureReport[]): string {
  const { state, name, reason, culprits = [], warning } = container;
  const remarks = reports.map((each) => each.remark?.(container));
  const hint = state === "failed" ? `see dns11 doctor ${name}` : undefined;
  return [reason, ...culprits, warning, ...remarks, hint].filter((text) => text !== undefined).join("; ");
}

interface PsOptions extends ControlOptions, ProjectOptions, WatchOptions {
  readonly output?: Format;
  readonly all?: boolean;
}

export function addPs(program: Command): void {
  const command = program
    .command("ps [container]")
    .addOption(new Option("-a, --all").hideHelp())
    .summary("List containers with state, networks and query counts")
    .description("List containers with state, networks, and queries, NXDOMAIN and failures a minute");
  addWatchOption(addFormatOption(addControlOptions(addProjectOption(command)))).action(
    async (container: string | undefined, options: PsOptions) => {
      const client = await clientFor(options);
      // People type it as for docker ps.
      if (options.all === true) note("every running container is listed; docker ps -a lists those that do not run");
      await printOrWatch(options, async () => {
        const status = await client.status();
        const chosen = chosenOf(status.containers, container, options);
        if (options.json === true) return jsonLine(chosen.map((each) => withRules(each, status)));
        return psText(
          { ...status, containers: chosen },
          { isWide: options.output === "wide", display: displayOf(process.stdout), reports: await loadReports() },
        );
      });
    },
  );
}

/** All containers of a service or a project. */
function chosenOf(
  containers: readonly ContainerStatus[],
  word: string | undefined,
  { project }: ProjectOptions,
): readonly ContainerStatus[] {
  return word === undefined ? inProject(containers, project) : containersCalled(containers, word, project);
}

interface PsView {
  readonly isWide?: boolean;
  readonly display?: Display;
  readonly nowMs?: number;
  readonly reports?: readonly FeatureReport[];
}

/** A column and its cell of a container. */
interface PsColumn extends Column {
  readonly cell: (container: ContainerStatus) => Cell;
  /** Without the project, which is in another column. */
  readonly short?: (container: ContainerStatus) => Cell;
}

export function psText(
  status: Status,
  { isWide = false, display = PLAIN, nowMs = Date.now(), reports = [] }: PsView = {},
): string {
  const { containers } = status;
  if (containers.length === 0) return "no running containers\n";
  const ofFeatures = reports.flatMap((each) => each.columns?.(containers) ?? []);
  const columns: readonly PsColumn[] = [
    ...(containers.some(({ project }) => project !== null) ? PLACE : []),
    ...COMMON,
    ...ofFeatures.filter(({ isForWide }) => isForWide !== true),
    ...(isWide ? wideColumns(status, nowMs, ofFeatures) : []),
    ...(containers.some((each) => whyOf(each, reports) !== "") ? [whyColumn(reports)] : []),
  ];
  const sorted = containers.toSorted(byPlace);
  const rows = sorted.map((container) => columns.map(({ cell }) => cell(container)));
  if (fits(columns, rows, display)) return table(columns, rows, display);
  const few = columns.filter((column) => column !== SERVICE || !isInNames(containers));
  const short = sorted.map((container) => few.map(({ cell, short: own = cell }) => own(container)));
  return table(few, short, display);
}

const SERVICE: PsColumn = { title: "SERVICE", min: 9, drop: 2, cell: ({ service }) => service ?? "-" };
const PLACE: readonly PsColumn[] = [
  { title: "PROJECT", min: 8, isCut: true, drop: 3, cell: ({ project }) => project ?? "-" },
  SERVICE,
];

/** Whether the name of each container says its service, as Compose names them. */
function isInNames(containers: readonly ContainerStatus[]): boolean {
  return containers.every(
    ({ name, project, service }) => service === null || name.startsWith(`${project}-${service}-`),
  );
}

const COMMON: readonly PsColumn[] = [
  {
    title: "CONTAINER",
    min: 14,
    cell: ({ name }) => name,
    short: ({ name, project }) => withoutPrefix(name, `${project}-`),
  },
  { title: "STATE", cell: stateCell },
  {
    title: "NETWORKS",
    min: 12,
    drop: 4,
    cell: ({ networks }) => networks.join(",") || "-",
    short: ({ networks, project }) => networks.map((each) => withoutPrefix(each, `${project}_`)).join(",") || "-",
  },
  { title: "Q/MIN", isNumber: true, cell: (each) => countCell(each, "queries") },
  { title: "NX", isNumber: true, drop: 1, cell: (each) => countCell(each, "nxdomain") },
  { title: "FAIL", isNumber: true, cell: (each) => countCell(each, "failures", "red") },
];

function whyColumn(reports: readonly FeatureReport[]): PsColumn {
  return { title: "WHY", below: 40, cell: (each) => ({ text: whyOf(each, reports), colour: colourOf(each) }) };
}

function withoutPrefix(name: string, prefix: string): string {
  return name.startsWith(prefix) && name.length > prefix.length ? name.slice(prefix.length) : name;
}

function wideColumns(status: Status, nowMs: number, ofFeatures: readonly ContainerColumn[]): PsColumn[] {
  const total = (title: string, ...keys: string[]): PsColumn => ({
    title,
    isNumber: true,
    drop: 8,
    cell: ({ counters }) =>
      counters === undefined ? "-" : String(keys.reduce((sum, key) => sum + (counters[key] ?? 0), 0)),
  });
  return [
    { title: "SINCE", drop: 5, cell: ({ since }) => (since === undefined ? "-" : age(since, nowMs)) },
    { title: "VERIFIED", drop: 6, cell: ({ verified }) => (verified === undefined ? "-" : ago(verified, nowMs)) },
    { title: "RULES", drop: 7, cell: (each) => withRules(each, status).rules ?? "-" },
    { title: "PORTS", drop: 9, cell: ({ ports }) => (ports === undefined ? "-" : `${ports.udp}/udp ${ports.tcp}/tcp`) },
    ...ofFeatures.filter(({ isForWide }) => isForWide === true),
    total("QUERIES", "queries"),
    total("LOCAL", "local"),
    total("CACHED", "cached"),
    total("FORWARDED", "forwarded"),
    total("FAILED", "failed", "malformed"),
    { title: "UPSTREAMS", min: 20, drop: 10, cell: ({ upstreams }) => upstreams?.join(" ") || "-" },
  ];
}

/** With the backend of the redirect rules; null where there are none. */
function withRules(
  container: ContainerStatus,
  { ruleBackend }: Pick<Status, "ruleBackend">,
): ContainerStatus & { readonly rules: string | null } {
  const { state } = container;
  return { ...container, rules: state === "attached" || state === "verifying" ? ruleBackend : null };
}

function stateCell(container: ContainerStatus): Cell {
  const { state, isPaused, code, isServedWith } = container;
  const word =
    code === NOT_ASKED
      ? "not asked"
      : state === "attached" || isServedWith === true
        ? "ok"
        : state === "failed" || state === "quarantined"
          ? state.toUpperCase()
          : container.asksListener === true
            ? "listener"
            : state;
  return { text: isPaused ? `${word} (paused)` : word, colour: colourOf(container) };
}

function colourOf({ state, isPaused, code, isServedWith }: ContainerStatus): Colour {
  if (isServedWith === true) return isPaused ? "yellow" : "green";
  switch (state) {
    case "attached":
      return isPaused || code === NOT_ASKED ? "yellow" : "green";
    case "verifying":
    case "opening":
      return "yellow";
    case "failed":
    case "quarantined":
      return "red";
    case "skipped":
      return "dim";
  }
}

function countCell({ recent }: ContainerStatus, key: keyof RecentQueries, colour?: Colour): Cell {
  if (recent === undefined) return "-";
  return { text: String(recent[key]), colour: recent[key] > 0 ? colour : undefined };
}

/** Projects first, then containers without one. */
function byPlace(a: ContainerStatus, b: ContainerStatus): number {
  const [one, other] = [a, b].map(({ project, name }) => `${project === null ? "1" : `0${project}`}\n${name}`);
  return (one ?? "") < (other ?? "") ? -1 : 1;
}
