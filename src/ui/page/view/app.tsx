/** App: the whole page, in the order in which somebody needs it who stands before a failing project. */
import type { JSX } from "preact";
import { useLayoutEffect, useMemo, useState } from "preact/hooks";

import type { Board } from "../data/board.ts";
import { Cell, useCell } from "../data/cell.ts";
import { failingOf } from "../model/failing.ts";
import type { RangeKey } from "../model/past.ts";
import { type Scope, inScope } from "../model/scope.ts";
import { AskPanel } from "./ask-panel.tsx";
import { ChecksPanel } from "./checks-panel.tsx";
import { Page, type PageContext, type Question } from "./context.ts";
import { Drawer } from "./drawer.tsx";
import { FailingPanel } from "./failing-panel.tsx";
import { Footer } from "./footer.tsx";
import { LivePanel } from "./live-panel.tsx";
import { useMuted } from "./hooks.ts";
import { PastPanel, EventsPanel } from "./past-panel.tsx";
import { ServersPanel } from "./servers-panel.tsx";
import { ConnectionNotice, VerdictBar } from "./verdict-bar.tsx";
import { VisibilityPanel } from "./visibility-panel.tsx";

export function App({ board }: { readonly board: Board }): JSX.Element {
  const [scope, setScope] = useState<Scope>({ project: null });
  const [opened, setOpened] = useState<string | null>(null);
  const page = usePageContext(board, scope, setOpened);
  const showProject = (next: Scope): void => {
    setScope(next);
    // What it explains may be gone from where it is.
    if (page.question.value?.place !== "ask") page.closeExplanation();
  };
  const { state } = useCell(board.connection);
  const isFilled = useCell(board.isFilled);
  useKeys();
  return (
    <Page.Provider value={page}>
      <a class="skip" href="#failing">
        Skip to what fails
      </a>
      <VerdictBar onScope={showProject} />
      <ConnectionNotice />
      <main class={state === "live" || state === "snapshot" || state === "connecting" ? "" : "is-old"}>
        {isFilled && (
          <>
            <FailingPanel />
            <PastPanel />
            <VisibilityPanel />
            <ServersPanel />
            <AskPanel />
            <LivePanel />
            <ChecksPanel />
            <EventsPanel />
          </>
        )}
      </main>
      {isFilled && <Footer />}
      <Drawer container={opened} onClose={() => setOpened(null)} />
    </Page.Provider>
  );
}

function usePageContext(board: Board, scope: Scope, open: (container: string) => void): PageContext {
  const [report, containers] = [useCell(board.failures), useCell(board.containers)];
  const question = useMemo(() => new Cell<Question | null>(null), []);
  const { keys, mute, unmuteAll } = useMuted();
  const [range, setRange] = useState<RangeKey>("all");
  const failing = useMemo(() => {
    const inProject = (containers?.containers ?? []).filter((each) => inScope(scope, each)).map(({ name }) => name);
    return failingOf(report, scope, new Set(inProject), Date.now());
  }, [report, containers, scope]);
  return useMemo(
    () => ({
      board,
      scope,
      failing,
      shown: failing.now.filter(({ key }) => !keys.has(key)),
      mute,
      unmuteAll,
      range,
      setRange,
      question,
      open,
      // A snapshot cannot be asked.
      explain: (asked) => question.set(board.run === null ? null : asked),
      closeExplanation: () => question.set(null),
    }),
    [board, scope, failing, keys, mute, unmuteAll, range, question, open],
  );
}

const KEYS: Readonly<Record<string, (() => void) | undefined>> = {
  "/": () => document.querySelector<HTMLElement>("#ask-name")?.focus(),
  f: () => document.querySelector<HTMLElement>("#live-filter")?.focus(),
  p: () => document.querySelector<HTMLElement>("#live-pause")?.click(),
  "?": () => document.querySelector<HTMLElement>("#keys")?.click(),
};

/** Keys do nothing while somebody types, or while a dialog is open. */
function useKeys(): void {
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const { target } = event;
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (target instanceof Element && target.closest("input, select, textarea, dialog") !== null) return;
      const action = KEYS[event.key];
      if (action === undefined) return;
      event.preventDefault();
      action();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
}
