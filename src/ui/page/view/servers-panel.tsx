/** ServersPanel: the nameservers behind dns11: state, latency of the last five minutes, and what they are used for. */
import type { JSX } from "preact";

import type { HistoryReport, ServerHistory } from "../../../api/history.ts";
import type { Upstream } from "../../../api/upstreams.ts";
import { useCell } from "../data/cell.ts";
import { clock, milliseconds, plural } from "../model/format.ts";
import { measuredRtt } from "../model/spark-runs.ts";
import { usePage } from "./context.ts";
import { useNow } from "./hooks.ts";
import { Empty, Panel, Pill, Wire } from "./parts.tsx";
import { Sparkline } from "./sparkline.tsx";

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
