/** Parts: the small elements that panels are made of. */
import type { ComponentChildren, JSX } from "preact";
import { useRef, useState } from "preact/hooks";

import { usePage } from "./context.ts";
import { shortName } from "../model/scope.ts";

const COPIED_MS = 2_000;

interface PanelProps {
  readonly id: string;
  readonly title: string;
  readonly note?: ComponentChildren;
  readonly tools?: ComponentChildren;
  readonly children: ComponentChildren;
}

export function Panel({ id, title, note, tools, children }: PanelProps): JSX.Element {
  return (
    <section class={`panel panel-${id}`} id={id} aria-labelledby={`${id}-title`}>
      <header class="panel-head">
        <h2 id={`${id}-title`}>{title}</h2>
        {note !== undefined && <span class="note">{note}</span>}
        {tools !== undefined && <div class="tools">{tools}</div>}
      </header>
      {children}
    </section>
  );
}

/** Text from the wire: its direction does not change that of what is around it. */
export function Wire({ text, class: name = "" }: { readonly text: string; readonly class?: string }): JSX.Element {
  return (
    <bdi class={`wire ${name}`} title={text.length > 40 ? text : undefined}>
      {text}
    </bdi>
  );
}

/** How much of the end is always there. */
const TAIL = 10;

/** Text from the wire on one line: where it does not fit, it loses its middle, because names differ at their ends. */
export function Cut({ text, class: name = "" }: { readonly text: string; readonly class?: string }): JSX.Element {
  const characters = [...text];
  const [head, tail] = [characters.slice(0, -TAIL).join(""), characters.slice(-TAIL).join("")];
  return (
    <bdi class={`cut ${name}`} title={text}>
      {head !== "" && <span class="cut-head">{head}</span>}
      <span class="cut-tail">{tail}</span>
    </bdi>
  );
}

interface ContainerLinkProps {
  readonly name: string;
  /** The project that is named beside it. */
  readonly project?: string | null;
}

/** The name of a container, which opens its drawer. */
export function ContainerLink({ name, project = null }: ContainerLinkProps): JSX.Element {
  const { open, scope } = usePage();
  return (
    <button type="button" class="link" onClick={() => open(name)} title={`Show ${name}`}>
      <Wire text={shortName(name, project === null ? scope : { project })} />
    </button>
  );
}

export function Pill({ tone, children }: { readonly tone: string; readonly children: ComponentChildren }): JSX.Element {
  return <span class={`pill pill-${tone}`}>{children}</span>;
}

/** Commands, one a line, and a button that copies them. */
export function Command({ lines }: { readonly lines: readonly string[] }): JSX.Element {
  const text = lines.join("\n");
  const [state, setState] = useState<"" | "copied" | "selected">("");
  const code = useRef<HTMLElement>(null);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      setState("copied");
    } catch {
      // A page from disk may not: the reader copies what is selected.
      if (code.current !== null) getSelection()?.selectAllChildren(code.current);
      setState("selected");
    }
    setTimeout(() => setState(""), COPIED_MS);
  };
  return (
    <span class="command">
      <code ref={code}>
        {lines.map((line) => (
          <Wire key={line} text={line} />
        ))}
      </code>
      <button type="button" onClick={() => void copy()} aria-label={`Copy: ${text}`}>
        {state === "" ? "Copy" : state === "copied" ? "Copied" : "Selected"}
      </button>
    </span>
  );
}

export function Empty({ children }: { readonly children: ComponentChildren }): JSX.Element {
  return <p class="empty">{children}</p>;
}
