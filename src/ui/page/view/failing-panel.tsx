/** FailingPanel: what fails now: each cause once, with its fix to copy, an explanation, and a way to mute it in this page. */
import type { JSX } from "preact";
import { useRef } from "preact/hooks";

import { injectedText } from "../../../api/failures.ts";
import { useCell } from "../data/cell.ts";
import { type FailingEntry, countsOf, inOrder } from "../model/failing.ts";
import { clock, plural, rate } from "../model/format.ts";
import { sinceMs } from "../model/past.ts";
import { countText, neededOf } from "../model/verdict.ts";
import { type ExplainPlace, type Question, usePage } from "./context.ts";
import { CauseView } from "./cause-view.tsx";
import { ExplainCard, useQuestion } from "./explain-card.tsx";
import { ContainerLink, Empty, Panel, Wire } from "./parts.tsx";
import { useNow } from "./hooks.ts";

/** Of the containers and of the names of one cause. */
const LISTED_MAX = 6;
const OFF = "Not recorded, because queries.names is off.";

export function FailingPanel(): JSX.Element {
  const { board, failing, question, range, shown, mute, unmuteAll } = usePage();
  const [report, isOff] = [useCell(board.failures), useCell(board.areFailuresOff)];
  const since = sinceMs(useCell(board.history), range);
  const earlier = failing.earlier.filter(({ last }) => last === null || Date.parse(last) >= since);
  const needed = neededOf(shown);
  const others = shown.filter((each) => !needed.includes(each));
  const muted = failing.now.length - shown.length;
  const nowMs = useNow(10_000);
  const place = useCell(question)?.place;
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
      <Failures place="failing" entries={needed} onMute={mute} />
      {(others.length > 0 || place === "others") && (
        <More
          place="others"
          summary={`${plural(countsOf(others).names, "name")} of the outside world that perhaps nobody needs`}
          entries={others}
          onMute={mute}
        />
      )}
      {(earlier.length > 0 || place === "earlier") && (
        <More
          place="earlier"
          summary={`${plural(earlier.length, "earlier failure")}, mended since or no longer queried`}
          entries={earlier}
        />
      )}
    </Panel>
  );
}

function emptyText(isKnown: boolean, muted: number): string {
  if (!isKnown) return "Nothing is known yet.";
  return muted === 0 ? "No name of a container fails." : "Nothing else fails.";
}

interface FailuresProps {
  readonly place: ExplainPlace;
  readonly entries: readonly FailingEntry[];
  /** Missing for those of earlier. */
  readonly onMute?: (key: string) => void;
}

function isAbout({ symptoms }: FailingEntry, { container, name }: Question): boolean {
  return symptoms.some((each) => each.container === container && each.name === name);
}

function Failures({ place, entries, onMute }: FailuresProps): JSX.Element {
  const asked = useQuestion(place);
  const order = useRef<readonly string[]>([]);
  // While one of them is being read, none changes places.
  const shown = asked === null ? entries : inOrder(entries, order.current);
  order.current = shown.map(({ key }) => key);
  const explained = asked === null ? undefined : shown.find((each) => isAbout(each, asked));
  return (
    <>
      <ul class="failures">
        {shown.map((entry) => (
          <Failure
            key={entry.key}
            place={place}
            entry={entry}
            isExplained={entry === explained}
            {...(onMute !== undefined && { onMute: () => onMute(entry.key) })}
          />
        ))}
      </ul>
      {asked !== null && explained === undefined && <ExplainCard place={place} />}
    </>
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

interface FailureProps {
  readonly place: ExplainPlace;
  readonly entry: FailingEntry;
  readonly isExplained: boolean;
  readonly onMute?: () => void;
}

function Failure({ place, entry, isExplained, onMute }: FailureProps): JSX.Element {
  const { board, explain } = usePage();
  const nowMs = useNow(10_000);
  const { severity, symptoms, containers, names, results, perMinute, first, last, cause } = entry;
  const [one] = symptoms;
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
      {cause !== null && <CauseView cause={cause} entry={entry} />}
      <span class="failure-tools">
        {board.run !== null && one !== undefined && one.name !== "" && one.container !== "" && (
          <button type="button" onClick={() => explain({ container: one.container, name: one.name, type: "A", place })}>
            Explain
          </button>
        )}
        {onMute !== undefined && (
          <button type="button" class="quiet" onClick={onMute} title="Hide it in this page">
            Mute
          </button>
        )}
      </span>
      {isExplained && <ExplainCard place={place} />}
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
