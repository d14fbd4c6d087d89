/**
 * docs/internals/features.md: the feature that it builds is made as printed, compiled, and asked by a container.
 */
import assert from "node:assert/strict";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { after, test } from "node:test";

import { dig } from "../support/client/dig.ts";
import { createNetwork, runContainer } from "../support/engine/container.ts";
import { startEngine } from "../support/engine/engine.ts";
import { run } from "../support/program/command.ts";
import { startDns11 } from "../support/program/dns11.ts";

const folder = mkdtempSync(join(tmpdir(), "d11-feature-"));
after(() => rmSync(folder, { recursive: true }));

test("the feature of the page counts what a container asks", async () => {
  for (const name of ["src", "cmd", "scripts", "package.json", "tsconfig.json"])
    cpSync(name, join(folder, name), { recursive: true });
  symlinkSync(resolve("node_modules"), join(folder, "node_modules"));
  const page = readFileSync("docs/internals/features.md", "utf8");
  const files = [...page.matchAll(/^`(src\/features\/[\w./]+)`:\n\n```ts\n([\s\S]*?)```/gm)];
  assert.equal(files.length, 2);
  for (const [, path = "", text = ""] of files) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  const [, line = ""] = /^```ts\n(import { ASKED } .*\n)```/m.exec(page) ?? [];
  const list = readFileSync("src/features.ts", "utf8");
  writeFileSync(join(folder, "src/features.ts"), `${line}${list.replace("FEATURES = [", "FEATURES = [ASKED, ")}`);
  const compiled = await run("npx", ["tsc", "--incremental", "false", "-p", folder], { timeoutMs: 300_000 });
  assert.equal(compiled.code, 0, compiled.stdout);

  await using engine = await startEngine({ suite: "bookworm" });
  await createNetwork(engine, "n1");
  const web = await runContainer(engine, { name: "web", networks: ["n1"] });
  await using instance = await startDns11(engine, {
    args: ["--metrics-addr", "127.0.0.1:0"],
    env: { DNS11_ASKED: "true", DNS11_ANSWERS: "process" },
    program: [process.execPath, join(folder, "dist/cmd/dns11.js")],
  });
  for (const type of ["A", "A", "AAAA"]) assert.equal((await dig(web, "web", type)).status, "NOERROR");
  assert.deepEqual(await instance.get("/v1/asked"), { A: 2, AAAA: 1 });
});
