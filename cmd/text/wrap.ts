/**
 * Wrap: breaks a text into lines of a maximum width. A name that is longer than a line is cut, so that no text, wherever it
 * comes from, disturbs the columns.
 */
import { printable } from "./printable.ts";
import type { Colour, Display } from "./terminal.ts";

/** Lines break after blanks, and inside lists and paths after these characters. */
const PIECES = /\s+|[^\s,/]+[,/]*|[,/]+/g;

/** The lines of a text; all but the first begin with `indent`. */
export function wrapped(text: string, width: number, indent = ""): string[] {
  if (text.length <= width) return [text];
  const wrappedLines: string[] = [];
  let line = "";
  for (const [piece] of text.matchAll(PIECES)) {
    let rest = piece;
    if (line.length + rest.trimEnd().length > width && line.trim() !== "") {
      wrappedLines.push(line.trimEnd());
      line = indent;
      rest = rest.trimStart();
    }
    while (line.length + rest.trimEnd().length > width) {
      const cut = cutOf(rest, Math.max(1, width - line.length));
      wrappedLines.push(line + rest.slice(0, cut));
      rest = rest.slice(cut);
      line = indent;
    }
    if (line !== indent || rest.trim() !== "") line += rest;
  }
  return line.trim() === "" ? wrappedLines : [...wrappedLines, line.trimEnd()];
}

/** Names are cut after a part, if one fits. */
function cutOf(name: string, room: number): number {
  const parts = name.slice(0, room).match(/^.*[-_.]/)?.[0].length ?? 0;
  return parts > room / 2 ? parts : room;
}

export interface Line {
  readonly label: string;
  readonly text: string;
  readonly colour?: Colour | undefined;
}

const GAP = "  ";
/** A text is not made narrower than this. */
const TEXT_MIN = 20;

/** Labels and texts, one below the other; a text that does not fit is wrapped under its own beginning. */
export function lines(all: readonly Line[], { width, paint }: Display): string {
  const indent = Math.max(...all.map(({ label }) => label.length)) + GAP.length;
  const room = Math.max(TEXT_MIN, width - indent);
  return all
    .flatMap(({ label, text, colour }) =>
      wrapped(printable(text), room).map((line, index) => {
        const shown = colour === undefined ? line : paint(line, colour);
        return `${paint((index === 0 ? label : "").padEnd(indent), "dim")}${shown}\n`;
      }),
    )
    .join("");
}
