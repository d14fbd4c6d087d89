/**
 * TopView: what a reader of top has chosen: order, filter, pause, the selected row, and what is shown instead of the tables.
 * Keys change it and a frame is drawn from it; it knows neither the terminal nor dns11.
 */
import type { Colour, Paint } from "../text/terminal.ts";
import { wrapped } from "../text/wrap.ts";
import { KEY, type Key } from "../screen/screen.ts";
import type { Snapshot } from "./query-statistics.ts";
import {
  type Focus,
  type Size,
  renderSnapshot,
  type Choice,
  NO_CHOICE,
  type Rows,
  SORT_KEYS,
  rowsOf,
} from "./render.ts";

/** What the reader wants to know about a row. */
export type Inquiry =
  | { readonly kind: "name"; readonly name: string; readonly container: string; readonly type: string }
  | { readonly kind: "container"; readonly container: string };

interface TopViewParts {
  /** The answer to an inquiry, in lines that fit the width. */
  readonly ask: (inquiry: Inquiry, width: number) => Promise<string>;
  /** Draw again. */
  readonly onChange: () => void;
  readonly onQuit: () => void;
}

const HELP = `Keys of dns11 top

  up, down       select a row; left, right and tab change the table
  enter          explain the selected name in a container that queries it,
                 or show the failures of the selected container
  s              sort by queries, fail, nx, stale, slow (p99) or name
  /              filter by a part of the name; enter keeps it, escape drops it
  f              only rows with failures
  space, p       pause; queries are still counted
  ?              this help
  q, Ctrl-C      quit

NX are names that do not exist. FAIL are errors, and names of containers
that do not resolve. STALE are expired answers, because no server replied.`;

/** In the order of their importance. */
const KEYS = ["? help", "q quit", "/ filter", "s sort", "f failures", "enter explain", "p pause"];

export class TopView {
  readonly #parts: TopViewParts;
  #choice: Choice = NO_CHOICE;
  #snapshot: Snapshot | undefined;
  #panel: keyof Rows = "containers";
  /** The name in the selected row: rows move, and the selection moves along. */
  #selected: string | undefined;
  #isPaused = false;
  #isTyping = false;
  /** Shown instead of the tables; a new one for each inquiry, so that a late answer to an earlier one is dropped. */
  #overlay: { readonly text: string } | undefined;
  #width = 80;

  constructor(parts: TopViewParts) {
    this.#parts = parts;
  }

