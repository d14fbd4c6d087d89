/**
 * ExplainCard: an explanation beside what it explains, in the panel where it was asked for. It stays until it is closed, also when what it
 * explains is mended meanwhile: whoever reads it has not finished.
 */
import type { JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

import type { Explanation } from "../../../api/names.ts";
import { ApiError } from "../data/api.ts";
import { useCell } from "../data/cell.ts";
import { type ExplainPlace, type Question, usePage } from "./context.ts";
import { ExplanationView } from "./explanation-view.tsx";
import { Empty } from "./parts.tsx";

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
