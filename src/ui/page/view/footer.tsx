/** Footer: what is seldom needed: the cache with its entries, the settings, and the version. */
import type { ComponentChildren, JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

import type { CacheEntriesReport, CacheReport } from "../../../api/cache.ts";
import { useCell } from "../data/cell.ts";
import { bytes, plural } from "../model/format.ts";
import { usePage } from "./context.ts";
import { repeatedly } from "./hooks.ts";
import { Wire } from "./parts.tsx";

const EVERY_MS = 2_000;

export function Footer(): JSX.Element {
  const { board } = usePage();
  const status = useCell(board.status);
  const [open, setOpen] = useState<"" | "cache" | "settings" | "keys">("");
  const changed = Object.values(status?.settings ?? {}).filter(({ source }) => source !== "default").length;
  return (
    <footer class="foot">
      <button type="button" class="link" onClick={() => setOpen("cache")}>
        Cache
      </button>
      <button type="button" class="link" onClick={() => setOpen("settings")}>
        Settings{changed > 0 && ` (${changed} changed)`}
      </button>
      <button type="button" class="link" id="keys" onClick={() => setOpen("keys")}>
        Keys
      </button>
      {status !== null && (
        <span class="note">
          dns11 {status.version}, {status.mode} mode, rules {status.ruleBackend}, {bytes(status.memoryBytes)}
          {status.engine !== null && `, Docker Engine ${status.engine.version}`}
        </span>
      )}
      <Dialog title="Cache" isOpen={open === "cache"} onClose={() => setOpen("")}>
        <CacheView />
      </Dialog>
      <Dialog title="Settings" isOpen={open === "settings"} onClose={() => setOpen("")}>
        <SettingsView />
      </Dialog>
      <Dialog title="Keys" isOpen={open === "keys"} onClose={() => setOpen("")}>
        <dl class="pairs-list">
          {board.run !== null && <RunKeys />}
          <dt>
            <kbd>?</kbd>
          </dt>
          <dd>show these keys</dd>
          <dt>
            <kbd>←</kbd> <kbd>↑</kbd> <kbd>→</kbd> <kbd>↓</kbd>
          </dt>
          <dd>move in the table, the drawing and the queries; Enter opens</dd>
          <dt>
            <kbd>Esc</kbd>
          </dt>
          <dd>close</dd>
        </dl>
      </Dialog>
    </footer>
  );
}

/** A snapshot cannot be asked. */
function RunKeys(): JSX.Element {
  return (
    <>
      <dt>
        <kbd>/</kbd>
      </dt>
      <dd>ask about a name</dd>
      <dt>
        <kbd>f</kbd>
      </dt>
      <dd>filter the live queries</dd>
      <dt>
        <kbd>p</kbd>
      </dt>
      <dd>pause or resume them</dd>
    </>
  );
}

interface DialogProps {
  readonly title: string;
  readonly isOpen: boolean;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

function Dialog({ title, isOpen, onClose, children }: DialogProps): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    if (!isOpen) dialog.current?.close();
    else if (dialog.current?.open === false) dialog.current.showModal();
  }, [isOpen]);
  return (
    <dialog
      class="dialog"
      ref={dialog}
      aria-label={title}
      onClose={onClose}
      onClick={(event) => event.target === dialog.current && onClose()}
    >
      {isOpen && (
        <div class="dialog-body">
          <header>
            <h2>{title}</h2>
            <button type="button" onClick={onClose} aria-label="Close">
              ✕
            </button>
          </header>
          {children}
        </div>
      )}
    </dialog>
  );
}

function CacheView(): JSX.Element {
  const { board } = usePage();
  const [filter, setFilter] = useState("");
  const { report, entries } = useCache(filter);
  if (report === null) return <p class="note">Reading the cache…</p>;
  const total = report.hits + report.misses;
  return (
    <>
      <p>
        {report.isCaching ? "" : "Caching is off. "}
        {plural(report.entries, "entry", "entries")}, {bytes(report.bytes)} of {bytes(report.bytesMax)}.{" "}
        {total > 0 &&
          `${Math.round((report.hits / total) * 100)} % of ${plural(total, "query", "queries")} were hits. `}
        {plural(report.stale, "stale answer")}, {plural(report.prefetches, "prefetch", "prefetches")}.
      </p>
      {board.run !== null && (
        <input
          type="search"
          aria-label="Filter the entries by name"
          placeholder="filter names"
          value={filter}
          onInput={(event) => setFilter(event.currentTarget.value)}
        />
      )}
      {entries !== null && (
        <div class="table-scroll tall">
          <table class="plain">
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">Type</th>
                <th scope="col">Answer</th>
                <th scope="col" class="number">
                  Expires
                </th>
              </tr>
            </thead>
            <tbody>
              {entries.entries.map(({ name, type, rcode, answers, expiresInS, container }) => (
                <tr key={`${name} ${type} ${container}`}>
                  <th scope="row">
                    <Wire text={name} />
                  </th>
                  <td>{type}</td>
                  <td>
                    <Wire text={answers.length === 0 ? rcode : answers.join(", ")} />
                  </td>
                  <td class="number">{expiresInS < 0 ? "expired" : `${Math.round(expiresInS)} s`}</td>
                </tr>
              ))}
            </tbody>
          </table>
          {entries.omitted > 0 && <p class="note">{entries.omitted} more: filter them.</p>}
        </div>
      )}
    </>
  );
}

function SettingsView(): JSX.Element {
  const status = useCell(usePage().board.status);
  const settings = Object.entries(status?.settings ?? {});
  // What was changed matters most.
  const sorted = settings.toSorted(([, a], [, b]) => Number(a.source === "default") - Number(b.source === "default"));
  return (
    <>
      <p class="note">{status?.config == null ? "No settings file." : <Wire text={status.config} />}</p>
      <div class="table-scroll tall">
        <table class="plain">
          <tbody>
            {sorted.map(([key, { value, source }]) => (
              <tr key={key} class={source === "default" ? "" : "is-changed"}>
                <th scope="row">{key}</th>
                <td>
                  <Wire text={typeof value === "string" ? value : JSON.stringify(value ?? null)} />
                </td>
                <td class="note">{source}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function useCache(filter: string): {
  readonly report: CacheReport | null;
  readonly entries: CacheEntriesReport | null;
} {
  const { board } = usePage();
  const [found, setFound] = useState<{ report: CacheReport | null; entries: CacheEntriesReport | null }>({
    report: board.cache.value,
    entries: null,
  });
  useLayoutEffect(() => {
    const { run } = board;
    if (run === null) return undefined;
    return repeatedly(
      EVERY_MS,
      async () => await Promise.all([run.cache(), run.cacheEntries(`*${filter}*`)]).catch(() => undefined),
      (next) => {
        if (next !== undefined) setFound({ report: next[0], entries: next[1] });
      },
    );
  }, [filter]);
  return found;
}
