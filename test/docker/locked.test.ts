/**
 * Containers in which somebody holds the lock of the nftables rules for ever, on a real engine: sixteen at once. They are reported,
 * everybody else is served, attached and handed back meanwhile, and they are served when the locks are free.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { dataOf, dig } from "../support/client/dig.ts";
import { dns11, startDns11, variables } from "../support/program/dns11.ts";
import { LockHolder } from "../support/program/lock-holder.ts";
import { waitFor } from "../support/rig/wait.ts";

const LOCKED = 16;
const DOCKERS_TTL = 600;
const NO_METRICS = { DNS11_METRICS_ADDR: "off" };

let engine: Engine;
let web: Container;
let locked: readonly Container[];
let served: Container;
let holders: LockHolder[];

before(async () => {
  engine = await startEngine({ suite: "bookworm" });
  await createNetwork(engine, "n1");
  web = await runContainer(engine, { name: "web", networks: ["n1"] });
  served = await runContainer(engine, { name: "served", networks: ["n1"] });
  locked = await Promise.all(
    Array.from(
      { length: LOCKED },
      async (_, index) => await runContainer(engine, { name: `locked${index}`, networks: ["n1"] }),
    ),
  );
  holders = await Promise.all(locked.map(async ({ netnsPath }) => await LockHolder.in(netnsPath)));
});
after(async () => {
  for (const holder of holders) await holder[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

/** "nobody" until one of both has taken over. */
async function whoAnswers(container: Container): Promise<"dns11" | "docker" | "nobody"> {
  const reply = await dig(container, "web");
  if (dataOf(reply)[0] !== web.address("n1")) return "nobody";
  return reply.answer[0]?.ttl === DOCKERS_TTL ? "docker" : "dns11";
}

test("sixteen containers hold their locks: all others are served, attached, detached and handed back, and these when they are free", async (context) => {
  const stateDir = join(engine.folder, "state");
  const instance = await startDns11(engine, { stateDir });
  try {
    for (const { name } of locked) await instance.waitFor(name, "failed");
    assert.equal(await whoAnswers(web), "dns11");
    const late = await runContainer(engine, { name: "late", networks: ["n1"] });
    const startedMs = performance.now();
    await instance.waitFor("late", "attached");
    context.diagnostic(`attached ${Math.round(performance.now() - startedMs)} ms after its start`);
    assert.equal(await whoAnswers(late), "dns11");
    await late.remove();
    const options = ["-H", engine.host, "--state-dir", stateDir];
    const { stdout } = await dns11(["ps", ...options]);
    assert.match(stdout, /^locked0 +FAILED .*holds the lock of its rules/m);
    const { stdout: json } = await dns11(["ps", "--json", ...options]);
    assert.equal(json.match(/"code": ?"RULES_LOCKED"/g)?.length, LOCKED, json);
    const doctor = await dns11(["doctor", "locked0", ...options]);
    assert.match(doctor.stdout, /holds the lock of its rules/);
    await instance.logs(/"container":"locked0".*a process of the container locks its rules/);
    // One that is served already goes on being served. The doctor looks into it, and ends all the same.
    holders.push(await LockHolder.in(served.netnsPath));
    const looked = await dns11(["doctor", "served", ...options]);
    assert.match(looked.stdout, /holds the lock of its rules/);
    assert.equal(looked.code, 1);
    assert.equal(await whoAnswers(served), "dns11");
    instance.kill("SIGKILL");
    await waitFor("Docker's resolver to answer", async () => ((await whoAnswers(web)) === "docker" ? true : undefined));
    const early = await dns11(["run", ...options], { env: { ...NO_METRICS, ...variables({ keeper: "off" }) } });
    assert.match(early.stderr, /dns11 was killed \(process \d+\), and one of its threads still waits for a container/);
    assert.equal(early.code, 4);
  } finally {
    for (const holder of holders.splice(0)) await holder[Symbol.asyncDispose]();
    await instance[Symbol.asyncDispose]();
  }
  await using next = await startDns11(engine, { stateDir });
  for (const { name } of locked) await next.waitFor(name, "attached");
  const [first = assert.fail()] = locked;
  assert.equal(await whoAnswers(first), "dns11");
});
