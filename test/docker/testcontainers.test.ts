// testcontainers, as its users run it, on a private engine: the example of docs/testing.md, in which a rule is for a label that
// containers have before they start.

import assert from "node:assert/strict";
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "node:test";

import { ensureImage } from "../support/engine/image.ts";
import { startEngine } from "../support/engine/engine.ts";
import { run } from "../support/program/command.ts";
import { startDns11 } from "../support/program/dns11.ts";
import { startUpstream } from "../support/servers/upstream.ts";

const LOCK = "test/docker/testcontainers";
const EXAMPLE = "docs/examples/testcontainers.mjs";

/** A project that has testcontainers, downloaded once, and dns11's client. */
async function project(): Promise<string> {
  const { dependencies } = JSON.parse(readFileSync(join(LOCK, "package.json"), "utf8")) as {
    dependencies: Readonly<Record<string, string>>;
  };
  const folder = resolve(".cache", `testcontainers-${dependencies["testcontainers"]}`);
  if (existsSync(folder)) return folder;
  const part = `${folder}.${process.pid}`;
  mkdirSync(part, { recursive: true });
  for (const file of ["package.json", "package-lock.json"]) copyFileSync(join(LOCK, file), join(part, file));
  const { code, stderr } = await run("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], { cwd: part });
  assert.equal(code, 0, stderr);
  symlinkSync(process.cwd(), join(part, "node_modules", "dns11"));
  rmSync(folder, { recursive: true, force: true });
  renameSync(part, folder);
  return folder;
}

test("a rule for the label of testcontainers is there at the first query of containers that it starts", async () => {
  const folder = await project();
  await using engine = await startEngine();
  await using _ = await startUpstream(engine);
  const image = await ensureImage(engine);
  await using instance = await startDns11(engine);
  const file = join(folder, `example-${process.pid}.mjs`);
  copyFileSync(EXAMPLE, file);
  try {
    const env = {
      DOCKER_HOST: engine.host,
      DNS11_STATE_DIR: instance.stateDir,
      IMAGE: `${image}:latest`,
      TESTCONTAINERS_RYUK_DISABLED: "true",
      // It would look for the address of the engine with a container of its own.
      TESTCONTAINERS_HOST_OVERRIDE: "localhost",
    };
    const { code, stdout, stderr } = await run(process.execPath, [file], { cwd: folder, env });
    assert.equal(code, 0, stderr);
    assert.equal(stdout, "as expected\n");
  } finally {
    rmSync(file);
  }
});
