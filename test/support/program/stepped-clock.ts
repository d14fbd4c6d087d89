// Clocks that only dns11 sees. The machine's are never touched: a module loaded into dns11 adds an offset to JavaScript's
// clocks and rereads the offsets on a signal. A step of the wall clock leaves the monotonic one and the timers alone, as a real step
// does; whoever moves both lets time pass for what is dated, such as a cache. Nothing in dns11 below JavaScript reads the wall clock.

import { existsSync, readFileSync, writeFileSync } from "node:fs";

const MODULE = new URL("./stepped-clock-main.js", import.meta.url).href;

export class SteppedClock {
  readonly #file: string;
  #text = "";

  constructor(file: string) {
    this.#file = file;
    this.set(0);
  }

  // Environment of the process that gets this clock.
  get env(): NodeJS.ProcessEnv {
    return { NODE_OPTIONS: `--import=${MODULE}`, DNS11_CHAOS_CLOCK: this.#file };
  }

  // Takes effect when the process receives the signal, or starts.
  set(offsetMs: number, monotonicMs = 0): void {
    this.#text = `${offsetMs} ${monotonicMs}`;
    writeFileSync(this.#file, this.#text);
  }

  // Whether the process has read what was set last.
  get isTaken(): boolean {
    const path = `${this.#file}.read`;
    return existsSync(path) && readFileSync(path, "utf8") === this.#text;
  }
}

export const CLOCK_SIGNAL = "SIGWINCH";
