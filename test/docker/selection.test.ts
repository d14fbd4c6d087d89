/**
 * Selection: which containers are served and which are skipped, and why: by network, label and the setting `only`; and the output of
 * --dry-run.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import type { ContainerStatus } from "../../src/api/status.ts";
import { createNetwork, runContainer } from "../support/engine/container.ts";
import { dns11, startDns11 } from "../support/program/dns11.ts";
import { SharedDns11 } from "../support/program/shared-dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { waitFor } from "../support/rig/wait.ts";

/** Its start costs processor time, and it has no part in this. */
const WITHOUT_KEEPER = { settings: { keeper: "off" } };

let engine: Engine;
const shared = new SharedDns11(() => engine);

before(async () => {
  engine = await startEngine();
  await createNetwork(engine, "n1");
  await createNetwork(engine, "n2");
  const label = (value: string): { labels: Record<string, string> } => ({ labels: { "io.dns11.enable": value } });
  await runContainer(engine, { name: "plain", networks: ["n1"] });
  await runContainer(engine, { name: "other", networks: ["n2"], labels: { tier: "front" } });
  await runContainer(engine, { name: "refuses", networks: ["n1"], ...label("false") });
  await runContainer(engine, { name: "typo", networks: ["n1"], ...label("flase") });
  await runContainer(engine, { name: "host", args: ["--network", "host"] });
  await runContainer(engine, { name: "none", args: ["--network", "none"] });
  await runContainer(engine, { name: "default" });
  await runContainer(engine, { name: "guest", args: ["--network", "container:host"] });
  await engine.docker("swarm", "init", "--advertise-addr", "127.0.0.1");
  await engine.docker("network", "create", "--driver", "overlay", "--attachable", "over");
  await runContainer(engine, { name: "tasklike", networks: ["n1", "over"] });
});
after(async () => {
  await shared[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

function decisions(containers: readonly ContainerStatus[]): Record<string, string> {
  return Object.fromEntries(containers.map(({ name, state, code }) => [name, code ?? state]));
}

test("each container is attached, or skipped with a reason", async () => {
  const instance = await shared.under();
  const { containers } = await instance.status();
  assert.deepEqual(decisions(containers), {
    plain: "attached",
    other: "attached",
    refuses: "opted-out",
    typo: "attached",
    host: "host-network",
    none: "no-network",
    default: "default-network-only",
    guest: "shares-namespace",
    tasklike: "attached",
  });
  const typo = containers.find(({ name }) => name === "typo");
  assert.match(typo?.warning ?? "", /="flase": use true or false/);
  await instance.logs(/container has a configuration problem/);
  for (const name of ["refuses", "host", "none", "default"]) {
    const pid = (await engine.docker("inspect", "-f", "{{.State.Pid}}", name)).trim();
    const { stdout } = await engine.exec("nsenter", [`--net=/proc/${pid}/ns/net`, "nft", "list", "ruleset"]);
    assert.doesNotMatch(stdout, /dns11/, name);
  }
});

test("only selects by network and label", async () => {
  for (const [only, served] of [
    ["network=n2", ["other"]],
    ["label=tier=front", ["other"]],
    ["label=tier, network=n1", []],
    ["network=n1, network=n2", ["other", "plain", "tasklike", "typo"]],
  ] as const) {
    const instance = await shared.under(`only: [${only}]`);
    await waitFor(`only ${only}`, async () => {
      const { containers } = await instance.status();
      const attached = containers.filter(({ state }) => state === "attached").map(({ name }) => name);
      return attached.join() === served.join() ? true : undefined;
    });
  }
});

test("--dry-run prints what would be done, and changes nothing", async () => {
  await shared.stop();
  const { code, stdout } = await dns11(["run", "-H", engine.host, "--dry-run"]);
  assert.equal(code, 0);
  assert.match(stdout, /^plain\s+serve\s+n1/m);
  assert.match(stdout, /^refuses\s+skip\s+n1\s+its label io\.dns11\.enable disables dns11$/m);
  assert.match(stdout, /^tasklike\s+serve\s+n1,over/m);
  const pid = (await engine.docker("inspect", "-f", "{{.State.Pid}}", "plain")).trim();
  const rules = await engine.exec("nsenter", [`--net=/proc/${pid}/ns/net`, "nft", "list", "ruleset"]);
  assert.doesNotMatch(rules.stdout, /dns11/);
});

test("a second instance for an engine is refused and names the first, and so is cleanup; after that one is killed it can start", async () => {
  await using first = await startDns11(engine, WITHOUT_KEEPER);
  const where = ["-H", engine.host, "--state-dir", first.stateDir];
  const second = await dns11(["run", ...where]);
  assert.equal(second.code, 4);
  assert.match(second.stderr, new RegExp(`Another dns11 already serves this engine: process ${first.pid}, since 20`));
  const replacement = await dns11(["run", "--replace", ...where]);
  assert.deepEqual([replacement.code, /needs a keeper on both sides/.test(replacement.stderr)], [4, true]);
  assert.equal((await dns11(["cleanup", ...where])).code, 4);
  first.kill("SIGKILL");
  await first.exited;
  await using third = await startDns11(engine, { ...WITHOUT_KEEPER, stateDir: first.stateDir });
  assert.equal((await third.status()).isReady, true);
  third.kill("SIGKILL");
  await third.exited;
  await assertCleanup(where);
});

/** Orphaned rules of a killed instance are removed. */
async function assertCleanup(where: readonly string[]): Promise<void> {
  const pid = (await engine.docker("inspect", "-f", "{{.State.Pid}}", "plain")).trim();
  const enter = [`--net=/proc/${pid}/ns/net`, "nft"];
  await engine.exec("nsenter", [...enter, "add table ip dns11"]);
  const { code, stdout } = await dns11(["cleanup", ...where]);
  assert.equal(code, 0, stdout);
  assert.match(stdout, /^plain: removed orphaned table ip "dns11"$/m);
  assert.match(stdout, /^removed .*$/m);
  assert.doesNotMatch((await engine.exec("nsenter", [...enter, "list", "ruleset"])).stdout, /dns11/);
}
