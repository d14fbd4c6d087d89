/**
 * Render: formats a snapshot as lines that fit the screen, with containers above names, or beside them on a wide screen.
 */
import { cutMiddle } from "../../src/base/lib/text.ts";
import { printable } from "../text/printable.ts";
import { type Colour, type Paint, localTime } from "../text/terminal.ts";
import type { Figures, Snapshot, Outage, ContainerFigures, NameFigures } from "./query-statistics.ts";

export interface Size {
  readonly columns: number;
  /** undefined: no limit. */
  readonly rows: number | undefined;
}

/** The selected row. */
export interface Focus {
  readonly panel: keyof Rows;
  readonly index: number;
}

const GAP = "  ";
const BETWEEN = "   ";
/** The minimum width of the name column. */
const NAME_MIN = 12;
/** Lines of the title and of a table's head. */
const TITLE_LINES = 2;
const HEAD_LINES = 1;
const FIGURES = ["QUERIES", "CACHED", "STALE", "NX", "FAIL", "P50", "P99"];
/** The width of each column of numbers; the first one is Q/S or FROM. */
const WIDTHS = [5, 7, 6, 5, 6, 6, 7, 7];
const NUMBERS_WIDTH = WIDTHS.reduce((sum, each) => sum + each + 1, 0);
/** From here on both panels are side by side. */
const WIDE = 2 * (NAME_MIN + NUMBERS_WIDTH) + BETWEEN.length;

interface Panel {
  readonly head: readonly string[];
  /** The first cell is a name, the others are numbers. */
  readonly cells: readonly (readonly string[])[];
  readonly hasFailures: readonly boolean[];
  readonly selected: number | undefined;
  /** Names that are too long are shown without what all of them begin with: the project. */
  readonly isSame?: boolean;
}

export function renderSnapshot(
  snapshot: Snapshot,
  { columns, rows }: Size,
  paint: Paint,
  choice: Choice = NO_CHOICE,
  focus?: Focus,
): string[] {
  const title = titleOf(snapshot, columns, paint);
  const chosen = rowsOf(snapshot, choice);
  const containers = containerPanel(chosen, focus);
  const names = namePanel(chosen, focus);
  const room = rows === undefined ? Number.POSITIVE_INFINITY : Math.max(4, rows - TITLE_LINES - 1);
  if (columns >= WIDE) {
    const width = Math.floor((columns - BETWEEN.length) / 2);
    const maxLines = Math.max(1, room - HEAD_LINES);
    const [left, right] = [containers, names].map((panel) => linesOf(panel, width, maxLines, paint));
    const height = Math.max(left?.length ?? 0, right?.length ?? 0);
    const blank = " ".repeat(width);
    const both = Array.from(
      { length: height },
      (_, index) => `${left?.[index] ?? blank}${BETWEEN}${right?.[index] ?? blank}`,
    );
    return [...title, "", ...both];
  }
  // Containers get the lines that names leave free, and at least half.
  const lines = room - 2 * HEAD_LINES - 1;
  const forContainers = Math.max(1, Math.floor(lines / 2), lines - names.cells.length);
  const upper = linesOf(containers, columns, forContainers, paint);
  const forNames = Math.max(1, lines - Math.min(containers.cells.length, forContainers));
  const lower = linesOf(names, columns, forNames, paint);
  return [...title, "", ...upper, "", ...lower];
}

