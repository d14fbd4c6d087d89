/**
 * dns11 without some of its features: a copy without their folders, their tests and their lines in the list.
 */
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

import { type CommandResult, run } from "./command.ts";

const LIST = "src/features.ts";
const PACKAGES = "node_modules";
/** What is not of the sources. */
const MADE = new Set([".cache", ".git", "dist", PACKAGES]);
const TIME_MS = 5_400_000;

/** Removed when it is disposed of. */
export class Without implements Disposable {
  readonly #folder = mkdtempSync(join(tmpdir(), "d11-without-"));

  private constructor(features: readonly string[], list: string, packages: "linked" | "copied") {
    for (const name of readdirSync(".").filter((each) => !MADE.has(each)))
      cpSync(name, join(this.#folder, name), { recursive: true });
    const modules = join(this.#folder, PACKAGES);
    if (packages === "linked") symlinkSync(resolve(PACKAGES), modules);
    else cpSync(PACKAGES, modules, { recursive: true, verbatimSymlinks: true });
    for (const feature of features)
      for (const room of ["src", "test"]) rmSync(join(this.#folder, room, "features", feature), { recursive: true });
    // The documents name what is gone; whoever takes it out for good edits them, and this test says where.
    rmSync(join(this.#folder, "test/docs.test.ts"));
    writeFileSync(join(this.#folder, LIST), list);
  }

  /** With all that is left of the tests. `packages`: some tests put the whole folder into a container, where a link leads nowhere. */
  static async built(features: readonly string[], packages: "linked" | "copied" = "linked"): Promise<Without> {
    const copy = new Without(features, listWithout(features), packages);
    try {
      const { code, stdout, stderr } = await copy.#run("npm", ["run", "--silent", "build"]);
      assert.equal(code, 0, stdout + stderr);
      return copy;
    } catch (error) {
      copy[Symbol.dispose]();
      throw error;
    }
  }

  /**
   * Runs the tests whose paths contain one of the words, or those for each change where there is none; `onOutput` sees what they print.
   * Returns the exit code of the runner.
   */
  async test(words: readonly string[], onOutput: (text: string) => void): Promise<number> {
    return (await this.#run(process.execPath, ["scripts/test.mjs", ...words], onOutput)).code;
  }

  async #run(command: string, args: readonly string[], onOutput?: (text: string) => void): Promise<CommandResult> {
    // A runner inside of a runner would run nothing.
    const env = { NODE_TEST_CONTEXT: undefined };
    return await run(command, args, { timeoutMs: TIME_MS, cwd: this.#folder, env, onOutput });
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true });
  }
}

function listWithout(features: readonly string[]): string {
  let text = readFileSync(LIST, "utf8");
  for (const feature of features) {
    const [line, name] = new RegExp(`^import { (\\w+) } from "\\./features/${feature}/.*\\n`, "m").exec(text) ?? [];
    if (line === undefined) throw new Error(`${LIST} has no line for ${feature}`);
    text = text.replace(line, "").replace(new RegExp(`\\b${name}(?:,\\s*)?`), "");
  }
  return text;
}
