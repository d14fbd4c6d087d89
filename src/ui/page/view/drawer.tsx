/** Drawer: all about one container: its networks and names, resolv.conf, servers, what fails in it, and its last queries. */
import type { ComponentChildren, JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { ContainerReport } from "../../../api/containers.ts";
import { useCell } from "../data/cell.ts";
import { type FailingEntry, failingIn } from "../model/failing.ts";
import { clock } from "../model/format.ts";
import type { Lookup } from "../model/lookup.ts";
import { usePage } from "./context.ts";
import { useNow, repeatedly } from "./hooks.ts";
import { ExplainCard, useQuestion } from "./explain-card.tsx";
import { LookupRow } from "./lookup-row.tsx";
import { CauseView } from "./cause-view.tsx";
import { Pill, Wire } from "./parts.tsx";
import { type EgressConnection, type EgressReport, isUnasked } from "../../../api/egress.ts";

const QUERIES_EVERY_MS = 2_000;
const NAMES_MAX = 12;

interface DrawerProps {
  /** A name or an ID; null closes it. */
  readonly container: string | null;
  readonly onClose: () => void;
}

/** A dialog keeps the focus inside, and closes with Escape. */
export function Drawer({ container, onClose }: DrawerProps): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    if (container === null) dialog.current?.close();
    else if (dialog.current?.open === false) dialog.current.showModal();
  }, [container]);
  return (
    <dialog
      class="drawer"
      ref={dialog}
      aria-labelledby="drawer-title"
      onClose={onClose}
      onClick={(event) => event.target === dialog.current && onClose()}
    >
      {container !== null && <DrawerContents key={container} wanted={container} onClose={onClose} />}
    </dialog>
  );
}

function DrawerContents({ wanted, onClose }: { readonly wanted: string; readonly onClose: () => void }): JSX.Element {
  const { board, explain, question, closeExplanation } = usePage();
  const known = useCell(board.containers)?.containers.find(({ id, name }) => id === wanted || name === wanted);
  const { detail, queries } = useDetail(known?.id ?? wanted);
  const nowMs = useNow(10_000);
  const report = useCell(board.failures);
  const asked = useQuestion("drawer");
  const held = useRef(queries);
  // The line that is being read does not change its place.
  if (asked === null) held.current = queries;
  useLayoutEffect(() => () => void (question.value?.place === "drawer" && closeExplanation()), []);
  const fails = known === undefined ? [] : failingIn(report, known, nowMs);
  return (
    <div class="drawer-body">
      <header>
        <h2 id="drawer-title">
          <Wire text={known?.name ?? wanted} />
        </h2>
        <button type="button" onClick={onClose} aria-label="Close">
          ✕
        </button>
      </header>
      {known === undefined ? (
        <p>This container no longer exists.</p>
      ) : (
        <>
          <State container={known} nowMs={nowMs} />
          {fails.length > 0 && (
            <Part title="Fails">
              {fails.map((entry) => (
                <Fails key={entry.key} entry={entry} />
              ))}
            </Part>
          )}
          <Networks container={known} />
          <Resolving container={known} detail={detail} />
          <Connections id={known.id} nowMs={nowMs} />
          {board.run !== null && (
            <Part title="Last queries">
              {held.current.length === 0 ? (
                <p class="note">None yet.</p>
              ) : (
                <div class="table-scroll">
                  <table class="own-queries">
                    <tbody>
                      {held.current.map((row, index) => (
                        <LookupRow
                          key={index}
                          lookup={row}
                          container=""
                          isFirst={index === 0}
                          isExplained={asked?.row === row.key}
                          onExplain={(type) => {
                            if (row.name === null) return;
                            explain({ container: known.name, name: row.name, type, place: "drawer", row: row.key });
                          }}
                        />
                      ))}
                    </tbody>
                  </table>
                </div>
              )}
              <ExplainCard place="drawer" />
            </Part>
          )}
        </>
      )}
    </div>
  );
}

function Fails({ entry }: { readonly entry: FailingEntry }): JSX.Element {
  const { results, names, cause } = entry;
  return (
    <div>
      <p>
        <b class="result">{results.join(", ")}</b> <Wire text={names.join(", ")} class="name" />
      </p>
      {cause !== null && <CauseView cause={cause} entry={entry} />}
    </div>
  );
}

