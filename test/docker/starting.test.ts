// Proves that a container is served before its first instruction, with what Docker would answer, and one that is not to be served is not.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import type { FailuresReport } from "../../src/api/failures.ts";
import { createNetwork, runContainer } from "../support/engine/container.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { labelledImage, ensureImage } from "../support/engine/image.ts";
import { dns11 } from "../support/program/dns11.ts";
import { SharedDns11 } from "../support/program/shared-dns11.ts";
import { waitFor } from "../support/rig/wait.ts";
import { type Upstream, startUpstream } from "../support/servers/upstream.ts";

/** In which the engine has started a container some five times. */
const RESTART_MS = 5_000;
/** How many are to be seen: on a busy machine the engine starts most before it has described them. */
const LISTED = 2;

let engine: Engine;
let upstream: Upstream;
let image: string;
const shared = new SharedDns11(() => engine);
const folder = mkdtempSync(join(tmpdir(), "d11-starting-"));

before(async () => {
  engine = await startEngine();
  upstream = await startUpstream(engine);
  await createNetwork(engine, "app", { subnet: "172.30.0.0/24" });
  image = await ensureImage(engine);
  await runContainer(engine, { name: "web", networks: ["app"] });
});
after(async () => {
  rmSync(folder, { recursive: true });
  await shared[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

/** How often each of these names failed, of all types. */
async function failuresOf(stateDir: string, pattern: RegExp): Promise<ReadonlyMap<string, number>> {
  const { stdout } = await dns11(["failures", "-a", "--json", "--state-dir", stateDir, "-H", engine.host]);
  const { failures } = JSON.parse(stdout) as FailuresReport;
  const counts = new Map<string, number>();
  for (const { name, count } of failures)
    if (name !== null && pattern.test(name)) counts.set(name, (counts.get(name) ?? 0) + count);
  return counts;
}

/** Runs a command in a container of its own as the first and only one there, as users do. */
async function runOnce(args: readonly string[], command: readonly string[]): Promise<string> {
  const run = ["run", "--rm", "--network", "app", ...args, "--", image, ...command];
  const { code, stdout, stderr } = await engine.dockerCommand(run);
  assert.notEqual(code, 125, stderr);
  return stdout;
}

test("what a container asks first is known, though it ends at once", async () => {
  const { stateDir } = await shared.with();
  let starts = 0;
  await waitFor(`${LISTED} of them`, async () => {
    await runOnce([], ["nslookup", `missing-${starts++}`]);
    return (await failuresOf(stateDir, /^missing-/)).size >= LISTED ? true : undefined;
  });
});

test("what it asks first is answered as by Docker: names of others, its own, its address, and outside names", async () => {
  const container = ["--name", "own", "--network-alias", "alias", "--ip", "172.30.0.77"];
  const asked = ["web", "own", "alias.app", "172.30.0.77", "a1.ok.test", "absent"];
  const answers = async (): Promise<string[]> => {
    const found: string[] = [];
    for (const name of asked) {
      const type = name === "172.30.0.77" ? [] : ["-type=a"];
      found.push(await runOnce(container, ["nslookup", ...type, name]));
    }
    return found;
  };
  await shared.stop();
  const docker = await answers();
  for (const args of [[], ["--strict"]]) {
    await shared.with(args);
    assert.deepEqual(await answers(), docker, args.join(" "));
  }
});

test("one that is not to be served is not, by its label, its image's or the settings", async () => {
  const labelled = await ensureImage(engine, labelledImage("dns11-test-off", { "io.dns11.enable": "false" }));
  const only = join(folder, "only.yaml");
  writeFileSync(only, "version: 1\nonly: [label=wanted]\n");
  const { stateDir } = await shared.with();
  for (let start = 0; start < 3; start++) {
    await runOnce(["--label", "io.dns11.enable=false"], ["nslookup", `off-label-${start}`]);
    await engine.dockerCommand(["run", "--rm", "--network", "app", labelled, "nslookup", `off-image-${start}`]);
  }
  assert.deepEqual([...(await failuresOf(stateDir, /^off-/)).keys()], []);
  const filtered = await shared.with(["--config", only]);
  for (let start = 0; start < 3; start++) await runOnce([], ["nslookup", `off-only-${start}`]);
  await runOnce(["--label", "wanted"], ["nslookup", "on-only"]);
  assert.deepEqual([...(await failuresOf(filtered.stateDir, /^off-/)).keys()], []);
});

test("each start of one that is started again and again counts", async () => {
  const { stateDir } = await shared.with();
  const command = ["sh", "-c", "nslookup again; exit 3"];
  await using container = await runContainer(engine, { networks: ["app"], args: ["--restart", "always"], command });
  let begunMs = performance.now();
  await waitFor("several of its lookups, each of two types", async () => {
    if (((await failuresOf(stateDir, /^again$/)).get("again") ?? 0) >= 2 * LISTED) return true;
    // The engine waits twice as long before each start, up to a minute, until somebody restarts the container.
    if (performance.now() - begunMs > RESTART_MS) {
      await engine.docker("restart", container.name);
      begunMs = performance.now();
    }
    return undefined;
  });
});

test("nothing is left of one that does not start", async () => {
  const instance = await shared.with();
  await runOnce(["--name", "broken"], ["/nonexistent"]);
  await engine.dockerCommand(["run", "--network", "app", "--name", "broken-too", image, "/nonexistent"]);
  await runOnce(["--name", "last"], ["nslookup", "after-broken"]);
  await waitFor("them to be gone", async () => {
    const { containers } = await instance.status();
    return containers.some(({ name }) => name.startsWith("broken") || name === "last") ? undefined : true;
  });
});
