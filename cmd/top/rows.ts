/**
 * Rows: the containers and names of a snapshot, sorted and filtered as the reader has chosen.
 */
import type { ContainerFigures, Figures, NameFigures, Snapshot } from "./query-statistics.ts";

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

export interface Rows {
  readonly containers: readonly ContainerFigures[];
  readonly names: readonly NameFigures[];
}

/** A row is kept if its own name contains the filter. A snapshot is sorted by queries. */
export function rowsOf({ containers, names }: Snapshot, choice: Choice): Rows {
  return {
    containers: chosen(containers, ({ container }) => container, choice),
    names: chosen(names, ({ name }) => name ?? "", choice),
  };
}

type Row = Figures & { readonly isFailingContainer?: boolean };

function chosen<T extends Row>(rows: readonly T[], nameOf: (row: T) => string, choice: Choice): T[] {
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