function titleOf(snapshot: Snapshot, columns: number, paint: Paint): string[] {
  const { time, all, containers, unseen, outage } = snapshot;
  const nowMs = Date.parse(time);
  const isTotal = outage !== null && outage.down === outage.all;
  // What is dropped last on a narrow screen has the lowest number.
  const parts: TitlePart[] = [
    { drop: 0, text: `dns11 top ${localTime(time, nowMs)}` },
    ...(outage === null
      ? []
      : [{ drop: 0, text: outageText(outage, nowMs), colour: isTotal ? ("red" as const) : ("yellow" as const) }]),
    { drop: 3, text: `${containers.length} ${containers.length === 1 ? "container" : "containers"}` },
    { drop: 2, text: `${rate(all.perSecond)} q/s` },
    { drop: 5, text: `${percent(all.cached)} cached` },
    ...(all.stale > 0 ? [{ drop: 4, text: `${count(all.stale)} stale` }] : []),
    { drop: 1, text: `${count(all.nxdomain)} NX` },
    { drop: 1, text: `${count(all.failed)} FAIL` },
  ];
  const second = [
    "last minute",
    all.p50Ms === null
      ? "no forwarded queries"
      : `forwarded queries: p50 ${duration(all.p50Ms)}, p99 ${duration(all.p99Ms)}`,
    ...(unseen > 0 ? [`${unseen} queries not sampled`] : []),
  ].join("; ");
  const shown = fitting(parts, columns).map(({ text, colour = "bold" }) => paint(text.slice(0, columns), colour));
  return [shown.join(GAP), paint(second.slice(0, columns), "dim")];
}

interface TitlePart {
  readonly text: string;
  readonly colour?: Colour;
  /** The highest number is dropped first; 0 is never dropped. */
  readonly drop: number;
}

function fitting(parts: readonly TitlePart[], columns: number): readonly TitlePart[] {
  const length = parts.reduce((sum, { text }) => sum + text.length, GAP.length * (parts.length - 1));
  const least = Math.max(...parts.map(({ drop }) => drop));
  if (length <= columns || least === 0) return parts;
  return fitting(
    parts.filter(({ drop }) => drop < least),
    columns,
  );
}

function outageText({ down, all, since }: Outage, nowMs: number): string {
  const when = since === null ? "" : ` since ${localTime(since, nowMs).replace(/:\d\d$/, "")}`;
  return down === all ? `upstream DOWN ${down}/${all}${when}` : `upstream ${down}/${all} down${when}`;
}

function containerPanel({ containers }: Rows, focus: Focus | undefined): Panel {
  return {
    head: ["CONTAINER", "Q/S", ...FIGURES],
    cells: containers.map((each) => [each.container, rate(each.perSecond), count(each.queries), ...figures(each)]),
    hasFailures: containers.map(({ failed }) => failed > 0),
    selected: focus?.panel === "containers" ? focus.index : undefined,
    isSame: true,
  };
}

function namePanel({ names }: Rows, focus: Focus | undefined): Panel {
  return {
    head: ["NAME", "FROM", ...FIGURES],
    cells: names.map((each) => [
      each.name ?? "(no name)",
      String(each.containers),
      count(each.queries),
      ...figures(each),
    ]),
    hasFailures: names.map(({ failed }) => failed > 0),
    selected: focus?.panel === "names" ? focus.index : undefined,
  };
}

function figures({ cached, stale, nxdomain, failed, p50Ms, p99Ms }: Figures): string[] {
  return [percent(cached), count(stale), count(nxdomain), count(failed), duration(p50Ms), duration(p99Ms)];
}

/** The lines of a panel, each padded to its width; the selected row is among them. */
function linesOf(
  { head, cells, hasFailures, selected, isSame }: Panel,
  width: number,
  maxLines: number,
  paint: Paint,
): string[] {
  const nameWidth = Math.max(NAME_MIN, width - NUMBERS_WIDTH);
  const write = (row: readonly string[]): string =>
    row
      .map((cell, index) => (index === 0 ? fitted(printable(cell), nameWidth) : cell.padStart(WIDTHS[index - 1] ?? 0)))
      .join(" ");
  const isCut = cells.length > maxLines;
  const height = isCut ? Math.max(0, maxLines - 1) : cells.length;
  const start = Math.max(0, Math.min((selected ?? 0) - height + 1, cells.length - height));
  const common = isSame === true ? commonStart(cells.map(([name = ""]) => name)) : 0;
  const isTooLong = cells.some(([name = ""]) => name.length > nameWidth);
  const rows = cells.slice(start, start + height).map((row, offset) => {
    const index = start + offset;
    const [name = "", ...figuresOf] = row;
    const text = write([isTooLong ? name.slice(common) : name, ...figuresOf]);
    if (index === selected) return paint(text, "inverse");
    return hasFailures[index] === true ? paint(text, "red") : text;
  });
  const more = `(${cells.length - height} more)`.padEnd(width);
  return [paint(write(head), "bold"), ...rows, ...(isCut ? [paint(more, "dim")] : [])];
}