  /** Ignored while it is paused. */
  update(snapshot: Snapshot): void {
    if (!this.#isPaused || this.#snapshot === undefined) this.#snapshot = snapshot;
  }

  press(key: Key): void {
    if (key === KEY.interrupt) return this.#parts.onQuit();
    if (this.#overlay !== undefined) this.#overlay = undefined;
    else if (this.#isTyping) this.#type(key);
    else this.#command(key);
    this.#parts.onChange();
  }

  frame(size: { readonly columns: number; readonly rows: number }, paint: Paint): string[] {
    const { columns, rows } = size;
    this.#width = columns;
    if (this.#overlay !== undefined) return overlayLines(this.#overlay.text, size);
    if (this.#snapshot === undefined) return [];
    const inner: Size = { columns, rows: Math.max(1, rows - 1) };
    const lines = renderSnapshot(this.#snapshot, inner, paint, this.#choice, this.#focus());
    const [text, colour] = this.#footer(columns);
    const blank = Array.from({ length: Math.max(0, rows - 1 - lines.length) }, () => "");
    return [...lines.slice(0, rows - 1), ...blank, paint(text.slice(0, columns), colour)];
  }

  #command(key: Key): void {
    switch (key) {
      case "q":
      case "Q":
        return this.#parts.onQuit();
      case "s": {
        const next = (SORT_KEYS.indexOf(this.#choice.sort) + 1) % SORT_KEYS.length;
        this.#choice = { ...this.#choice, sort: SORT_KEYS[next] ?? "queries" };
        return;
      }
      case "f":
        this.#choice = { ...this.#choice, isFailuresOnly: !this.#choice.isFailuresOnly };
        return;
      case "/":
        this.#isTyping = true;
        return;
      case " ":
      case "p":
        this.#isPaused = !this.#isPaused;
        return;
      case "?":
        this.#overlay = { text: HELP };
        return;
      case KEY.escape:
        this.#choice = NO_CHOICE;
        this.#selected = undefined;
        return;
      case KEY.left:
      case KEY.right:
        this.#panel = this.#panel === "containers" ? "names" : "containers";
        this.#selected = this.#keys()[0];
        return;
      case KEY.up:
        return this.#move(-1);
      case KEY.down:
        return this.#move(1);
      case KEY.enter:
        return this.#inquire();
      default:
    }
  }

  #type(key: Key): void {
    const { filter } = this.#choice;
    if (key === KEY.enter || key === KEY.escape) this.#isTyping = false;
    if (key === KEY.escape) this.#choice = { ...this.#choice, filter: "" };
    else if (key === KEY.backspace) this.#choice = { ...this.#choice, filter: [...filter].slice(0, -1).join("") };
    else if ([...key].length === 1) this.#choice = { ...this.#choice, filter: filter + key.toLowerCase() };
  }

  #move(by: number): void {
    const keys = this.#keys();
    const at = this.#selected === undefined ? -1 : keys.indexOf(this.#selected);
    const next = at < 0 ? 0 : Math.min(keys.length - 1, Math.max(0, at + by));
    this.#selected = keys[next];
  }

  #inquire(): void {
    const inquiry = this.#inquiry();
    if (inquiry === undefined) return;
    const pending = { text: "Asking dns11 ..." };
    this.#overlay = pending;
    void this.#show(pending, this.#parts.ask(inquiry, this.#width));
  }

  async #show(pending: object, answer: Promise<string>): Promise<void> {
    const text = await answer;
    if (this.#overlay !== pending) return;
    this.#overlay = { text: text.trimEnd() };
    this.#parts.onChange();
  }

  #inquiry(): Inquiry | undefined {
    const { containers, names } = this.#rows();
    const selected = this.#selected;
    if (this.#panel === "containers") {
      const row = containers.find(({ container }) => container === selected);
      return row === undefined ? undefined : { kind: "container", container: row.container };
    }
    const row = names.find(({ name }) => name !== null && name === selected);
    if (row === undefined || row.name === null) return undefined;
    return { kind: "name", name: row.name, ...row.example };
  }

  #focus(): Focus | undefined {
    const index = this.#selected === undefined ? -1 : this.#keys().indexOf(this.#selected);
    return index < 0 ? undefined : { panel: this.#panel, index };
  }

  /** The names in the rows of the current table, in their order. */
  #keys(): string[] {
    const { containers, names } = this.#rows();
    return this.#panel === "containers"
      ? containers.map(({ container }) => container)
      : names.map(({ name }) => name ?? "");
  }

  #rows(): Rows {
    return this.#snapshot === undefined ? { containers: [], names: [] } : rowsOf(this.#snapshot, this.#choice);
  }

  #footer(columns: number): [string, Colour] {
    const { sort, filter, isFailuresOnly } = this.#choice;
    if (this.#isTyping) return [`/${filter}_  (enter keeps the filter, escape drops it)`, "bold"];
    const state = [
      ...(this.#isPaused ? ["PAUSED"] : []),
      `sort: ${sort}`,
      ...(filter === "" ? [] : [`filter: ${filter}`]),
      ...(isFailuresOnly ? ["failures only"] : []),
    ];
    return [withKeys(state, columns), this.#isPaused ? "yellow" : "dim"];
  }
}

/** The state, and as many keys as fit. */
function withKeys(state: readonly string[], columns: number): string {
  let text = state.join("  ");
  for (const key of KEYS) if (text.length + 2 + key.length <= columns) text += `  ${key}`;
  return text;
}

/** Lines that do not fit are left out, but not how to return. */
function overlayLines(text: string, { columns, rows }: { readonly columns: number; readonly rows: number }): string[] {
  const lines = text.split("\n").flatMap((line) => wrapped(line, columns, "  "));
  return [...lines.slice(0, Math.max(0, rows - 2)), "", "Press any key to return."];
}
