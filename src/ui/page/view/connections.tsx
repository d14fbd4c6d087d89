/** Connections: where a container connected to and which names it had asked, while `egress` is on. */
import type { JSX } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";

import { type EgressConnection, type EgressReport, isUnasked } from "../../../api/egress.ts";
import { clock } from "../model/format.ts";
import { usePage } from "./context.ts";
import { repeatedly } from "./hooks.ts";
import { Wire } from "./parts.tsx";

const EVERY_MS = 5_000;
const LISTED_MAX = 30;

/** Nothing while it is off. */
export function Connections({ id, nowMs }: { readonly id: string; readonly nowMs: number }): JSX.Element | null {
  const report = useConnections(id);
  const [container] = report?.containers ?? [];
  if (report === undefined || container === undefined) return null;
  const { connections, notRecorded, sharedWith, missingSince } = container;
  const more = connections.length - LISTED_MAX;
  return (
    <section class="drawer-part">
      <h3>Connects to</h3>
      {sharedWith !== null && (
        <p class="note">
          It shares the network of <Wire text={sharedWith} />, where its connections are listed.
        </p>
      )}
      {sharedWith === null &&
        notRecorded.map((reason) => (
          <p class="note" key={reason}>
            Not recorded: <Wire text={reason} />
          </p>
        ))}
      {missingSince !== null && (
        <p class="note">There were too many to record all since {clock(missingSince, nowMs)}.</p>
      )}
      {connections.length === 0 ? (
        <p class="note">None yet.</p>
      ) : (
        <div class="table-scroll">
          <table class="own-queries">
            <tbody>
              {connections.slice(0, LISTED_MAX).map((each) => (
                <ConnectionRow
                  key={`${each.protocol} ${each.port} ${each.address}`}
                  connection={each}
                  hasNames={report.hasNames}
                  nowMs={nowMs}
                />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {more > 0 && <p class="note">and {more} more</p>}
    </section>
  );
}

interface RowProps {
  readonly connection: EgressConnection;
  readonly hasNames: boolean;
  readonly nowMs: number;
}

function ConnectionRow({ connection, hasNames, nowMs }: RowProps): JSX.Element {
  const { address, port, protocol, last, count } = connection;
  return (
    <tr>
      <td class="mono">{clock(last, nowMs)}</td>
      <td>
        {hasNames && isUnasked(connection) ? (
          <b class="result">never asked</b>
        ) : (
          <Wire text={whatOf(connection, hasNames)} class="name" />
        )}
      </td>
      <td class="mono">
        <Wire text={address} />
      </td>
      <td class="mono">{port === null ? protocol : `${port}/${protocol}`}</td>
      <td class="mono">{count}</td>
    </tr>
  );
}

function whatOf({ names, owner }: EgressConnection, hasNames: boolean): string {
  if (names.length > 0) return names.join(", ");
  if (owner !== null) return owner.kind === "host" ? `the host, on ${owner.name}` : `container ${owner.name}`;
  return hasNames ? "" : "hidden";
}

function useConnections(id: string): EgressReport | undefined {
  const { board } = usePage();
  const [report, setReport] = useState<EgressReport | undefined>(undefined);
  useLayoutEffect(() => {
    const { run } = board;
    if (run === null) return undefined;
    return repeatedly(EVERY_MS, async () => await run.connectionsOf(id), setReport);
  }, [id]);
  return report;
}
