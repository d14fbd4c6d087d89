/** VisibilityPanel: who sees whom: as a table of services, and as a drawing of the networks. */
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";

import { useCell } from "../data/cell.ts";
import {
  type VisibleCell,
  type VisibleRow,
  projectRuns,
  rowTitle,
  visibilityOf,
  sharingOf,
} from "../model/visibility.ts";
import { usePage } from "./context.ts";
import { moveFocus, stop } from "./hooks.ts";
import { ExplainCard } from "./explain-card.tsx";
import { NetworkDrawing } from "./network-drawing.tsx";
import { Cut, Empty, Panel, Wire } from "./parts.tsx";

/** More than this many names stand upright. */
const UPRIGHT_FROM = 7;
const MARKS: Readonly<Record<VisibleCell["kind"], string>> = {
  sees: "",
  none: "·",
  other: "≠",
  fails: "!",
  self: "–",
  stopped: "○",
};

export function VisibilityPanel(): JSX.Element {
  return (
    <Panel id="visibility" title="Who sees whom">
      <div class="visibility">
        <VisibilityTable />
        <NetworkDrawing />
      </div>
    </Panel>
  );
}

function VisibilityTable(): JSX.Element {
  const { board, scope, failing, explain, open } = usePage();
  const [matrix, containers] = [useCell(board.matrix), useCell(board.containers)];
  const { columns, rows, omitted } = useMemo(
    () => visibilityOf(matrix, failing.now, scope, sharingOf(containers)),
    [matrix, containers, failing, scope],
  );
  const runs = projectRuns(columns);
  if (rows.length === 0) return <Empty>No container with names runs.</Empty>;
  return (
    <div class="matrix-area">
      <div class="matrix-scroll" tabIndex={-1}>
        <table
          class={columns.length > UPRIGHT_FROM ? "matrix is-upright" : "matrix"}
          onKeyDown={(event) => moveFocus(event, columns.length + 1)}
        >
          <caption class="hidden">How many containers each name resolves to in each container</caption>
          <thead>
            {runs.length > 1 && (
              <tr>
                <td />
                {runs.map(({ project, count }) => (
                  <th scope="colgroup" class="project" key={project} colSpan={count} title={project ?? "no project"}>
                    {project !== null && <Cut text={project} />}
                  </th>
                ))}
              </tr>
            )}
            <tr>
              <td />
              {columns.map(({ name, project }) => (
                <th scope="col" key={`${project} ${name}`} title={project === null ? name : `${name} (${project})`}>
                  <Cut text={name} />
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, index) => [
              isNext(rows, index) && (
                <tr key={`project of ${row.key}`} class="is-next">
                  <th scope="rowgroup" class="project" colSpan={columns.length + 1}>
                    <Wire text={row.rows[0]?.project ?? "no project"} />
                  </th>
                </tr>
              ),
              <tr key={row.key}>
                <th scope="row">
                  <button
                    type="button"
                    class="link"
                    {...stop(index === 0)}
                    onClick={() => open(row.rows[0]?.containerId ?? "")}
                  >
                    <RowTitle row={row} />
                  </button>
                </th>
                {row.cells.map((cell, at) => {
                  const column = columns[at];
                  const container = row.rows[0]?.container ?? "";
                  const text = cellText(cell, container, column?.name ?? "");
                  return (
                    <td key={`${column?.project} ${column?.name}`} class={`cell cell-${cell.kind}`}>
                      <button
                        type="button"
                        {...stop(false)}
                        title={text}
                        aria-label={text}
                        disabled={board.run === null}
                        onClick={() => explain({ container, name: column?.name ?? "", type: "A", place: "visibility" })}
                      >
                        {cell.kind === "sees" ? cell.count : MARKS[cell.kind]}
                      </button>
                    </td>
                  );
                })}
              </tr>,
            ])}
          </tbody>
        </table>
      </div>
      <ExplainCard place="visibility" />
      <ul class="legend" aria-hidden="true">
        <li>
          <i class="cell-sees">1</i> containers it resolves to
        </li>
        <li>
          <i class="cell-fails">!</i> looked up, and fails
        </li>
        <li>
          <i class="cell-none">·</i> not visible
        </li>
        <li>
          <i class="cell-stopped">○</i> not running
        </li>
        <li>
          <i class="cell-other">≠</i> something else has the name
        </li>
      </ul>
      {omitted > 0 && <p class="note">{omitted} more rows and columns: choose a project.</p>}
    </div>
  );
}

/** Whether it is the first of a project, if there are several. */
function isNext(rows: readonly VisibleRow[], index: number): boolean {
  const projectAt = (at: number): string | null | undefined => rows[at]?.rows[0]?.project;
  if (index > 0) return projectAt(index) !== projectAt(index - 1);
  return rows.some((_, at) => projectAt(at) !== projectAt(0));
}

function RowTitle({ row }: { readonly row: VisibleRow }): JSX.Element {
  const { name, times } = rowTitle(row);
  return (
    <>
      <Cut text={name} />
      {times > 1 && <span class="note"> ×{times}</span>}
    </>
  );
}

function cellText({ kind, count }: VisibleCell, container: string, name: string): string {
  switch (kind) {
    case "sees":
      return `${container} resolves ${name} to ${count === 1 ? "1 container" : `${count} containers`}`;
    case "none":
      return `${container} cannot resolve ${name}`;
    case "other":
      return `${container} resolves ${name} to something else`;
    case "fails":
      return `${container} looks up ${name}, and it fails`;
    case "self":
      return `${container} itself`;
    case "stopped":
      return `no container of ${name} runs`;
  }
}