/** The length of the words that all of several names begin with, such as `shop-`. */
function commonStart(names: readonly string[]): number {
  const [first = "", ...others] = names;
  if (others.length === 0) return 0;
  let start = first.lastIndexOf("-") + 1;
  while (start > 0 && others.some((each) => !each.startsWith(first.slice(0, start)) || each.length === start))
    start = first.lastIndexOf("-", start - 2) + 1;
  return start;
}

function fitted(text: string, width: number): string {
  return cutMiddle(text, width, "..").padEnd(width);
}

function rate(perSecond: number | null): string {
  if (perSecond === null) return "-";
  return perSecond >= 10 || perSecond === 0 ? count(Math.round(perSecond)) : perSecond.toFixed(1);
}

/** A large number in five characters at most. */
function count(number: number): string {
  if (number < 1e5) return String(number);
  return number < 1e6 ? `${Math.floor(number / 1e3)}k` : `${Math.floor(number / 1e6)}M`;
}

function percent(part: number | null): string {
  if (part === null) return "-";
  // A small part is not shown as zero.
  return part > 0 && part < 0.01 ? "<1%" : `${Math.round(part * 100)}%`;
}

function duration(ms: number | null): string {
  if (ms === null) return "-";
  if (ms >= 1000) return `${(ms / 1000).toFixed(1)} s`;
  return `${ms >= 10 ? Math.round(ms) : ms.toFixed(1)} ms`;
}

/** By queries, failures, names that do not exist, expired answers, time, or name. */
export const SORT_KEYS = ["queries", "fail", "nx", "stale", "slow", "name"] as const;
type SortKey = (typeof SORT_KEYS)[number];

export interface Choice {
  readonly sort: SortKey;
  /** A part of the name; in lower case. */
  readonly filter: string;
  readonly isFailuresOnly: boolean;
}

export const NO_CHOICE: Choice = { sort: "queries", filter: "", isFailuresOnly: false };

/** The containers and names of a snapshot, sorted and filtered as the reader has chosen. */
export interface Rows {
  readonly containers: readonly ContainerFigures[];
  readonly names: readonly NameFigures[];
}

/** A row is kept if its own name contains the filter. A snapshot is sorted by queries. */
export function rowsOf({ containers, names }: Snapshot, choice: Choice): Rows {
  return {
    containers: sorted(containers, ({ container }) => container, choice),
    names: sorted(names, ({ name }) => name ?? "", choice),
  };
}

type Row = Figures & { readonly isFailingContainer?: boolean };

function sorted<T extends Row>(rows: readonly T[], nameOf: (row: T) => string, choice: Choice): T[] {
  const { sort, filter, isFailuresOnly } = choice;
  const kept = rows.filter((row) => (!isFailuresOnly || row.failed > 0) && nameOf(row).toLowerCase().includes(filter));
  return sort === "name"
    ? kept.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1))
    : sort === "queries"
      ? kept
      : kept.toSorted((a, b) => weightOf(b, sort) - weightOf(a, sort));
}

/** A failing name of a container matters more than any number of other failures. */
const CONTAINER_WEIGHT = 1e9;

function weightOf(row: Row, sort: SortKey): number {
  switch (sort) {
    case "fail":
      return row.failed + (row.isFailingContainer === true ? CONTAINER_WEIGHT : 0);
    case "nx":
      return row.nxdomain;
    case "stale":
      return row.stale;
    default:
      return row.p99Ms ?? -1;
  }
}
