/** VerdictBar: the top of the page: what is wrong in one sentence, which project is shown, and whether the page is up to date. */
import type { JSX } from "preact";
import { useLayoutEffect } from "preact/hooks";

import type { Connection } from "../data/board.ts";
import { useCell } from "../data/cell.ts";
import { clock, duration } from "../model/format.ts";
import { type Scope, projectsOf } from "../model/scope.ts";
import { type Level, serversOf, verdictOf } from "../model/verdict.ts";
import { usePage } from "./context.ts";
import { useNow } from "./hooks.ts";
import { Sparkline } from "./servers-panel.tsx";

const MARKS: Readonly<Record<Level, string>> = { ok: "✓", warn: "!", bad: "✕", none: "…" };

export function VerdictBar({ onScope }: { readonly onScope: (scope: Scope) => void }): JSX.Element {
  const { board, scope, failing, shown } = usePage();
  const [status, containers, upstreams] = [useCell(board.status), useCell(board.containers), useCell(board.upstreams)];
  const [history, areFailuresOff] = [useCell(board.history), useCell(board.areFailuresOff)];
  const { state: connection } = useCell(board.connection);
  const isStopped = connection === "no-daemon";
  const nowMs = useNow(10_000);
  const { level, text, detail } = verdictOf({
    scope,
    shown,
    muted: failing.now.length - shown.length,
    areFailuresOff,
    connection,
    status,
    containers,
    upstreams,
  });
  useTitle(level, text);
  const projects = projectsOf(containers?.containers ?? []);
  const { down, total } = serversOf(upstreams);
  return (
    <header class={`verdict verdict-${level}`}>
      <div class="brand">
        <img src="icon.svg" alt="" width="26" height="26" />
        <h1>dns11</h1>
        <label class="scope">
          <span class="hidden">Compose project</span>
          <select
            value={scope.project ?? ""}
            onChange={(event) =>
              onScope({ project: event.currentTarget.value === "" ? null : event.currentTarget.value })
            }
          >
            <option value="">all projects</option>
            {projects.map((project) => (
              <option key={project} value={project}>
                {project}
              </option>
            ))}
          </select>
        </label>
      </div>
      <p class="sentence" role="status">
        <span class="mark" aria-hidden="true">
          {MARKS[level]}
        </span>
        <span>
          <strong>{text}</strong> <span class="note">{detail}</span>
        </span>
      </p>
      <dl class="facts">
        <div class="fact-rate">
          <dt>queries</dt>
          <dd>
            <Sparkline values={history?.rates.queries ?? []} label="Queries in the last five minutes" />
          </dd>
        </div>
        <div>
          <dt>nameservers</dt>
          <dd class={down > 0 ? "bad" : ""}>
            {upstreams === null ? "" : total === 0 ? "none" : `${total - down}/${total} up`}
          </dd>
        </div>
        <div>
          <dt>dns11</dt>
          <dd class={isStopped ? "bad" : ""}>
            {isStopped ? "stopped" : status === null ? "" : `up ${duration(nowMs - Date.parse(status.since))}`}
          </dd>
        </div>
        <ConnectionState />
      </dl>
    </header>
  );
}

function ConnectionState(): JSX.Element {
  const connection = useCell(usePage().board.connection);
  const isLive = connection.state === "live";
  const text = connection.state === "snapshot" ? "snapshot" : isLive ? "live" : "not live";
  return (
    <div>
      <dt class="hidden">page</dt>
      <dd class={`connection ${isLive ? "is-live" : ""}`}>{text}</dd>
    </div>
  );
}

/** What is wrong with the page itself, below the verdict; nothing if it is live. */
export function ConnectionNotice(): JSX.Element | null {
  const { board } = usePage();
  const connection = useCell(board.connection);
  const isFilled = useCell(board.isFilled);
  const nowMs = useNow(10_000);
  const notice = noticeOf(connection, isFilled, nowMs);
  return notice === null ? null : (
    <div class={`notice notice-${connection.state}`} role="alert">
      <strong>{notice[0]}</strong> {notice[1]}
    </div>
  );
}

function noticeOf(connection: Connection, isFilled: boolean, nowMs: number): readonly [string, string] | null {
  switch (connection.state) {
    case "connecting":
    case "live":
      return null;
    case "snapshot": {
      const { takenAt, isRedacted } = connection;
      const redacted = isRedacted ? " Names and addresses are replaced by others." : "";
      return [
        `Snapshot of ${clock(takenAt, nowMs)}.`,
        `It does not change, and nothing can be asked of it.${redacted}`,
      ];
    }
    case "denied":
      return ["This page is not allowed to see dns11.", "Open the address that `dns11 ui` printed, with its token."];
    case "no-server":
    case "no-daemon": {
      const what = connection.state === "no-server" ? "`dns11 ui` does not respond" : "dns11 is not running";
      const remedy =
        connection.state === "no-server"
          ? "Start it again, and open the address that it prints."
          : "Start it: the page continues by itself.";
      return [
        `${what} since ${clock(new Date(connection.sinceMs).toISOString(), nowMs)}.`,
        isFilled ? `What is shown is from before. ${remedy}` : remedy,
      ];
    }
  }
}

function useTitle(level: Level, text: string): void {
  useLayoutEffect(() => {
    document.title = level === "ok" || level === "none" ? "dns11" : `${MARKS[level]} ${text} · dns11`;
  }, [level, text]);
}
