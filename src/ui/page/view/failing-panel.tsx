/** FailingPanel: what fails now: each cause once, with its fix to copy, an explanation, and a way to mute it in this page. */
import type { JSX } from "preact";

import { injectedText } from "../../../api/failures.ts";
import { useCell } from "../data/cell.ts";
import { causeSentence } from "../model/cause-key.ts";
import { type FailingEntry, partsOf } from "../model/failing.ts";
import { clock, plural, rate } from "../model/format.ts";
import { countText, neededOf } from "../model/verdict.ts";
import { usePage } from "./context.ts";
import { CauseView } from "./cause-view.tsx";
import { ContainerLink, Empty, Panel, Wire } from "./parts.tsx";
import { useNow } from "./hooks.ts";

/** Of the containers and of the names of one cause. */
const LISTED_MAX = 6;
const OFF = "Not recorded, because queries.names is off.";

export function FailingPanel(): JSX.Element {
  const { board, failing, shown, mute, unmuteAll } = usePage();
  const [report, isOff] = [useCell(board.failures), useCell(board.areFailuresOff)];
  const needed = neededOf(shown);
  const others = shown.filter((each) => !needed.includes(each));
  const muted = failing.now.length - shown.length;
  const nowMs = useNow(10_000);
  return (
    <Panel
      id="failing"
      title="Failing now"
      note={needed.length === 0 ? undefined : `${plural(needed.length, "cause")}: ${countText(needed)}`}
      tools={
        muted > 0 && (
          <button type="button" class="quiet" onClick={unmuteAll}>
            Show {muted} muted
          </button>
        )
      }
    >
      {(report?.injected ?? []).map((each) => (
        <p class="injected" key={`${each.by} ${each.text}`}>
          {injectedText(each, clock(each.since, nowMs))}
        </p>
      ))}
      {needed.length === 0 && <Empty>{isOff ? OFF : emptyText(report !== null, muted)}</Empty>}
      <Failures entries={needed} onMute={mute} />
      {others.length > 0 && (
        <More
          summary={`${plural(namesOf(others), "name")} of the outside world that perhaps nobody needs`}
          entries={others}
          onMute={mute}
        />
      )}
      {failing.earlier.length > 0 && (
        <More
          summary={`${plural(failing.earlier.length, "earlier failure")}, mended since or no longer queried`}
          entries={failing.earlier}
        />
      )}
    </Panel>
  );
}

function emptyText(isKnown: boolean, muted: number): string {
  if (!isKnown) return "Nothing is known yet.";
  return muted === 0 ? "No name of a container fails." : "Nothing else fails.";
}

function namesOf(entries: readonly FailingEntry[]): number {
  return entries.reduce((sum, each) => sum + partsOf(each).names.length, 0);
}

interface FailuresProps {
  readonly entries: readonly FailingEntry[];
  /** Missing for those of earlier. */
  readonly onMute?: (key: string) => void;
}

function Failures({ entries, onMute }: FailuresProps): JSX.Element {
  return (
    <ul class="failures">
      {entries.map((entry) => (
        <Failure key={entry.key} entry={entry} {...(onMute !== undefined && { onMute: () => onMute(entry.key) })} />
      ))}
    </ul>
  );
}

function More({ summary, ...failures }: FailuresProps & { readonly summary: string }): JSX.Element {
  return (
    <details class="earlier">
      <summary>{summary}</summary>
      <Failures {...failures} />
    </details>
  );
}

function Failure({ entry, onMute }: { readonly entry: FailingEntry; readonly onMute?: () => void }): JSX.Element {
  const { board, explain } = usePage();
  const nowMs = useNow(10_000);
  const { severity, pairs, results, perMinute, first, last, cause, fixes, lastingFixes } = entry;
  const { containers, names } = partsOf(entry);
  const [one] = pairs;
  return (
    <li class={`failure failure-${severity}`}>
      <div class="failure-head">
        <span class="pairs">
          <Containers names={containers} />
          {names.length > 0 && (
            <>
              <span class="arrow" aria-label="looks up">
                →
              </span>
              <Listed what={names} item={(name) => <Wire text={name} class="name" />} />
            </>
          )}
        </span>
        <span class="failure-facts">
          <b class="result">{results.join(", ")}</b>
          {perMinute > 0 && <span>{rate(perMinute)}</span>}
          {first !== null && <span>since {clock(first, nowMs)}</span>}
          {onMute === undefined && last !== null && <span>last {clock(last, nowMs)}</span>}
        </span>
      </div>
      {cause !== null && (
        <CauseView
          cause={cause}
          sentence={causeSentence(cause, names, containers)}
          fixes={fixes}
          lastingFixes={lastingFixes}
        />
      )}
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

/** Names a project once, and its containers without it. */
function Containers({ names }: { readonly names: readonly string[] }): JSX.Element {
  const { board, scope } = usePage();
  const all = useCell(board.containers)?.containers ?? [];
  const projects = new Set(all.filter(({ name }) => names.includes(name)).map(({ project }) => project));
  const [project = null] = projects;
  const isOne = names.length > 1 && projects.size === 1 && project !== null && scope.project === null;
  return (
    <>
      {isOne && <Wire text={project} class="note" />}
      <Listed what={names} item={(name) => <ContainerLink name={name} project={isOne ? project : null} />} />
    </>
  );
}

interface ListedProps {
  readonly what: readonly string[];
  readonly item: (name: string) => JSX.Element;
}

/** `api-1, api-2 and 5 more` */
function Listed({ what, item }: ListedProps): JSX.Element {
  const more = what.length - LISTED_MAX;
  return (
    <>
      {what.slice(0, LISTED_MAX).map((name) => (
        <span key={name}>{item(name)}</span>
      ))}
      {more > 0 && <span class="note">and {more} more</span>}
    </>
  );
}
