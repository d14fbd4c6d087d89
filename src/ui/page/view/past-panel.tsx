/** PastPanel: queries and failures over time as bars, and how far back the page looks: in the bars and in its lists. */
import type { JSX } from "preact";
import { useCell } from "../data/cell.ts";
import { clock, plural } from "../model/format.ts";
import { type Bar, type Past, RANGES, pastOf, sinceMs, eventText } from "../model/past.ts";
import { usePage } from "./context.ts";
import { Empty, Panel, Wire } from "./parts.tsx";
import { inScope } from "../model/scope.ts";
import { useNow } from "./hooks.ts";

const HEIGHT = 48;
/** Fewer bars are not drawn wider. */
const SLOTS_MIN = 60;
/** A failure among many queries can be seen, too. */
const FAILURE_HEIGHT_MIN = 3;

export function PastPanel(): JSX.Element {
  const { board, range, scope, setRange } = usePage();
  const past = pastOf(useCell(board.history), range);
  return (
    <Panel
      id="past"
      title="Over time"
      note={past === null ? undefined : `${summaryOf(past)}${scope.project === null ? "" : ", of all projects"}`}
      tools={RANGES.map(({ key, label }) => (
        <button key={key} type="button" aria-pressed={key === range} onClick={() => setRange(key)}>
          {label}
        </button>
      ))}
    >
      {past === null ? <Empty>Nothing has been counted yet.</Empty> : <Bars past={past} />}
    </Panel>
  );
}

function summaryOf({ queries, failures }: Past): string {
  return `${plural(queries, "query", "queries")}, ${failures.toLocaleString("en")} with NXDOMAIN or an error`;
}

function Bars({ past }: { readonly past: Past }): JSX.Element {
  const { bars, everyMs, untilMs } = past;
  const max = Math.max(1, ...bars.map(({ queries }) => queries));
  const slots = Math.max(SLOTS_MIN, bars.length);
  const timeOf = (ms: number): string => clock(new Date(ms).toISOString(), untilMs);
  return (
    <>
      <svg
        class="bars"
        viewBox={`0 0 ${slots} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${summaryOf(past)}, as bars`}
      >
        {bars.map((bar, index) => (
          <BarShape key={bar.fromMs} bar={bar} x={slots - bars.length + index} max={max} time={timeOf(bar.fromMs)} />
        ))}
      </svg>
      <p class="bars-times note">
        <span>{timeOf(untilMs - slots * everyMs)}</span>
        <span>{timeOf(untilMs)}</span>
      </p>
    </>
  );
}

interface BarProps {
  readonly bar: Bar;
  readonly x: number;
  readonly max: number;
  readonly time: string;
}

function BarShape({ bar: { queries, failures }, x, max, time }: BarProps): JSX.Element {
  const heightOf = (count: number, least: number): number =>
    count === 0 ? 0 : Math.max(least, (count / max) * HEIGHT);
  const [all, failed] = [heightOf(queries, 1), heightOf(failures, FAILURE_HEIGHT_MIN)];
  return (
    <g>
      <title>
        {time}: {plural(queries, "query", "queries")}, {failures.toLocaleString("en")} failed
      </title>
      <rect class="bar-room" x={x} y={0} width={1} height={HEIGHT} />
      <rect class="bar" x={x + 0.1} y={HEIGHT - all} width={0.8} height={all} />
      <rect class="bar-failed" x={x + 0.1} y={HEIGHT - failed} width={0.8} height={failed} />
    </g>
  );
}

const SHOWN_MAX = 60;

/** What happened lately, the last one first. */
export function EventsPanel(): JSX.Element {
  const { board, range, scope } = usePage();
  const nowMs = useNow(60_000);
  const since = sinceMs(useCell(board.history), range);
  const all = useCell(board.events);
  const events = all
    .filter(({ time }) => Date.parse(time) >= since)
    .filter((event) => event.project === null || inScope(scope, event))
    .slice(0, SHOWN_MAX);
  return (
    <Panel id="events" title="Events">
      {events.length === 0 && <Empty>Nothing has happened {all.length === 0 ? "yet" : "in this time"}.</Empty>}
      <ol class="events" tabIndex={events.length > 0 ? 0 : -1} aria-label="Events, the last one first">
        {events.map((event) => {
          const { tone, text } = eventText(event);
          return (
            <li key={event.number} class={`event event-${tone}`}>
              <time dateTime={event.time}>{clock(event.time, nowMs)}</time>
              <Wire text={text} />
            </li>
          );
        })}
      </ol>
    </Panel>
  );
}
