// Health checks on a real engine: a replica that turns unhealthy leaves the name that it shares, and comes back; nobody loses
// the last address, or a container its own name.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { dataOf, dig } from "../support/client/dig.ts";
import { dns11 } from "../support/program/dns11.ts";
import { SharedDns11 } from "../support/program/shared-dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { waitFor } from "../support/rig/wait.ts";

const CHECK = ["--health-cmd", "test ! -e /tmp/sick", "--health-interval", "1s", "--health-retries", "1"];

let engine: Engine;
let one: Container;
let two: Container;
let app: Container;
const shared = new SharedDns11(() => engine);

before(async () => {
  engine = await startEngine();
  await createNetwork(engine, "front");
  const networks = [{ name: "front", aliases: ["web"] }];
  one = await runContainer(engine, { name: "web-1", networks, args: CHECK });
  two = await runContainer(engine, { name: "web-2", networks, args: CHECK });
  app = await runContainer(engine, { name: "app", networks: ["front"] });
});
after(async () => {
  await shared[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

async function expectAnswer(...containers: readonly Container[]): Promise<void> {
  const expected = containers.map((each) => each.address("front")).toSorted();
  await waitFor(`web: ${expected.join(" ")}`, async () => {
    const found = dataOf(await dig(app, "web")).toSorted();
    return found.join(" ") === expected.join(" ") || undefined;
  });
}

async function setSick(container: Container, isSick: boolean): Promise<void> {
  await container.exec(isSick ? "touch" : "rm", ["/tmp/sick"]);
}

test("an unhealthy replica leaves the shared name, and returns when it is healthy", async () => {
  const instance = await shared.under("health: exclude");
  await expectAnswer(one, two);
  await setSick(two, true);
  await expectAnswer(one);
  assert.deepEqual(dataOf(await dig(app, "web-2")), [two.address("front")], "its own name");
  const where = ["-H", engine.host, "--state-dir", instance.stateDir];
  const { stdout } = await dns11(["explain", "web", "--in", "app", "-v", ...where]);
  assert.match(stdout, /answered with its addresses, without those of 1 that are not healthy/);
  await setSick(one, true);
  await expectAnswer(one, two);
  await setSick(two, false);
  await expectAnswer(two);
  await setSick(one, false);
  await expectAnswer(one, two);
});

test("without the setting, and in strict mode, health means nothing", async () => {
  await setSick(two, true);
  for (const mode of ["strict: false", "strict: true"]) {
    await shared.under(mode);
    await waitFor("the unhealthy state", async () =>
      (await two.inspect()).State.Health?.Status === "unhealthy" ? true : undefined,
    );
    await expectAnswer(one, two);
  }
  await setSick(two, false);
});
