/**
 * ExplainCard: an explanation beside what it explains, in the panel where it was asked for. It stays until it is closed, also when what it
 * explains is mended meanwhile: whoever reads it has not finished.
 */
import type { JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { type Explanation, type ExplainedStep, recordsFor } from "../../../api/names.ts";
import { ApiError } from "../data/api.ts";
import { useCell } from "../data/cell.ts";
import { type ExplainPlace, type Question, usePage } from "./context.ts";
import { Empty, ContainerLink, Pill, Wire } from "./parts.tsx";
import { milliseconds } from "../model/format.ts";
import { CauseView } from "./cause-view.tsx";

type Result =
  | { readonly state: "none" | "asking" }
  | { readonly state: "answered"; readonly explanation: Explanation }
  | { readonly state: "failed"; readonly text: string };

/** What is explained in this place; null if it is elsewhere, or nothing is. */
export function useQuestion(place: ExplainPlace): Question | null {
  const asked = useCell(usePage().question);
  return asked?.place === place ? asked : null;
}

export function ExplainCard({ place }: { readonly place: ExplainPlace }): JSX.Element | null {
  const { explain, closeExplanation } = usePage();
  const asked = useQuestion(place);
  const card = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => card.current?.scrollIntoView({ block: "nearest" }), [asked]);
  return asked === null ? null : (
    <div class="explain-card" ref={card}>
      <div class="explain-tools">
        <button type="button" class="quiet" onClick={() => explain({ ...asked })}>
          Ask again
        </button>
        <button type="button" onClick={closeExplanation} aria-label="Close the explanation">
          ✕
        </button>
      </div>
      <Answer asked={asked} />
    </div>
  );
}

export function Answer({ asked }: { readonly asked: Question | null }): JSX.Element {
  const result = useExplanation(asked);
  return (
    <div class="answer" role="region" aria-label="Explanation" aria-live="polite" aria-busy={result.state === "asking"}>
      {result.state === "none" && <Empty>Why does a name resolve, or fail? Choose a container and a name.</Empty>}
      {result.state === "asking" && <Empty>Asking…</Empty>}
      {result.state === "failed" && <p class="error">{result.text}</p>}
      {result.state === "answered" && <ExplanationView explanation={result.explanation} />}
    </div>
  );
}

function useExplanation(asked: Question | null): Result {
  const { board } = usePage();
  const [result, setResult] = useState<Result>({ state: "none" });
  useLayoutEffect(() => {
    const { run } = board;
    if (asked === null || run === null) {
      setResult({ state: "none" });
      return undefined;
    }
    let isCurrent = true;
    setResult({ state: "asking" });
    const { container, name, type } = asked;
    run.explain({ container, name, type }).then(
      (explanation) => isCurrent && setResult({ state: "answered", explanation }),
      (error: unknown) => isCurrent && setResult({ state: "failed", text: errorText(error) }),
    );
    return () => (isCurrent = false);
  }, [asked]);
  return result;
}

export function errorText(error: unknown): string {
  if (!(error instanceof ApiError)) return String(error);
  return error.remedy === undefined ? error.message : `${error.message} ${error.remedy}`;
}

const STATIONS: Readonly<Record<ExplainedStep["layer"], string>> = {
  policy: "policy",
  rules: "rules of tests",
  links: "links",
  names: "container names",
  reverse: "reverse names",
  special: "special names",
  route: "route",
  cache: "cache",
  servers: "nameservers",
  filter: "left out",
};
const RECORDS_MAX = 12;

