// Rounds of work, with the longest turn of the event loop and the longest stay in another namespace in each.

import { setTimeout as sleep } from "node:timers/promises";

import { NamespaceRunner } from "../../src/container/namespace/namespace-runner.ts";
import { setNetworkNamespace } from "../../src/kernel/libc.ts";
import { type Row, spreadOf } from "./figures.ts";
import { LoopTurns, type LongestTurns } from "./loop-turns.ts";
import { ownMs } from "./own-time.ts";
import { limited, turnRows } from "./turn-rows.ts";

export const ROUNDS = 5;
/** Long enough for delayed closes and the next check of failed verifications. */
export const SETTLE_MS = 1_500;

export type During = (what: string, round: (index: number) => Promise<void>) => Promise<void>;

export class Rounds {
  readonly rows: Row[] = [];
  readonly #stays: NamespaceStays;

  constructor(stays: NamespaceStays) {
    this.#stays = stays;
  }

  async during(what: string, round: (index: number) => Promise<void>): Promise<void> {
    const measured: (LongestTurns & { readonly stayMs: number })[] = [];
    for (let index = 0; index < ROUNDS; index++) {
      this.#stays.longestMs = 0;
      const turns = new LoopTurns();
      await round(index);
      await sleep(SETTLE_MS);
      measured.push({ ...(await turns.end()), stayMs: this.#stays.longestMs });
    }
    this.rows.push(...turnRows(what, measured));
    const stayed = spreadOf(measured.map(({ stayMs }) => stayMs));
    if (stayed.high > 0) this.rows.push(limited(`${what}: longest stay in a namespace`, stayed));
  }
}

// Longest time for which this thread stayed in another namespace.
export class NamespaceStays {
  longestMs = 0;
  readonly runner: NamespaceRunner;
  #enteredMs: number | undefined;

  constructor() {
    this.runner = new NamespaceRunner({
      enter: (fd) => {
        setNetworkNamespace(fd);
        if (this.#enteredMs === undefined) this.#enteredMs = ownMs();
        else {
          this.longestMs = Math.max(this.longestMs, ownMs() - this.#enteredMs);
          this.#enteredMs = undefined;
        }
      },
      abort: () => process.abort(),
    });
  }
}
