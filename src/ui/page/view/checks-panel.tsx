/** ChecksPanel: the doctor, as it works: what it has checked so far, and in the end each problem with its fix. */
import type { JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

import type { DoctorLine, DoctorProblem } from "../../../base/model/finding.ts";
import { plural } from "../model/format.ts";
import { errorText } from "./explain-card.tsx";
import { usePage } from "./context.ts";
import { Command, Empty, Panel, Pill, Wire } from "./parts.tsx";

type FindingLine = Extract<DoctorLine, { finding: unknown }>;

interface Checks {
  readonly state: "none" | "running" | "done";
  readonly findings: readonly FindingLine[];
  readonly problems: readonly DoctorProblem[];
  readonly error: string;
}

const NONE: Checks = { state: "none", findings: [], problems: [], error: "" };
const FINDINGS_MAX = 2_000;
const TONES = { problem: "bad", warning: "warn", unknown: "plain" } as const;

export function ChecksPanel(): JSX.Element | null {
  const { board } = usePage();
  const { checks, start, cancel } = useChecks();
  if (board.run === null) return null;
  const { state, findings, problems, error } = checks;
  const open = findings.filter(({ finding }) => finding.state !== "ok");
  const passed = findings.length - open.length;
  return (
    <Panel
      id="checks"
      title="Checks"
      note={
        state === "none"
          ? "what dns11 doctor finds"
          : `${passed} passed${open.length === 0 ? "" : `, ${open.length} not`}`
      }
      tools={
        <button type="button" onClick={state === "running" ? cancel : start}>
          {state === "running" ? "Stop" : state === "none" ? "Run checks" : "Run again"}
        </button>
      }
    >
      <div class="checks" aria-live="polite" aria-busy={state === "running"}>
        {state === "none" && <Empty>Rules, resolv.conf, servers and names, seen from inside each container.</Empty>}
        {state === "running" && (
          <div class="progress">
            <span class="progress-dot" aria-hidden="true" /> <Wire text={doing(findings.at(-1))} />
          </div>
        )}
        {error !== "" && <p class="error">{error}</p>}
        {state === "done" && error === "" && problems.length === 0 && (
          <p class="good">✓ {plural(passed, "check")} passed.</p>
        )}
        {problems.map((problem) => (
          <Problem key={`${problem.title} ${problem.subjects.join(" ")}`} problem={problem} />
        ))}
        {state === "running" &&
          open.slice(0, 20).map(({ subject, finding }, index) => (
            <p class="finding" key={index}>
              <Pill tone={finding.state === "ok" ? "ok" : TONES[finding.state]}>{finding.state}</Pill>{" "}
              <Wire text={`${subject}: ${finding.what}`} />
            </p>
          ))}
      </div>
    </Panel>
  );
}

function doing(last: FindingLine | undefined): string {
  return last === undefined ? "starting" : `${last.subject}: ${last.finding.what}`;
}

function Problem({ problem }: { readonly problem: DoctorProblem }): JSX.Element {
  const { state, title, why, subjects, fixNow, fixForGood, commandsForGood = [], remedies, symptoms } = problem;
  return (
    <article class={`problem problem-${state}`}>
      <h3>
        <Pill tone={TONES[state]}>{state}</Pill> <Wire text={title} />
      </h3>
      <p class="note">
        <Wire
          text={
            subjects.length > 4
              ? `${subjects.slice(0, 4).join(", ")} and ${subjects.length - 4} more`
              : subjects.join(", ")
          }
        />
      </p>
      {why.map((each) => (
        <p key={each}>
          <Wire text={each} />
        </p>
      ))}
      {symptoms.map(({ text }) => (
        <p class="note" key={text}>
          <Wire text={text} />
        </p>
      ))}
      {fixNow.length > 0 && <Command lines={fixNow} />}
      {fixForGood.map((each) => (
        <p class="lasting" key={each}>
          For good: <Wire text={each} />
        </p>
      ))}
      {commandsForGood.length > 0 && <Command lines={commandsForGood} />}
      {remedies.map((each) => (
        <p key={each}>
          <Wire text={each} />
        </p>
      ))}
    </article>
  );
}

function useChecks(): { readonly checks: Checks; readonly start: () => void; readonly cancel: () => void } {
  const { board, scope } = usePage();
  const [checks, setChecks] = useState(NONE);
  const running = useRef(new AbortController());
  useLayoutEffect(() => () => running.current.abort(), []);
  const start = (): void => {
    const { run } = board;
    if (run === null) return;
    running.current.abort();
    const controller = new AbortController();
    running.current = controller;
    void follow(run.doctor(scope, controller.signal), controller.signal, setChecks);
  };
  const cancel = (): void => {
    running.current.abort();
    setChecks((before) => ({ ...before, state: "done", error: "Stopped." }));
  };
  return { checks, start, cancel };
}

/** Findings come faster than frames: they are shown together. */
async function follow(
  lines: AsyncGenerator<DoctorLine, void>,
  signal: AbortSignal,
  show: (checks: Checks) => void,
): Promise<void> {
  let checks: Checks = { ...NONE, state: "running" };
  show(checks);
  const set = (part: Partial<Checks>): void => {
    if (signal.aborted) return;
    checks = { ...checks, ...part };
    show(checks);
  };
  try {
    for await (const line of lines) {
      if ("finding" in line) set({ findings: [...checks.findings, line].slice(-FINDINGS_MAX) });
      else if ("problems" in line) set({ state: "done", problems: line.problems });
      else set({ state: "done", error: [line.error, line.remedy ?? ""].join(" ").trim() });
    }
    if (checks.state === "running") set({ state: "done", error: "The checks ended early. Run them again." });
  } catch (error) {
    set({ state: "done", error: errorText(error) });
  }
}
