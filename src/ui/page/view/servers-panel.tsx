/** ServersPanel: the nameservers behind dns11: state, latency of the last five minutes, and what they are used for. */
import type { JSX } from "preact";
import type { HistoryReport, ServerHistory } from "../../../api/history.ts";
import type { Upstream } from "../../../api/upstreams.ts";
import { useCell } from "../data/cell.ts";
import { clock, milliseconds, plural } from "../model/format.ts";
import { measuredRtt, type SparkPoint, runsOf } from "../model/past.ts";
import { usePage } from "./context.ts";
import { useNow } from "./hooks.ts";
import { Empty, Panel, Pill, Wire } from "./parts.tsx";

const SERVERS_MAX = 12;
const TONES = { up: "ok", down: "bad", unknown: "plain" } as const;
const RANK = { down: 0, up: 1, unknown: 2 } as const;

export function ServersPanel(): JSX.Element {
  const { board } = usePage();
  const [report, history] = [useCell(board.upstreams), useCell(board.history)];
  const nowMs = useNow(10_000);
  const all = (report?.upstreams ?? []).toSorted(
    (a, b) => RANK[a.state] - RANK[b.state] || (b.counters?.queries ?? 0) - (a.counters?.queries ?? 0),
  );
  const shown = all.slice(0, SERVERS_MAX);
  return (
    <Panel
      id="servers"
      title="Nameservers"
      note={all.length > shown.length ? `${all.length - shown.length} more` : undefined}
    >
      {all.length === 0 ? (
        <Empty>No nameserver is in use yet.</Empty>
      ) : (
        <div class="table-scroll">
          <table class="servers">
            <thead>
              <tr>
                <th scope="col">Server</th>
                <th scope="col">State</th>
                <th scope="col" class="number">
                  Latency
                </th>
                <th scope="col" class="wide">
                  <span class="hidden">Last five minutes</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {shown.map((each) => (
                <ServerRow
                  key={`${each.server} ${each.container}`}
                  server={each}
                  history={historyOf(history, each)}
                  nowMs={nowMs}
                />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Panel>
  );
}

interface ServerRowProps {
  readonly server: Upstream;
  readonly history: ServerHistory | undefined;
  readonly nowMs: number;
}

function ServerRow({ server, history, nowMs }: ServerRowProps): JSX.Element {
  const { state, since, reason, rttMs, uses, isLooping } = server;
  const containers = new Set(uses.flatMap((use) => use.containers)).size;
  const domains = uses.map(({ domain }) => domain).filter((domain) => domain !== ".");
  return (
    <tr class={`server-${state}`}>
      <th scope="row">
        <Wire text={server.server} class="name" />
        <span class="note">
          {server.container === null ? "host" : <Wire text={server.container} />}, {plural(containers, "container")}
          {domains.length > 0 && <Wire text={`, ${domains.slice(0, 3).join(" ")}`} />}
        </span>
      </th>
      <td>
        <Pill tone={isLooping === true ? "bad" : TONES[state]}>
          {isLooping === true ? "loop" : state === "unknown" ? "idle" : state}
        </Pill>
        {state === "down" && (
          <span class="note reason">
            {since !== null && `since ${clock(since, nowMs)}`} {reason !== null && <Wire text={reason} />}
          </span>
        )}
      </td>
      <td class="number">{rttMs === null ? "–" : milliseconds(rttMs)}</td>
      <td class="wide">
        <Sparkline
          values={history === undefined ? [] : measuredRtt(history)}
          states={history?.states ?? []}
          label={`Latency of ${server.server} in the last five minutes`}
        />
      </td>
    </tr>
  );
}

function historyOf(history: HistoryReport | null, { server, container }: Upstream): ServerHistory | undefined {
  return history?.servers.find((each) => each.server === server && each.container === container);
}

const [WIDTH, HEIGHT] = [120, 26];

interface SparklineProps {
  readonly values: readonly (number | null)[];
  readonly states?: readonly ("up" | "down" | null)[];
  readonly label: string;
  /** How many samples the width is for. */
  readonly of?: number;
}

/** The last five minutes of a figure as a line; a gap where it is unknown, and red below where the server was down. */
export function Sparkline({ values, states = [], label, of = 60 }: SparklineProps): JSX.Element {
  const max = Math.max(1, ...values.map((value) => value ?? 0));
  const step = WIDTH / Math.max(1, of - 1);
  const x = (index: number): number => WIDTH - (values.length - 1 - index) * step;
  const y = (value: number): number => HEIGHT - 3 - (value / max) * (HEIGHT - 7);
  return (
    <svg
      class="sparkline"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      width={WIDTH}
      height={HEIGHT}
      role="img"
      aria-label={label}
    >
      {states.map((state, index) =>
        state === "down" ? (
          <rect key={index} class="down" x={x(index) - step} y={1} width={step + 0.4} height={HEIGHT - 2} />
        ) : null,
      )}
      <path class="base" d={`M0,${HEIGHT - 2.5} H${WIDTH}`} />
      {runsOf(values).map((run) => (
        <g key={run[0]?.index}>
          <path class="area" d={areaOf(run, x, y)} />
          <path class="line" d={lineOf(run, x, y)} />
        </g>
      ))}
    </svg>
  );
}

type Place = (value: number) => number;

/** A single point is a dot: the line has round ends. */
function lineOf(run: readonly SparkPoint[], x: Place, y: Place): string {
  const [first, ...others] = run.map(({ index, value }) => `${x(index).toFixed(1)},${y(value).toFixed(1)}`);
  return `M${first} ${others.length === 0 ? "h0" : others.map((each) => `L${each}`).join("")}`;
}

function areaOf(run: readonly SparkPoint[], x: Place, y: Place): string {
  const [first, last] = [run[0]?.index ?? 0, run.at(-1)?.index ?? 0];
  const top = run.map(({ index, value }) => `L${x(index).toFixed(1)},${y(value).toFixed(1)}`).join("");
  return `M${x(first).toFixed(1)},${HEIGHT - 2} ${top} L${x(last).toFixed(1)},${HEIGHT - 2} Z`;
}
