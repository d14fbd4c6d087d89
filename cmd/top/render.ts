/**
 * Render: formats a snapshot as lines that fit the screen, with containers above names, or beside them on a wide screen.
 */
import { printable } from "../printable.ts";
import type { Paint } from "../terminal.ts";
import type { Figures, Snapshot } from "./query-statistics.ts";

export interface Size {
  readonly columns: number;
  /** undefined: no limit. */
  readonly rows: number | undefined;
}

const WIDE = 140;
const BETWEEN = "   ";
/** The minimum width of the name column. */
const NAME_MIN = 12;
const NUMBER_WIDTH = 8;
/** Lines of the title and of a table's head. */
const TITLE_LINES = 2;
const HEAD_LINES = 1;

interface Panel {
  readonly head: readonly string[];
  /** The first cell is a name, the others are numbers. */
  readonly cells: readonly (readonly string[])[];
  readonly hasErrors: readonly boolean[];
}

export function renderSnapshot(snapshot: Snapshot, { columns, rows }: Size, paint: Paint): string[] {
  const title = titleOf(snapshot, columns).map((line, index) =>
    index === 0 ? paint(line, "bold") : paint(line, "dim"),
  );
  const containers = containerPanel(snapshot);
  const names = namePanel(snapshot);
  const room = rows === undefined ? Number.POSITIVE_INFINITY : Math.max(4, rows - TITLE_LINES - 1);
  if (columns >= WIDE) {
    const width = Math.floor((columns - BETWEEN.length) / 2);
    const maxLines = Math.max(1, room - HEAD_LINES);
    const [left, right] = [containers, names].map((panel) => linesOf(panel, width, maxLines, paint));
    const height = Math.max(left?.length ?? 0, right?.length ?? 0);
    const blank = { text: " ".repeat(width), shown: " ".repeat(width) };
    const both = Array.from(
      { length: height },
      (_, index) => `${(left?.[index] ?? blank).shown}${BETWEEN}${(right?.[index] ?? blank).shown}`,
    );
    return [...title, "", ...both];
  }
  // Containers get the lines that names leave free, and at least half.
  const lines = room - 2 * HEAD_LINES - 1;
  const forContainers = Math.max(1, Math.floor(lines / 2), lines - names.cells.length);
  const upper = linesOf(containers, columns, forContainers, paint);
  const forNames = Math.max(1, lines - Math.min(containers.cells.length, forContainers));
  const lower = linesOf(names, columns, forNames, paint);
  return [...title, "", ...upper.map(({ shown }) => shown), "", ...lower.map(({ shown }) => shown)];
}

function titleOf({ time, all, containers, unseen }: Snapshot, columns: number): string[] {
  const first = [
    `dns11 top ${time.slice(11, 19)}`,
    `${containers.length} ${containers.length === 1 ? "container" : "containers"}`,
    `${rate(all.perSecond)} q/s`,
    `${percent(all.cached)} cached`,
    `${percent(all.errors)} errors`,
  ];
  const second = [
    "last minute",
    all.p50Ms === null
      ? "no forwarded queries"
      : `forwarded queries: p50 ${duration(all.p50Ms)}, p99 ${duration(all.p99Ms)}`,
    ...(unseen > 0 ? [`${unseen} queries not sampled`] : []),
  ];
  return [first.join("  "), second.join("; ")].map((line) => line.slice(0, columns));
}

function containerPanel({ containers }: Snapshot): Panel {
  return {
    head: ["CONTAINER", "Q/S", "QUERIES", "CACHED", "ERRORS", "P50", "P99"],
    cells: containers.map((each) => [each.container, rate(each.perSecond), String(each.queries), ...figures(each)]),
    hasErrors: containers.map(({ errors }) => (errors ?? 0) > 0),
  };
}

function namePanel({ names }: Snapshot): Panel {
  return {
    head: ["NAME", "FROM", "QUERIES", "CACHED", "ERRORS", "P50", "P99"],
    cells: names.map((each) => [
      each.name ?? "(no name)",
      String(each.containers),
      String(each.queries),
      ...figures(each),
    ]),
    hasErrors: names.map(({ errors }) => (errors ?? 0) > 0),
  };
}

function figures({ cached, errors, p50Ms, p99Ms }: Figures): string[] {
  return [percent(cached), percent(errors), duration(p50Ms), duration(p99Ms)];
}

interface Line {
  readonly text: string;
  /** The same with colours. */
  readonly shown: string;
}

/** The lines of a panel, each padded to its width. */
function linesOf({ head, cells, hasErrors }: Panel, width: number, maxLines: number, paint: Paint): Line[] {
  const numbers = head.length - 1;
  const nameWidth = Math.max(NAME_MIN, width - numbers * (NUMBER_WIDTH + 1));
  const write = (row: readonly string[]): string =>
    row
      .map((cell, index) => (index === 0 ? fitted(printable(cell), nameWidth) : cell.padStart(NUMBER_WIDTH)))
      .join(" ");
  const isCut = cells.length > maxLines;
  const shownCells = isCut ? cells.slice(0, Math.max(0, maxLines - 1)) : cells;
  const rows = shownCells.map((row, index): Line => {
    const text = write(row);
    return { text, shown: hasErrors[index] === true ? paint(text, "red") : text };
  });
  const more = `(${cells.length - shownCells.length} more)`.padEnd(width);
  return [
    { text: write(head), shown: paint(write(head), "bold") },
    ...rows,
    ...(isCut ? [{ text: more, shown: paint(more, "dim") }] : []),
  ];
}

function fitted(text: string, width: number): string {
  return text.length > width ? `${text.slice(0, width - 2)}..` : text.padEnd(width);
}

function rate(perSecond: number | null): string {
  if (perSecond === null) return "-";
  return perSecond >= 10 || perSecond === 0 ? String(Math.round(perSecond)) : perSecond.toFixed(1);
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
