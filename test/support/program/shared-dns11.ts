/**
 * The dns11 that the tests of a file share, because a start takes more processor time than most tests. It serves while
 * the tests ask for the same arguments; one that asks for others gets another. A test that kills, stops or reloads
 * dns11, or that needs it without a cache, ends the shared one first and starts its own with `startDns11`.
 */
import assert from "node:assert/strict";

import type { Engine } from "../engine/engine.ts";
import { waitFor } from "../rig/wait.ts";
import { type Dns11, startDns11 } from "./dns11.ts";

const SETTLED: ReadonlySet<string> = new Set(["attached", "skipped"]);

export class SharedDns11 implements AsyncDisposable {
  readonly #engine: () => Engine;
  #args: readonly string[] = [];
  #instance: Dns11 | undefined;

  /** The engine starts before the first test, so after this. */
  constructor(engine: () => Engine) {
    this.#engine = engine;
  }

  /** The dns11 with these arguments, which has seen every container that runs, and none that is gone. */
  async with(args: readonly string[] = []): Promise<Dns11> {
    if (this.#instance?.isRunning !== true || args.join("\0") !== this.#args.join("\0")) {
      await this.stop();
      this.#args = args;
      this.#instance = await startDns11(this.#engine(), { args });
    } else {
      await this.#settled(this.#instance);
    }
    return this.#instance;
  }

  /** Before a test that starts its own. */
  async stop(): Promise<void> {
    await this.#instance?.[Symbol.asyncDispose]();
    this.#instance = undefined;
  }

  /** What it did to containers would be part of what the next dns11 finds. */
  assertEnded(): void {
    assert.ok(this.#instance === undefined, "the shared dns11 must end before a test prepares what its own shall find");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #settled(instance: Dns11): Promise<void> {
    const running = (await this.#engine().api("/containers/json")) as readonly { readonly Id: string }[];
    const expected = running.map(({ Id }) => Id).toSorted();
    await waitFor("dns11 to have seen every container", async () => {
      const { containers } = await instance.status();
      const settled = containers.filter(({ state }) => SETTLED.has(state)).map(({ id }) => id);
      return containers.length === settled.length && settled.toSorted().join() === expected.join() ? true : undefined;
    });
  }
}
