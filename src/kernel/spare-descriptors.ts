/**
 * SpareDescriptors: descriptors that are kept back, for a socket that must be opened when there are none left. Nothing else can have
 * their numbers until one is given up, in the same step in which it is needed.
 */
import { openSync } from "node:fs";

import { closeQuietly } from "./libc.ts";

export class SpareDescriptors {
  readonly #count: number;
  readonly #kept: number[] = [];

  constructor(count: number) {
    this.#count = count;
    this.keep();
  }

  /** Gives one up; returns whether there was one. */
  giveUp(): boolean {
    const fd = this.#kept.pop();
    if (fd !== undefined) closeQuietly(fd);
    return fd !== undefined;
  }

  /** Keeps as many back again as there may be, and are free: call when one has been closed. */
  keep(): void {
    try {
      while (this.#kept.length < this.#count) this.#kept.push(openSync("/dev/null", "r"));
    } catch {
      // There are still none.
    }
  }
}
