// Wall clock that only dns11 sees. The machine's clock is never touched: a module loaded into dns11 adds an offset to
// JavaScript's clock and rereads the offset on a signal. Timers use the monotonic clock, as they do when a real wall
// clock is stepped. Nothing in dns11 below JavaScript reads the wall clock.

import { writeFileSync } from "node:fs";

const MODULE = new URL("./stepped-clock-main.js", import.meta.url).href;

export class SteppedClock {
  readonly #file: string;

  constructor(file: string) {
    this.#file = file;
    this.set(0);
  }

  // Environment of the process that gets this clock.
  get env(): NodeJS.ProcessEnv {
    return { NODE_OPTIONS: `--import=${MODULE}`, DNS11_CHAOS_CLOCK: this.#file };
  }

  // Takes effect when the process receives the signal, or starts.
  set(offsetMs: number): void {
    writeFileSync(this.#file, String(offsetMs));
  }
}

export const CLOCK_SIGNAL = "SIGWINCH";
