/** FailingPanel: what fails now: each cause once, with its fix to copy, an explanation, and a way to mute it in this page. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { type FailingEntry, countsOf } from "../model/failing.ts";
import { clock, plural, rate } from "../model/format.ts";
import { usePage } from "./context.ts";
import { CauseView } from "./cause-view.tsx";
import { ContainerLink, Empty, Panel, Wire } from "./parts.tsx";
import { useNow } from "./hooks.ts";

const PAIRS_MAX = 4;
const MUTED_KEY = "dns11-muted";
const MUTED_MAX = 500;

export function FailingPanel(): JSX.Element {
  const { failing } = usePage();
  const [muted, setMuted] = useMuted();
  const shown = failing.now.filter(({ key }) => !muted.has(key));
  const hidden = failing.now.length - shown.length;
  const mute = (key: string): void => setMuted(new Set([...muted, key].slice(-MUTED_MAX)));
  return (
    <Panel
      id="failing"
      title="Failing now"
      note={failing.now.length === 0 ? undefined : plural(shown.length, "cause")}
      tools={
        hidden > 0 && (
          <button type="button" class="quiet" onClick={() => setMuted(new Set())}>
            Show {hidden} muted
          </button>
        )
      }
    >
      {shown.length === 0 && <Empty>No name of a container fails.</Empty>}
      <ul class="failures">
        {shown.map((entry) => (
          <Failure key={entry.key} entry={entry} onMute={() => mute(entry.key)} />
        ))}
      </ul>
      {failing.earlier.length > 0 && (
        <details class="earlier">
          <summary>{plural(failing.earlier.length, "earlier failure")}, mended since or no longer queried</summary>
          <ul class="failures">
            {failing.earlier.map((entry) => (
              <Failure key={entry.key} entry={entry} />
            ))}
          </ul>
        </details>
      )}
    </Panel>
  );
}

function Failure({ entry, onMute }: { readonly entry: FailingEntry; readonly onMute?: () => void }): JSX.Element {
  const { board, explain } = usePage();
  const nowMs = useNow(10_000);
  const { severity, pairs, result, perMinute, first, last, cause } = entry;
  const [one] = pairs;
  return (
    <li class={`failure failure-${severity}`}>
      <div class="failure-head">
        <Pairs entry={entry} />
        <span class="failure-facts">
          <b class="result">{result}</b>
          {perMinute > 0 && <span>{rate(perMinute)}</span>}
          {first !== null && <span>since {clock(first, nowMs)}</span>}
          {onMute === undefined && last !== null && <span>last {clock(last, nowMs)}</span>}
        </span>
      </div>
      {cause !== null && <CauseView cause={cause} fixes={entry.fixes} />}
      <span class="failure-tools">
        {board.run !== null && one !== undefined && one.name !== "" && one.container !== "" && (
          <button type="button" onClick={() => explain(one.container, one.name)}>
            Explain
          </button>
        )}
        {onMute !== undefined && (
          <button type="button" class="quiet" onClick={onMute} title="Hide it in this page">
            Mute
          </button>
        )}
      </span>
    </li>
  );
}

/** `api-1, api-2 → db`; of many only some. */
function Pairs({ entry: { pairs } }: { readonly entry: FailingEntry }): JSX.Element {
  const { containers, names } = countsOf(pairs);
  const isMany = pairs.length > PAIRS_MAX;
  const some = pairs.slice(0, PAIRS_MAX);
  const byName = new Map(some.map(({ name }) => [name, some.filter((each) => each.name === name)]));
  return (
    <span class="pairs">
      {isMany && (
        <span>
          {plural(containers, "container")} → {plural(names, "name")}:
        </span>
      )}
      {[...byName].map(([name, of]) => (
        <span class="pair" key={name}>
          {of
            .filter(({ container }) => container !== "")
            .map(({ container }) => (
              <ContainerLink key={container} name={container} />
            ))}
          {name !== "" && (
            <>
              <span class="arrow" aria-label="looks up">
                →
              </span>
              <Wire text={name} class="name" />
            </>
          )}
        </span>
      ))}
      {isMany && <span class="note">and {pairs.length - PAIRS_MAX} more</span>}
    </span>
  );
}

/** Kept for this tab, so that a reload does not bring them back. */
function useMuted(): [ReadonlySet<string>, (muted: ReadonlySet<string>) => void] {
  const [muted, setMuted] = useState<ReadonlySet<string>>(() => new Set(storedMuted()));
  return [
    muted,
    (next) => {
      setMuted(next);
      try {
        sessionStorage.setItem(MUTED_KEY, JSON.stringify([...next]));
      } catch {
        // Without storage they are forgotten at a reload.
      }
    },
  ];
}

function storedMuted(): string[] {
  try {
    return JSON.parse(sessionStorage.getItem(MUTED_KEY) ?? "[]") as string[];
  } catch {
    return [];
  }
}
