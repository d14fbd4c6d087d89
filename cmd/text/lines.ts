/**
 * Lines: labels and texts, one below the other; a text that does not fit is wrapped under its own beginning.
 */
import { printable } from "./printable.ts";
import type { Colour, Display } from "./terminal.ts";
import { wrapped } from "./wrap.ts";

export interface Line {
  readonly label: string;
  readonly text: string;
  readonly colour?: Colour | undefined;
}

const GAP = "  ";
/** A text is not made narrower than this. */
const TEXT_MIN = 20;

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
