/**
 * Visibility: who sees whom, as a table of services. Containers of one service with the same cells are one row; a name that is looked up and
 * fails is marked. Bounded: what fails comes first, and the rest is counted.
 */
import type { MatrixColumn, MatrixReport, MatrixRow } from "../../../api/matrix.ts";
import type { FailingEntry } from "./failing.ts";
import { type Scope, inScope } from "./scope.ts";

const ROWS_MAX = 40;
const COLUMNS_MAX = 40;

/** sees: `count` containers. other: the name leads to something else. self: of its own service. */
export type CellKind = "sees" | "none" | "other" | "fails" | "self" | "stopped";

export interface VisibleCell {
  readonly kind: CellKind;
  readonly count: number;
}

export interface VisibleRow {
  readonly key: string;
  /** More than one where they see the same. */
  readonly rows: readonly MatrixRow[];
  readonly cells: readonly VisibleCell[];
}

export interface Visibility {
  readonly columns: readonly MatrixColumn[];
  readonly rows: readonly VisibleRow[];
  readonly omitted: number;
}

export function visibilityOf(report: MatrixReport | null, failing: readonly FailingEntry[], scope: Scope): Visibility {
  if (report === null) return { columns: [], rows: [], omitted: 0 };
  const fails = new Set(failing.flatMap(({ pairs }) => pairs.map(({ container, name }) => keyOf(container, name))));
  const failed = new Set(failing.flatMap(({ pairs }) => pairs.map(({ name }) => name)));
  const isFailing = ({ name, service }: MatrixColumn): boolean => failed.has(name) || (service !== null && failed.has(service));
  const numbered = report.columns.map((column, index) => ({ column, index }));
  const all = first(
    numbered.filter(({ column }) => inScope(scope, column)),
    ({ column }) => isFailing(column),
    COLUMNS_MAX,
  );
  const rows = merged(
    report.rows
      .filter((row) => inScope(scope, row))
      .map((row) => ({
        row,
        cells: all.map(({ column, index }) => cellOf(row, column, row.cells[index] ?? 0, fails)),
      })),
  );
  const shown = first(rows, ({ cells }) => cells.some(({ kind }) => kind === "fails"), ROWS_MAX);
  const inReport = report.omittedColumns + report.omittedRows;
  const omitted = inReport + (rows.length - shown.length) + (numbered.filter(({ column }) => inScope(scope, column)).length - all.length);
  return { columns: all.map(({ column }) => column), rows: shown, omitted };
}

function cellOf(row: MatrixRow, column: MatrixColumn, count: number, fails: ReadonlySet<string>): VisibleCell {
  const { name, service } = column;
  if (fails.has(keyOf(row.container, name)) || (service !== null && fails.has(keyOf(row.container, service)))) {
    return { kind: "fails", count };
  }
  if (column.running === 0) return { kind: "stopped", count };
  if (column.containers.length === 1 && column.containers[0] === row.container) return { kind: "self", count };
  if (count < 0) return { kind: "other", count };
  return { kind: count === 0 ? "none" : "sees", count };
}

function merged(all: readonly { readonly row: MatrixRow; readonly cells: readonly VisibleCell[] }[]): VisibleRow[] {
  const rows = new Map<string, { rows: MatrixRow[]; cells: readonly VisibleCell[] }>();
  for (const { row, cells } of all) {
    const { project, service, container, networks } = row;
    const same = service === null ? container : JSON.stringify([project, service]);
    const key = JSON.stringify([same, networks, cells.map(({ kind, count }) => `${kind} ${count}`)]);
    const known = rows.get(key);
    if (known === undefined) rows.set(key, { rows: [row], cells });
    else known.rows.push(row);
  }
  return [...rows].map(([key, each]) => ({ key, ...each }));
}

/** At most so many, in their order; those that matter are among them. */
function first<T>(all: readonly T[], matters: (each: T) => boolean, max: number): readonly T[] {
  if (all.length <= max) return all;
  const chosen = new Set([...all.filter(matters), ...all].slice(0, max));
  for (const each of all) if (chosen.size < max) chosen.add(each);
  return all.filter((each) => chosen.has(each));
}

function keyOf(container: string, name: string): string {
  return `${container} ${name}`;
}

/** `api-1`, or `api ×2`. */
export function rowTitle({ rows }: VisibleRow): { readonly name: string; readonly times: number } {
  const [only] = rows;
  if (rows.length === 1 || only?.service == null) return { name: only?.container ?? "", times: 1 };
  return { name: only.service, times: rows.length };
}
