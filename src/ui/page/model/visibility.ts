/**
 * Visibility: who sees whom, as a table of services. Containers of one service with the same cells are one row; a name that is looked up and
 * fails is marked. What fails comes first: projects, and in each of them rows and columns. Bounded; the rest is counted.
 */
import type {
  MatrixColumn,
  MatrixReport,
  MatrixRow,
  ContainerReport,
  ContainersReport,
} from "../../../api/containers.ts";
import type { FailingEntry } from "./failing.ts";
import { type Scope, inScope, shortName } from "./scope.ts";

const ROWS_MAX = 40;
const COLUMNS_MAX = 40;

/** sees: `count` containers. other: the name leads to something else. self: of its own service. */
type CellKind = "sees" | "none" | "other" | "fails" | "self" | "stopped";

export interface VisibleCell {
  readonly kind: CellKind;
  readonly count: number;
}

export interface VisibleRow {
  readonly key: string;
  /** There is more than one where they see the same. */
  readonly rows: readonly MatrixRow[];
  readonly cells: readonly VisibleCell[];
}

export interface Visibility {
  readonly columns: readonly MatrixColumn[];
  readonly rows: readonly VisibleRow[];
  readonly omitted: number;
}

export function visibilityOf(
  report: MatrixReport | null,
  failing: readonly FailingEntry[],
  scope: Scope,
  sharing: Sharing = new Map(),
): Visibility {
  if (report === null) return { columns: [], rows: [], omitted: 0 };
  const fails = new FailingNames(failing, report, sharing);
  const columns = report.columns
    .map((column, index) => ({ column, index }))
    .filter(({ column }) => inScope(scope, column))
    .map((each) => ({
      ...each,
      project: each.column.project,
      isFailing: report.rows.some((row) => fails.has(row, each.column)),
    }));
  const unsorted = report.rows
    .filter((row) => inScope(scope, row))
    .map((row) => ({ row, project: row.project, isFailing: columns.some(({ column }) => fails.has(row, column)) }));
  const projects = new Set(
    [...unsorted, ...columns].filter(({ isFailing }) => isFailing).map(({ project }) => project),
  );
  const sorted = columns.toSorted((a, b) => byFailing(projects, a, b));
  const chosen = first(sorted, ({ isFailing }) => isFailing, COLUMNS_MAX);
  const rows = merged(
    unsorted
      .toSorted((a, b) => byFailing(projects, a, b))
      .map(({ row }) => ({
        row,
        cells: chosen.map(({ column, index }) => cellOf(row, column, row.cells[index] ?? 0, fails.has(row, column))),
      })),
  );
  const shown = first(rows, ({ cells }) => cells.some(({ kind }) => kind === "fails"), ROWS_MAX);
  const omitted = rows.length - shown.length + columns.length - chosen.length;
  return {
    columns: chosen.map(({ column }) => column),
    rows: shown,
    omitted: omitted + report.omittedColumns + report.omittedRows,
  };
}

/** Which names fail where. A name of several projects is that of the container's own, if that has it. */
class FailingNames {
  readonly #pairs: ReadonlySet<string>;
  readonly #own: ReadonlySet<string>;
  readonly #sharing: Sharing;

  constructor(failing: readonly FailingEntry[], { columns }: MatrixReport, sharing: Sharing) {
    this.#sharing = sharing;
    this.#pairs = new Set(
      failing.flatMap(({ symptoms }) => symptoms.map(({ container, name }) => keyOf(container, name))),
    );
    this.#own = new Set(columns.map(({ project, name }) => keyOf(project ?? "", name)));
  }

  has({ container: own, project }: MatrixRow, column: MatrixColumn): boolean {
    const { name, containers } = column;
    const container = this.#sharing.get(own)?.name ?? own;
    if (containers.some((each) => this.#pairs.has(keyOf(container, each)))) return true;
    if (!this.#pairs.has(keyOf(container, name))) return false;
    return column.project === project || !this.#own.has(keyOf(project ?? "", name));
  }
}

interface Sortable {
  readonly project: string | null;
  readonly isFailing: boolean;
}

/** Projects stay together: those in which something fails first, and what fails first in each. */
function byFailing(projects: ReadonlySet<string | null>, a: Sortable, b: Sortable): number {
  return (
    Number(projects.has(b.project)) - Number(projects.has(a.project)) ||
    byProject(a, b) ||
    Number(b.isFailing) - Number(a.isFailing)
  );
}

function byProject(a: { readonly project: string | null }, b: { readonly project: string | null }): number {
  if (a.project === b.project) return 0;
  if (a.project === null || b.project === null) return a.project === null ? 1 : -1;
  return a.project < b.project ? -1 : 1;
}

function cellOf(row: MatrixRow, column: MatrixColumn, count: number, isFailing: boolean): VisibleCell {
  if (isFailing) return { kind: "fails", count };
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

/** Neighbours of one project, for a heading above them. */
export function projectRuns(
  all: readonly { readonly project: string | null }[],
): { readonly project: string | null; count: number }[] {
  const runs: { project: string | null; count: number }[] = [];
  for (const { project } of all) {
    const last = runs.at(-1);
    if (last !== undefined && last.project === project) last.count++;
    else runs.push({ project, count: 1 });
  }
  return runs;
}

/** `api-1`, or `api ×2`: the project is in the heading above, or it is the only one. */
export function rowTitle({ rows }: VisibleRow): { readonly name: string; readonly times: number } {
  const [only] = rows;
  if (rows.length > 1 && only?.service != null) return { name: only.service, times: rows.length };
  return { name: shortName(only?.container ?? "", { project: only?.project ?? null }), times: 1 };
}

/**
 * The containers that use the network namespace of another one, by their names, each with that one. They are on its networks and
 * their queries are its own: nobody can tell them apart.
 */
export type Sharing = ReadonlyMap<string, ContainerReport>;

export function sharingOf(report: ContainersReport | null): Sharing {
  const all = report?.containers ?? [];
  if (all.every(({ sharesWith }) => sharesWith === undefined)) return new Map();
  const byName = new Map(all.map((each) => [each.name, each]));
  return new Map(
    all.flatMap(({ name, sharesWith }) => {
      const owner = sharesWith === undefined ? undefined : byName.get(sharesWith);
      return owner === undefined ? [] : [[name, owner] as const];
    }),
  );
}
