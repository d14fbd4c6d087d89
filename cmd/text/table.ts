/**
 * Table: rows of text in columns that fit the terminal. If they do not, columns that may be wrapped become narrower; then
 * columns are dropped, the least important first. Without a terminal nothing is wrapped or dropped.
 */
import { cutMiddle } from "../../src/base/lib/text.ts";
import { printable } from "./printable.ts";
import { type Colour, type Display, PLAIN, type Paint } from "./terminal.ts";
import { wrapped } from "./wrap.ts";

export interface Column {
  readonly title: string;
  /** The column may be dropped; the highest number is dropped first. */
  readonly drop?: number;
  /** Its cells may be wrapped to this width. The last column may always be wrapped. */
  readonly min?: number;
  /** They lose their middle instead, because it is one name that nobody has to copy from there. */
  readonly isCut?: boolean;
  /** Numbers are aligned on the right. */
  readonly isNumber?: boolean;
  /** Of the last column: where less than this is left for it, its texts are on lines of their own below their rows. */
  readonly below?: number;
}

export type Cell = string | { readonly text: string; readonly colour?: Colour | undefined };

export interface Row {
  readonly cells: readonly Cell[];
  /** Lines below the row, as they are: a command is easier to copy from one line. */
  readonly notes?: readonly Cell[];
}

/** A column as it is shown. */
interface ShownColumn extends Column {
  readonly index: number;
  width: number;
}

const GAP = "  ";
const NOTE_INDENT = "    ";
/** Below this width the last column is not readable. */
const LAST_MIN = 24;

export function table(
  head: readonly (string | Column)[],
  rows: readonly (Row | readonly Cell[])[],
  display: Display = PLAIN,
): string {
  const given = rows.map((row) => ("cells" in row ? row : { cells: row }));
  const { titled, all } = isBelow(head, given, display)
    ? lastBelow(head, given, display)
    : { titled: head, all: given };
  const columns = layOut(columnsOf(titled), all, display.width);
  const titles = columns.map(({ title }) => [title]);
  const lines = [
    joined(columns, titles, (text) => (text.trim() === "" ? text : display.paint(text, "bold"))),
    ...all.flatMap((row) => [...cellLines(row.cells, columns, display), ...notesOf(row, display)]),
  ];
  return `${lines.join("\n")}\n`;
}

/** Whether every text has room on one line, in every column but one whose texts may be below their rows. */
export function fits(head: readonly Column[], rows: readonly (readonly Cell[])[], { width }: Display): boolean {
  const all = rows.map((cells) => ({ cells }));
  const widths = head.flatMap(({ title, below }, index) => (below === undefined ? [widest(title, all, index)] : []));
  return sum(widths) + gaps(widths) <= width;
}

function columnsOf(head: readonly (string | Column)[]): Column[] {
  return head.map((each, index) => {
    const column = typeof each === "string" ? { title: each } : each;
    return index === head.length - 1 ? { min: LAST_MIN, ...column } : column;
  });
}

/** Whether the last column would be too narrow. */
function isBelow(head: readonly (string | Column)[], rows: readonly Row[], { width }: Display): boolean {
  const columns = columnsOf(head);
  const least = columns.at(-1)?.below;
  if (least === undefined) return false;
  const natural = columns.map(({ title }, index) => widest(title, rows, index));
  const last = natural.pop() ?? 0;
  return sum(natural) + gaps(columns) + Math.min(last, least) > width;
}

function lastBelow(
  head: readonly (string | Column)[],
  rows: readonly Row[],
  { width }: Display,
): { readonly titled: readonly (string | Column)[]; readonly all: readonly Row[] } {
  const all = rows.map(({ cells, notes = [] }): Row => {
    const last = cells[head.length - 1];
    const lines = textOf(last) === "" ? [] : wrapped(NOTE_INDENT + textOf(last), width, NOTE_INDENT);
    const colour = typeof last === "object" ? last.colour : undefined;
    return { cells: cells.slice(0, head.length - 1), notes: [...lines.map((text) => ({ text, colour })), ...notes] };
  });
  return { titled: head.slice(0, -1), all };
}

function widest(title: string, rows: readonly Row[], index: number): number {
  return rows.reduce((width, { cells }) => Math.max(width, textOf(cells[index]).length), title.length);
}

/** The columns that fit, each with its width. */
function layOut(columns: readonly Column[], rows: readonly Row[], room: number): ShownColumn[] {
  const shown = columns.map((column, index): ShownColumn => {
    const natural = widest(column.title, rows, index);
    return { ...column, index, width: column.min === undefined ? natural : Math.min(natural, Math.max(room, 1)) };
  });
  while (sum(shown.map(leastWidth)) + gaps(shown) > room) {
    const [next] = shown.filter(({ drop }) => drop !== undefined).toSorted((a, b) => (b.drop ?? 0) - (a.drop ?? 0));
    if (next === undefined) break;
    shown.splice(shown.indexOf(next), 1);
  }
  narrow(shown, room);
  return shown;
}

function leastWidth({ width, min, title }: ShownColumn): number {
  return min === undefined ? width : Math.min(width, Math.max(min, title.length));
}

/** Makes the widest columns that may be wrapped narrower until all fit. */
function narrow(columns: readonly ShownColumn[], room: number): void {
  for (let excess = sum(columns.map(({ width }) => width)) + gaps(columns) - room; excess > 0; excess--) {
    const [next] = columns.filter((column) => column.width > leastWidth(column)).toSorted((a, b) => b.width - a.width);
    if (next === undefined) return;
    next.width--;
  }
}

function cellLines(cells: readonly Cell[], columns: readonly ShownColumn[], { paint }: Display): string[] {
  const lines = columns.map(({ index, width, min, isCut = false }) =>
    min === undefined
      ? [textOf(cells[index])]
      : isCut
        ? [cutMiddle(textOf(cells[index]), width, "..")]
        : wrapped(textOf(cells[index]), width),
  );
  const height = Math.max(...lines.map((each) => each.length));
  return Array.from({ length: height }, (_, at) =>
    joined(
      columns,
      lines.map((each) => each.slice(at, at + 1)),
      (text, { index }) => painted(cells[index], text, paint),
    ),
  );
}

function notesOf({ notes = [] }: Row, { paint }: Display): string[] {
  return notes.map((note) => painted(note, textOf(note), paint));
}

/** One line: the text of each column, padded. Padding is not painted. */
function joined(
  columns: readonly ShownColumn[],
  texts: readonly (readonly string[])[],
  paint: (text: string, column: ShownColumn) => string,
): string {
  return columns
    .map((column, at) => {
      const text = texts[at]?.[0] ?? "";
      const padding = " ".repeat(Math.max(0, column.width - text.length));
      const isBlankAfter = texts.slice(at + 1).every((each) => (each[0] ?? "") === "");
      if (column.isNumber === true) return text === "" && isBlankAfter ? "" : padding + paint(text, column);
      return isBlankAfter ? paint(text, column) : paint(text, column) + padding;
    })
    .join(GAP)
    .trimEnd();
}

function painted(cell: Cell | undefined, text: string, paint: Paint): string {
  const colour = typeof cell === "object" ? cell.colour : undefined;
  return colour === undefined || text === "" ? text : paint(text, colour);
}

function textOf(cell: Cell | undefined): string {
  return printable(typeof cell === "object" ? cell.text : (cell ?? ""));
}

function gaps(columns: readonly unknown[]): number {
  return GAP.length * Math.max(0, columns.length - 1);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
