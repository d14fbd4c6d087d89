// testcontainers, as its users run it, on a private engine: the example of docs/testing.md, in which a rule is for a label that
// containers have before they start.

import assert from "node:assert/strict";
import { copyFileSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { ensureImage } from "../support/engine/image.ts";
import { startEngine } from "../support/engine/engine.ts";
import { run } from "../support/program/command.ts";
import { lockedPackages } from "../support/program/locked-packages.ts";
import { startDns11 } from "../support/program/dns11.ts";
import { startUpstream } from "../support/servers/upstream.ts";

const LOCK = "test/docker/testcontainers";
const EXAMPLE = "docs/examples/testcontainers.mjs";

/** A project that has testcontainers, downloaded once, and dns11's client. */
async function project(): Promise<string> {
  return await lockedPackages(
    LOCK,
    ({ testcontainers }) => `testcontainers-${testcontainers}`,
    (folder) => symlinkSync(process.cwd(), join(folder, "node_modules", "dns11")),
  );
}

test("a rule for the label of testcontainers is there at the first query of containers that it starts", async () => {
  const folder = await project();
  await using engine = await startEngine({ suite: "bookworm" });
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
