/**
 * LivePanel: queries as they arrive, the latest first. The server filters; of a fast stream it sends some, and the others are counted. The
 * list keeps its place while somebody reads: it waits as long as it is scrolled.
 */
import type { JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

import type { QueryFilter } from "../data/board.ts";
import { useCell } from "../data/cell.ts";
import type { Lookup } from "../model/lookup.ts";
import { sinceMs } from "../model/past.ts";
import { inScope, shortName } from "../model/scope.ts";
import { usePage } from "./context.ts";
import { ExplainCard, useQuestion } from "./explain-card.tsx";
import { moveFocus } from "./hooks.ts";
import { LookupRow } from "./lookup-row.tsx";
import { Empty, Panel } from "./parts.tsx";

const DRAWN_MAX = 60;
const FILTER_MS = 300;
const COLUMNS = [
  ["Time", "time"],
  ["Container", "who"],
  ["Type", "type"],
  ["Name", "what"],
  ["Result", "result"],
  ["How", "how"],
  ["Took", "number"],
] as const;
const NO_FILTER: QueryFilter = { container: "", text: "", result: "" };
const RESULTS = ["NOERROR", "NXDOMAIN", "SERVFAIL", "REFUSED", "FORMERR", "NOTIMP"];

export function LivePanel(): JSX.Element {
  const { board, closeExplanation } = usePage();
  const isExplaining = useQuestion("live") !== null;
  const [filter, setFilter] = useState(NO_FILTER);
  const [isPaused, setPaused] = useState(false);
  const isLive = board.run !== null;
  useLayoutEffect(() => {
    // A new stream for every letter would be too much.
    const timer = setTimeout(() => board.run?.follow(isPaused ? null : filter), FILTER_MS);
    return () => clearTimeout(timer);
  }, [board, filter, isPaused]);
  const onFilter = (change: Partial<QueryFilter>): void => {
    // Another part may have changed since this was drawn.
    setFilter((now) => ({ ...now, ...change }));
    // The list is another one.
    if (isExplaining) closeExplanation();
  };
  return (
    <Panel
      id="live"
      title={isLive ? "Live queries" : "Last queries"}
      tools={
        isLive && (
          <Tools filter={filter} onFilter={onFilter} isPaused={isPaused} onPause={() => setPaused((now) => !now)} />
        )
      }
    >
      <Tape isPaused={isPaused} hasFilter={Object.values(filter).some((each) => each !== "")} />
    </Panel>
  );
}

interface ToolsProps {
  readonly filter: QueryFilter;
  readonly onFilter: (change: Partial<QueryFilter>) => void;
  readonly isPaused: boolean;
  readonly onPause: () => void;
}

function Tools({ filter, onFilter, isPaused, onPause }: ToolsProps): JSX.Element {
  const { board, scope } = usePage();
  const containers = useCell(board.containers)?.containers ?? [];
  return (
    <>
      <select
        aria-label="Container"
        value={filter.container}
        onChange={(event) => onFilter({ container: event.currentTarget.value })}
      >
        <option value="">all containers</option>
        {containers
          .filter((each) => each.dns !== null && inScope(scope, each))
          .map(({ id, name }) => (
            <option key={id} value={name}>
              {shortName(name, scope)}
            </option>
          ))}
      </select>
      <input
        type="search"
        id="live-filter"
        aria-label="Filter names; * stands for any text"
        placeholder="name or *.pattern"
        value={filter.text}
        onInput={(event) => onFilter({ text: event.currentTarget.value })}
      />
      <select
        aria-label="Result"
        value={filter.result}
        onChange={(event) => onFilter({ result: event.currentTarget.value })}
      >
        <option value="">all results</option>
        <option value="failures">failures</option>
        {RESULTS.map((each) => (
          <option key={each} value={each}>
            {each}
          </option>
        ))}
      </select>
      <button type="button" aria-pressed={isPaused} onClick={onPause} id="live-pause">
        {isPaused ? "Resume" : "Pause"}
      </button>
    </>
  );
}

function Tape({ isPaused, hasFilter }: { readonly isPaused: boolean; readonly hasFilter: boolean }): JSX.Element {
  const { board, explain, range, scope } = usePage();
  const since = sinceMs(useCell(board.history), range);
  const asked = useQuestion("live");
  useCell(board.tape.drawn);
  const area = useRef<HTMLDivElement>(null);
  const [isScrolled, setScrolled] = useState(false);
  const held = useRef<readonly Lookup[]>([]);
  const inProject = useNamesInProject();
  if (!isScrolled && asked === null) held.current = rowsOf(board.tape.rows, inProject, since);
  const rows = held.current.slice(0, DRAWN_MAX);
  const { skipped } = board.tape;
  return (
    <>
      <div class={asked === null ? "live-body" : "live-body is-explaining"}>
        <div class="tape" ref={area} tabIndex={-1} onScroll={(event) => setScrolled(event.currentTarget.scrollTop > 8)}>
          <table>
            <thead>
              <tr>
                {COLUMNS.map(([title, column]) => (
                  <th key={title} scope="col" class={column}>
                    {title}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody onKeyDown={(event) => moveFocus(event)}>
              {rows.map((row, index) => (
                <LookupRow
                  key={index}
                  lookup={row}
                  container={shortName(row.container, scope)}
                  isFirst={index === 0}
                  isExplained={asked !== null && asked.row === row.key}
                  onExplain={(type) => {
                    const { container, name, key } = row;
                    if (name !== null) explain({ container, name, type, place: "live", row: key });
                  }}
                />
              ))}
            </tbody>
          </table>
          {rows.length === 0 && <Empty>{hasFilter ? "No query matches." : "No query has arrived yet."}</Empty>}
        </div>
        <ExplainCard place="live" />
      </div>
      <p class="note tape-foot">
        {waitText(isPaused, isScrolled, asked !== null)}
        {skipped > 0 && `${skipped.toLocaleString("en")} more queries are not shown.`}
      </p>
    </>
  );
}

function waitText(isPaused: boolean, isScrolled: boolean, isExplaining: boolean): string {
  if (isPaused) return "Paused. ";
  if (isExplaining) return "Waiting while an explanation is open. ";
  return isScrolled ? "Waiting while it is scrolled. " : "";
}

/** The containers of the chosen project; null for all. */
function useNamesInProject(): ReadonlySet<string> | null {
  const { board, scope } = usePage();
  const containers = useCell(board.containers)?.containers ?? [];
  return scope.project === null
    ? null
    : new Set(containers.filter((each) => inScope(scope, each)).map(({ name }) => name));
}

function rowsOf(rows: readonly Lookup[], names: ReadonlySet<string> | null, since: number): readonly Lookup[] {
  return rows.filter(({ container, time }) => (names === null || names.has(container)) && Date.parse(time) >= since);
}