function State({ container, nowMs }: { readonly container: ContainerReport; readonly nowMs: number }): JSX.Element {
  const { state, exitCode, since, health, dns, reason, project, service } = container;
  const isServed = dns === "attached" || dns === "verifying";
  return (
    <div class="drawer-state">
      <p>
        <Pill tone={state === "running" ? "ok" : "warn"}>
          {exitCode === null || state === "running" ? state : `${state} (${exitCode})`}
        </Pill>
        {dns !== null && (
          <Pill tone={isServed ? "ok" : dns === "skipped" ? "plain" : "bad"}>{isServed ? "served by dns11" : dns}</Pill>
        )}
        {health !== null && <Pill tone={health === "unhealthy" ? "bad" : "plain"}>{health}</Pill>}
        {since !== null && <span class="note"> since {clock(since, nowMs)}</span>}
      </p>
      {project !== null && (
        <p class="note">
          Service <Wire text={service ?? ""} /> of project <Wire text={project} />
        </p>
      )}
      {reason !== null && (
        <p>
          <Wire text={reason} />
        </p>
      )}
    </div>
  );
}

function Networks({ container }: { readonly container: ContainerReport }): JSX.Element {
  return (
    <Part title="Networks and names">
      {container.networks.length === 0 && <p class="note">It is on no network.</p>}
      {container.networks.map(({ network, names, ipv4, ipv6, hasNames }) => (
        <div class="drawer-network" key={network}>
          <h4>
            <Wire text={network} />
          </h4>
          <p class="mono">{[ipv4, ipv6].filter((address) => address !== null).join(", ") || "no address"}</p>
          <p class="names">
            {names.slice(0, NAMES_MAX).map((name) => (
              <code key={name}>
                <Wire text={name} />
              </code>
            ))}
            {names.length > NAMES_MAX && <span class="note">{names.length - NAMES_MAX} more</span>}
            {!hasNames && <span class="note">containers have no names on this network</span>}
          </p>
        </div>
      ))}
    </Part>
  );
}

interface ResolvingProps {
  readonly container: ContainerReport;
  readonly detail: ContainerReport | undefined;
}

function Resolving({ container, detail }: ResolvingProps): JSX.Element {
  const resolvConf = detail?.resolvConf ?? null;
  return (
    <Part title="Resolving">
      <dl class="pairs-list">
        <dt>forwarded to</dt>
        <dd>
          <Wire text={container.upstreams.join(", ") || "no server"} class="mono" />
        </dd>
        {resolvConf !== null && (
          <>
            <dt>resolv.conf</dt>
            <dd>
              <Wire text={resolvConf.servers.join(", ") || "no nameserver"} class="mono" />
            </dd>
            {resolvConf.search.length > 0 && (
              <>
                <dt>search</dt>
                <dd>
                  <Wire text={resolvConf.search.join(" ")} class="mono" />
                </dd>
              </>
            )}
            {resolvConf.options.length > 0 && (
              <>
                <dt>options</dt>
                <dd>
                  <Wire text={resolvConf.options.join(" ")} class="mono" />
                </dd>
              </>
            )}
          </>
        )}
      </dl>
    </Part>
  );
}

function Part({ title, children }: { readonly title: string; readonly children: ComponentChildren }): JSX.Element {
  return (
    <section class="drawer-part">
      <h3>{title}</h3>
      {children}
    </section>
  );
}

/** What the list of all containers does not have, for as long as the drawer is open. */
function useDetail(id: string): { readonly detail: ContainerReport | undefined; readonly queries: readonly Lookup[] } {
  const { board } = usePage();
  const [detail, setDetail] = useState<ContainerReport | undefined>(undefined);
  const [queries, setQueries] = useState<readonly Lookup[]>([]);
  useLayoutEffect(() => {
    const { run } = board;
    if (run === null) return undefined;
    let isOpen = true;
    run.container(id).then(
      (found) => isOpen && setDetail(found),
      () => {},
    );
    const end = repeatedly(QUERIES_EVERY_MS, async () => await run.lookupsOf(id).catch(() => []), setQueries);
    return () => {
      isOpen = false;
      end();
    };
  }, [id]);
  return { detail, queries };
}

const EVERY_MS = 5_000;
const LISTED_MAX = 30;

/** Where a container connected to, and which names it had asked; nothing while `egress` is off. */
function Connections({ id, nowMs }: { readonly id: string; readonly nowMs: number }): JSX.Element | null {
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
