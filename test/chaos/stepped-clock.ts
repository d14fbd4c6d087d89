// The wall clock that dns11 alone sees. The machine's is never touched: a module that is loaded into dns11 adds an offset
// to what JavaScript is told, and reads that offset anew on a signal. Timers go by the monotonic clock, as they do when
// a real wall clock is stepped. Nothing in dns11 below JavaScript asks for the wall clock.

import { writeFileSync } from "node:fs";

const MODULE = new URL("./stepped-clock-main.js", import.meta.url).href;

export class SteppedClock {
  readonly #file: string;

  constructor(file: string) {
    this.#file = file;
    this.set(0);
  }

  // For the process that is to have this clock.
  get env(): NodeJS.ProcessEnv {
    return { NODE_OPTIONS: `--import=${MODULE}`, DNS11_CHAOS_CLOCK: this.#file };
  }

  // Counts when the process gets the signal, or starts.
  set(offsetMs: number): void {
    writeFileSync(this.#file, String(offsetMs));
  }
}

export const CLOCK_SIGNAL = "SIGWINCH";
