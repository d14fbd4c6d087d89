/**
 * The dns11 that the tests of a file share, because a start takes more processor time than most tests. It serves while
 * the tests ask for the same arguments; one that asks for others gets another, and one that asks for other settings of
 * a file a reload. It has no keeper: none of these tests is about its death. A test that kills or stops dns11, or that
 * needs it without a cache, ends the shared one first and starts its own with `startDns11`.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import type { Engine } from "../engine/engine.ts";
import { makeFolder } from "../rig/folder.ts";
import { waitFor } from "../rig/wait.ts";
import { type Dns11, type SettingTexts, WITHOUT_KEEPER, startDns11 } from "./dns11.ts";

const SETTLED: ReadonlySet<string> = new Set(["attached", "skipped"]);

export class SharedDns11 implements AsyncDisposable {
  readonly #engine: () => Engine;
  /** The arguments and the settings of the instance. */
  #form = "";
  #instance: Dns11 | undefined;
  /** Of the settings file of `under`. */
  #folder: string | undefined;
  #settings = "";

  /** The engine starts before the first test, so after this. */
  constructor(engine: () => Engine) {
    this.#engine = engine;
  }

  /** The dns11 with these arguments, settings and variables, which has seen every container that runs, and none that is gone. */
  async with(args: readonly string[] = [], settings: SettingTexts = {}, env: NodeJS.ProcessEnv = {}): Promise<Dns11> {
    const form = JSON.stringify([args, settings, env]);
    if (this.#instance?.isRunning !== true || form !== this.#form) {
      await this.stop();
      this.#form = form;
      this.#instance = await startDns11(this.#engine(), { args, settings, env: { ...WITHOUT_KEEPER, ...env } });
    }
    await this.#settled(this.#instance);
    return this.#instance;
  }

  /** The dns11 with these lines in its settings file, where all but a few settings take effect by a reload. */
  async under(...lines: readonly string[]): Promise<Dns11> {
    this.#folder ??= makeFolder("shared");
    const path = join(this.#folder, "dns11.yaml");
    const text = `${["version: 1", ...lines].join("\n")}\n`;
    writeFileSync(path, text);
    const former = this.#instance;
    const instance = await this.with(["--config", path]);
    if (instance === former) {
      // It costs a third of a start.
      if (text !== this.#settings) await instance.reload();
      await this.#settled(instance);
      // As after a start.
      await instance.flushCache();
    }
    this.#settings = text;
    return instance;
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
      // Without the host itself, where its programs get container names.
      const containers = (await instance.status()).containers.filter(({ id }) => id !== "host");
      const settled = containers.filter(({ state }) => SETTLED.has(state)).map(({ id }) => id);
      return containers.length === settled.length && settled.toSorted().join() === expected.join() ? true : undefined;
    });
  }
}
