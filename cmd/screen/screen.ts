/**
 * Screen: takes over the terminal for a live view and restores it, however the view ends.
 */
import { type Key, keysOf } from "./keys.ts";

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
