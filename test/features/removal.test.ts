/**
 * Any feature can be taken out: without its folder, its tests and its line in the list, everything still compiles. Without any, dns11 is
 * Docker's resolver: what it answers in strict mode is compared again, a cached answer is asked for, and it hands over.
 */
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";

import { run } from "../support/program/command.ts";

const TIME_MS = 600_000;
const LIST = "src/features.ts";
const FEATURES = readdirSync("src/features", { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);

const folder = mkdtempSync(join(tmpdir(), "d11-without-"));
after(() => rmSync(folder, { recursive: true }));
for (const name of ["src", "cmd", "test", "package.json", "tsconfig.json"])
  cpSync(name, join(folder, name), { recursive: true });
symlinkSync(resolve("node_modules"), join(folder, "node_modules"));

const compile = async (...words: readonly string[]): Promise<void> => {
  const { code, stdout } = await run("npx", ["tsc", "-p", folder, ...words], { timeoutMs: TIME_MS });
  assert.equal(code, 0, stdout);
};

/** What the compiler knows of the whole tree, so that it looks only at what a feature that is gone is known by. */
const WHOLE = join(folder, "whole.tsbuildinfo");
const WITHOUT = join(folder, "without.tsbuildinfo");
before(async () => await compile("--noEmit", "--incremental", "--tsBuildInfoFile", WHOLE));

/** The list without a feature, or without any. */
function listWithout(features: readonly string[]): string {
  const lines = readFileSync(LIST, "utf8").split("\n");
  let text = lines.join("\n");
  for (const feature of features) {
    const line = lines.find((each) => each.includes(`"./features/${feature}/`));
    const [, name = ""] = /{ (\w+) }/.exec(line ?? "") ?? [];
    assert.notEqual(name, "", `${LIST} has no line for ${feature}`);
    text = text.replace(`${line}\n`, "").replace(new RegExp(`\\b${name}(?:,\\s*)?`), "");
  }
  return text;
}

/** `tests`: those that are run with what was compiled. */
async function compilesWithout(features: readonly string[], tests: readonly string[] = []): Promise<void> {
  const gone = features.flatMap((feature) => [`src/features/${feature}`, `test/features/${feature}`]);
  for (const name of gone) rmSync(join(folder, name), { recursive: true });
  writeFileSync(join(folder, LIST), listWithout(features));
  try {
    cpSync(WHOLE, WITHOUT);
    if (tests.length > 0) await compile("--incremental", "false");
    else await compile("--noEmit", "--incremental", "--tsBuildInfoFile", WITHOUT);
    for (const name of tests) {
      const file = join(folder, `dist/test/${name}.test.js`);
      // A runner inside of a runner would run nothing.
      const env = { NODE_TEST_CONTEXT: undefined };
      const { code, stdout } = await run(process.execPath, ["--test", file], { timeoutMs: TIME_MS, cwd: folder, env });
      assert.equal(code, 0, stdout);
      assert.match(stdout, /^# pass [1-9]/m);
    }
  } finally {
    for (const name of [...gone, LIST]) cpSync(name, join(folder, name), { recursive: true });
  }
}

for (const feature of FEATURES) test(`without ${feature}`, async () => await compilesWithout([feature]));

test("without any, it answers as Docker does, forwards and caches, and hands over", async () => {
  await compilesWithout(FEATURES, ["docker/differential", "docker/cache", "docker/handover"]);
});
