/** ExplanationView: the result first, then why, then the way of the query as a line with stations: where it went, and where it ended. */
import type { JSX } from "preact";

import type { ExplainedStep, Explanation } from "../../../api/names.ts";
import { milliseconds } from "../model/format.ts";
import { CauseView } from "./cause-view.tsx";
import { ContainerLink, Pill, Wire } from "./parts.tsx";

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

export function ExplanationView({ explanation }: { readonly explanation: Explanation }): JSX.Element {
  const { container, question, reply, causes, notServed, notQueried, ms } = explanation;
  const isGood = !isElsewhere(explanation) && reply !== null && reply.rcode === "NOERROR" && reply.answers.length > 0;
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
  const { fromFile, reply, notQueried } = explanation;
  if (fromFile?.addresses.length === 0) return "no address";
  if (isElsewhere(explanation)) return "another answer";
  if (notQueried !== null) return "not queried";
  if (reply === null) return "no reply";
  return reply.rcode === "NOERROR" && reply.answers.length === 0 ? "NODATA" : reply.rcode;
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
  const { steps, container, reply } = explanation;
  if (steps.length === 0) return null;
  const isGood = reply?.rcode === "NOERROR" && reply.answers.length > 0;
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