/** The result first, then why, then the way of the query as a line with stations: where it went, and where it ended. */
function ExplanationView({ explanation }: { readonly explanation: Explanation }): JSX.Element {
  const { container, question, reply, causes, notServed, notQueried, ms } = explanation;
  const isGood = !isElsewhere(explanation) && reply !== null && recordsFor(reply, question.type).length > 0;
  return (
    <>
      <p class="answer-head">
        <Pill tone={isGood ? "ok" : "bad"}>{resultOf(explanation)}</Pill>
        <span>
          <Wire text={question.name} class="name" /> <span class="note">{question.type} in</span>{" "}
          <ContainerLink name={container.name} />
        </span>
        {notQueried === null && <span class="note">{milliseconds(ms)}</span>}
      </p>
      {notQueried !== null && (
        <p>
          <Wire text={notQueried} />
        </p>
      )}
      {notServed !== null && (
        <p>
          <Wire text={notServed} />
        </p>
      )}
      {causes.map((cause) => (
        <CauseView key={`${cause.code} ${cause.sentence}`} cause={cause} />
      ))}
      <Records explanation={explanation} />
      <Way explanation={explanation} />
    </>
  );
}

/** Programs do not get the reply: a file or another name of the search list comes first. The causes say which. */
function isElsewhere({ fromFile, fromSearch }: Explanation): boolean {
  return fromFile !== undefined || fromSearch !== undefined;
}

function resultOf(explanation: Explanation): string {
  const { fromFile, question, reply, notQueried } = explanation;
  if (fromFile?.addresses.length === 0) return "no address";
  if (isElsewhere(explanation)) return "another answer";
  if (notQueried !== null) return "not queried";
  if (reply === null) return "no reply";
  return reply.rcode === "NOERROR" && recordsFor(reply, question.type).length === 0 ? "NODATA" : reply.rcode;
}

function Records({ explanation: { reply, owners } }: { readonly explanation: Explanation }): JSX.Element | null {
  const answers = reply?.answers ?? [];
  if (answers.length === 0) return null;
  return (
    <ul class="records">
      {answers.slice(0, RECORDS_MAX).map(({ type, ttl, data }) => {
        const owner = owners.find(({ address }) => address === data);
        return (
          <li key={`${type} ${data}`}>
            <span class="note">{type}</span> <Wire text={data} class="name" />
            {owner !== undefined && (
              <span class="note">
                {" "}
                <ContainerLink name={owner.container} /> on <Wire text={owner.network} />
              </span>
            )}
            <span class="note"> TTL {ttl} s</span>
          </li>
        );
      })}
      {answers.length > RECORDS_MAX && <li class="note">{answers.length - RECORDS_MAX} more</li>}
    </ul>
  );
}

/** Steps that passed the query on are hollow; the one that answered is filled. */
function Way({ explanation }: { readonly explanation: Explanation }): JSX.Element | null {
  const { steps, container, question, reply } = explanation;
  if (steps.length === 0) return null;
  const isGood = reply !== null && recordsFor(reply, question.type).length > 0;
  return (
    <ol class="way" aria-label="The way of the query">
      <li class="station station-start">
        <span class="station-name">
          <Wire text={container.name} />
        </span>
        <span class="station-why note">the query arrives</span>
      </li>
      {steps.map((step, index) => (
        <li key={index} class={`station ${step.isAnswer ? (isGood ? "station-answer" : "station-fail") : ""}`}>
          <span class="station-name">{STATIONS[step.layer] ?? step.layer}</span>
          <span class="station-why">
            <Wire text={step.why} />
          </span>
          {step.events !== undefined && step.events.length > 0 && <Flights step={step} />}
        </li>
      ))}
    </ol>
  );
}

/** What upstream servers were sent and did, on a common scale of time. */
function Flights({ step: { events = [] } }: { readonly step: ExplainedStep }): JSX.Element {
  const end = Math.max(1, ...events.map(({ atMs }) => atMs));
  return (
    <ul class="flights">
      {events.slice(0, 24).map(({ atMs, server, what }, index) => (
        <li key={index}>
          <svg class="flight" viewBox="0 0 60 10" width="60" height="10" aria-hidden="true">
            <path d="M0,5 H60" />
            <circle cx={4 + (atMs / end) * 52} cy="5" r="3.5" />
          </svg>
          <span class="number">{milliseconds(atMs)}</span>
          <Wire text={server === undefined ? what : `${server}: ${what}`} />
        </li>
      ))}
    </ul>
  );
}
