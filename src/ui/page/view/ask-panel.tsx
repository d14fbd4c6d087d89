/** AskPanel: explains any name in any container. */
import type { JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

import { useCell } from "../data/cell.ts";
import { inScope, projectsOf } from "../model/scope.ts";
import { type Question, usePage } from "./context.ts";
import { Answer, useQuestion } from "./explain-card.tsx";
import { Panel } from "./parts.tsx";

const TYPES = ["A", "AAAA", "CNAME", "MX", "NS", "PTR", "SOA", "SRV", "TXT", "HTTPS", "ANY"];

export function AskPanel(): JSX.Element | null {
  const { board } = usePage();
  const asked = useQuestion("ask");
  if (board.run === null) return null;
  return (
    <Panel id="ask" title="Ask" note="explain any name in any container">
      <AskForm asked={asked} />
      <Answer asked={asked} />
    </Panel>
  );
}

function AskForm({ asked }: { readonly asked: Question | null }): JSX.Element {
  const { board, scope, explain } = usePage();
  const [containers, matrix] = [useCell(board.containers), useCell(board.matrix)];
  const running = (containers?.containers ?? []).filter(({ dns }) => dns !== null);
  const [container, setContainer] = useState("");
  const [name, setName] = useState("");
  const [type, setType] = useState("A");
  const field = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => {
    if (asked === null) return;
    setContainer(asked.container);
    setName(asked.name);
    setType(asked.type);
  }, [asked]);
  // What somebody has chosen stays, whatever project they look at next.
  const shown = running.filter((each) => inScope(scope, each) || each.name === container);
  const chosen = shown.some((each) => each.name === container) ? container : (shown[0]?.name ?? "");
  const names = [...new Set((matrix?.columns ?? []).filter((each) => inScope(scope, each)).map((each) => each.name))];
  return (
    <form
      class="ask"
      onSubmit={(event) => {
        event.preventDefault();
        // What the form has: Enter may follow the last key before the page has been drawn again.
        const typed = field.current?.value.trim() ?? "";
        if (typed !== "" && chosen !== "") explain({ container: chosen, name: typed, type, place: "ask" });
      }}
    >
      <label>
        <span>In</span>
        <select value={chosen} onChange={(event) => setContainer(event.currentTarget.value)}>
          {[...projectsOf(shown), null].map((project) => {
            const options = shown.filter((each) => each.project === project);
            if (options.length === 0) return null;
            return (
              <optgroup key={project ?? ""} label={project ?? "without a project"}>
                {options.map((each) => (
                  <option key={each.id} value={each.name}>
                    {each.name}
                  </option>
                ))}
              </optgroup>
            );
          })}
        </select>
      </label>
      <label class="grow">
        <span>Name</span>
        <input
          id="ask-name"
          ref={field}
          value={name}
          required
          list="ask-names"
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          maxLength={1_100}
          placeholder="db"
          onInput={(event) => setName(event.currentTarget.value)}
        />
        <datalist id="ask-names">
          {names.map((each) => (
            <option key={each} value={each} />
          ))}
        </datalist>
      </label>
      <label>
        <span>Type</span>
        <select value={type} onChange={(event) => setType(event.currentTarget.value)}>
          {(TYPES.includes(type) ? TYPES : [...TYPES, type]).map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      </label>
      <button type="submit" class="primary" disabled={chosen === ""}>
        Explain
      </button>
    </form>
  );
}
