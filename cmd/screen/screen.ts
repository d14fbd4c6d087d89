/**
 * Screen: takes over the terminal for a live view and restores it, however the view ends.
 */

const ALTERNATE = "\u001B[?1049h";
const ORIGINAL = "\u001B[?1049l";
const HIDE_CURSOR = "\u001B[?25l";
const SHOW_CURSOR = "\u001B[?25h";
const WRAP_OFF = "\u001B[?7l";
const WRAP_ON = "\u001B[?7h";
const HOME = "\u001B[H";
const CLEAR_LINE = "\u001B[K";
const CLEAR_BELOW = "\u001B[J";

export class Screen {
  readonly #onResize: () => void;
  readonly #onExit = (): void => this.close();
  readonly #onTyped: (typed: Buffer) => void;
  #isOpen = true;

  constructor(onKey: (key: Key) => void, onResize: () => void) {
    this.#onResize = onResize;
    this.#onTyped = (typed) => {
      for (const key of keysOf(typed)) onKey(key);
    };
    process.on("exit", this.#onExit);
    process.stdout.on("resize", onResize);
    process.stdout.write(ALTERNATE + HIDE_CURSOR + WRAP_OFF + HOME + CLEAR_BELOW);
    if (process.stdin.isTTY) {
      process.stdin.setRawMode(true);
      process.stdin.on("data", this.#onTyped);
    }
  }

  get size(): { readonly columns: number; readonly rows: number } {
    return { columns: process.stdout.columns || 80, rows: process.stdout.rows || 24 };
  }

  /** Overwrites the previous frame in place, so that the screen does not flicker. */
  draw(lines: readonly string[]): void {
    const { rows } = this.size;
    // After a line that is as wide as the screen, terminals would clear its last character.
    const shown = lines.slice(0, rows).map((line) => CLEAR_LINE + line);
    const below = shown.length < rows ? `\r\n${CLEAR_BELOW}` : "";
    process.stdout.write(HOME + shown.join("\r\n") + below);
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    process.off("exit", this.#onExit);
    process.stdout.off("resize", this.#onResize);
    if (process.stdin.isTTY) {
      process.stdin.off("data", this.#onTyped);
      process.stdin.setRawMode(false);
      process.stdin.pause();
    }
    process.stdout.write(WRAP_ON + SHOW_CURSOR + ORIGINAL);
  }
}

/**
 * What a terminal sends, as keys. Several may come at once.
 */
export type Key = string;

export const KEY = {
  up: "up",
  down: "down",
  left: "left",
  right: "right",
  enter: "enter",
  escape: "escape",
  backspace: "backspace",
  interrupt: "interrupt",
} as const;

const SEQUENCES: ReadonlyMap<string, Key> = new Map([
  ["\u001B[A", KEY.up],
  ["\u001BOA", KEY.up],
  ["\u001B[B", KEY.down],
  ["\u001BOB", KEY.down],
  ["\u001B[C", KEY.right],
  ["\u001BOC", KEY.right],
  ["\u001B[D", KEY.left],
  ["\u001BOD", KEY.left],
  ["\t", KEY.right],
  ["\r", KEY.enter],
  ["\n", KEY.enter],
  ["\u001B", KEY.escape],
  ["\u007F", KEY.backspace],
  ["\b", KEY.backspace],
  ["\u0003", KEY.interrupt],
  ["\u0004", KEY.interrupt],
]);

// eslint-disable-next-line no-control-regex
const PIECES = /\u001B\[[0-9;]*[A-Za-z~]|\u001BO[A-Z]|[^]/gu;

/** Known keys by name, and printable characters as they are; anything else is left out. */
export function keysOf(typed: Buffer): Key[] {
  return (typed.toString("utf8").match(PIECES) ?? []).flatMap((piece) => {
    const key = SEQUENCES.get(piece);
    if (key !== undefined) return key;
    return /^[^\p{C}]$/u.test(piece) ? piece : [];
  });
}
