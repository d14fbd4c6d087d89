/**
 * LivePanel: queries as they arrive, the latest first. The server filters; of a fast stream it sends some, and the others are counted. The
 * list keeps its place while somebody reads: it waits as long as it is scrolled.
 */
import type { JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

import type { TapeRow } from "../data/query-tape.ts";
import type { QueryFilter } from "../data/board.ts";
import { useCell } from "../data/cell.ts";
import { milliseconds, preciseClock } from "../model/format.ts";
import { inScope, shortName } from "../model/scope.ts";
import { usePage } from "./context.ts";
import { moveFocus, stop } from "./hooks.ts";
import { Cut, Empty, Panel } from "./parts.tsx";

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
  const { board } = usePage();
  const [filter, setFilter] = useState(NO_FILTER);
  const [isPaused, setPaused] = useState(false);
  const isLive = board.run !== null;
  useLayoutEffect(() => {
    // A new stream for every letter would be too much.
    const timer = setTimeout(() => board.run?.follow(isPaused ? null : filter), FILTER_MS);
    return () => clearTimeout(timer);
  }, [board, filter, isPaused]);
  return (
    <Panel
      id="live"
      title={isLive ? "Live queries" : "Last queries"}
      tools={
        isLive && (
          <Tools filter={filter} onFilter={setFilter} isPaused={isPaused} onPause={() => setPaused(!isPaused)} />
        )
      }
    >
      <Tape isPaused={isPaused} hasFilter={Object.values(filter).some((each) => each !== "")} />
    </Panel>
  );
}

interface ToolsProps {
  readonly filter: QueryFilter;
  readonly onFilter: (filter: QueryFilter) => void;
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
        onChange={(event) => onFilter({ ...filter, container: event.currentTarget.value })}
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
        onInput={(event) => onFilter({ ...filter, text: event.currentTarget.value })}
      />
      <select
        aria-label="Result"
        value={filter.result}
        onChange={(event) => onFilter({ ...filter, result: event.currentTarget.value })}
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
  const { board, explain, scope } = usePage();
  useCell(board.tape.drawn);
  const area = useRef<HTMLDivElement>(null);
  const [isScrolled, setScrolled] = useState(false);
  const held = useRef<readonly TapeRow[]>([]);
  const inProject = useNamesInProject();
  if (!isScrolled) held.current = rowsOf(board.tape.rows, inProject);
  const rows = held.current.slice(0, DRAWN_MAX);
  const { skipped } = board.tape;
  return (
    <>
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
              <QueryRow
                key={index}
                row={row}
                container={shortName(row.container, scope)}
                isFirst={index === 0}
                onExplain={() => row.name !== null && explain(row.container, row.name, row.type ?? "A")}
              />
            ))}
          </tbody>
        </table>
        {rows.length === 0 && <Empty>{hasFilter ? "No query matches." : "No query has arrived yet."}</Empty>}
      </div>
      <p class="note tape-foot">
        {isPaused ? "Paused. " : isScrolled ? "Waiting while it is scrolled. " : ""}
        {skipped > 0 && `${skipped.toLocaleString("en")} more queries are not shown.`}
      </p>
    </>
  );
}

/** The containers of the chosen project; null for all. */
function useNamesInProject(): ReadonlySet<string> | null {
  const { board, scope } = usePage();
  const containers = useCell(board.containers)?.containers ?? [];
  return scope.project === null
    ? null
    : new Set(containers.filter((each) => inScope(scope, each)).map(({ name }) => name));
}

function rowsOf(rows: readonly TapeRow[], names: ReadonlySet<string> | null): readonly TapeRow[] {
  return names === null ? rows : rows.filter(({ container }) => names.has(container));
}

interface QueryRowProps {
  readonly row: TapeRow;
  readonly container: string;
  readonly isFirst: boolean;
  readonly onExplain: () => void;
}

export function QueryRow({ row, container, isFirst, onExplain }: QueryRowProps): JSX.Element {
  const { rcode, name, type, result, upstream, rule, ms, cause } = row;
  const isBad = rcode !== "NOERROR";
  return (
    <tr
      class={isBad ? "query query-bad" : "query"}
      {...stop(isFirst)}
      title={cause?.sentence}
      onClick={onExplain}
      onKeyDown={(event) => event.key === "Enter" && onExplain()}
    >
      <td class="time">{preciseClock(row.time)}</td>
      <td class="who">
        <Cut text={container} />
      </td>
      <td class="type">{type ?? ""}</td>
      <td class="what">
        <Cut text={name ?? "(hidden)"} />
      </td>
      <td class="result">
        <Cut text={resultText(row)} />
      </td>
      <td class="how">
        <Cut text={rule ?? (upstream === null ? result : `${result} ${upstream}`)} />
      </td>
      <td class="number">{ms === 0 ? "" : milliseconds(ms)}</td>
    </tr>
  );
}

function resultText({ rcode, addresses, owners = [], answers }: TapeRow): string {
  if (rcode !== "NOERROR") return rcode;
  const [address] = addresses;
  if (address === undefined) return answers === 0 ? "NODATA" : `${answers} records`;
  const owner = owners.find((each) => each.address === address);
  const more = answers > 1 ? ` +${answers - 1}` : "";
  return owner === undefined ? `${address}${more}` : `${address} ${owner.container}${more}`;
}
