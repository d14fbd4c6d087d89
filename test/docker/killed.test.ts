/**
 * Repeated kills and restarts while a container sends queries: in between Docker's resolver answers, and afterwards no
 * descriptor, process or rule is left.
 */
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { after, before, test } from "node:test";

import type { Container } from "../support/engine/container.ts";
import { dig } from "../support/client/dig.ts";
import type { Engine } from "../support/engine/engine.ts";
import { startPair } from "../support/engine/pair.ts";
import { Dns11 } from "../support/program/dns11.ts";
import { isAlive } from "../support/program/main-with-keeper.ts";
import { pause, waitFor } from "../support/rig/wait.ts";

/** `make keeper` runs a thousand rounds. */
const TIMES = Number(process.env["KEEPER_TIMES"] ?? 1) * 5;

/** More queries would take more processor time than the kills. */
const BETWEEN_QUERIES_MS = 100;

let engine: Engine;
let web: Container;
let client: Container;

before(async () => ({ engine, web, client } = await startPair()));
after(async () => await engine[Symbol.asyncDispose]());

test(`killed and restarted ${TIMES} times: queries are answered in between, and nothing leaks`, async () => {
  let stateDir: string | undefined;
  let first: Dns11 | undefined;
  const descriptors: number[] = [];
  const queries = { sent: 0, unanswered: 0 };
  let isDone = false;
  const querying = (async () => {
    while (!isDone) {
      queries.sent++;
      // Ten tries of two seconds: longer than the moment in which queries may be lost.
      if ((await dig(web, "+time=2", "+tries=10", "client")).answer.length === 0) queries.unanswered++;
      await pause(BETWEEN_QUERIES_MS);
    }
  })();
  for (let time = 0; time < TIMES; time++) {
    const dns11: Dns11 = new Dns11(engine.host, stateDir === undefined ? {} : { stateDir });
    stateDir ??= dns11.stateDir;
    first ??= dns11;
    await dns11.waitUntilReady();
    const { keeper } = await waitFor("its keeper", async () => {
      const status = await dns11.status();
      return status.keeper.state === "watching" && status.keeper.namespaces === 2 ? status : undefined;
    });
    assert.equal((await dig(client, "web")).answer[0]?.ttl, 5);
    // The kernel's programs, and the thread that attaches them, have descriptors as well.
    await dns11.waitForKernel();
    descriptors.push(readdirSync(`/proc/${dns11.pid}/fd`).length);
    dns11.kill("SIGKILL");
    await waitFor("Docker's answer", async () =>
      (await dig(client, "+time=1", "+tries=10", "web")).answer[0]?.ttl === 600 ? true : undefined,
    );
    await dns11.exited;
    await waitFor("its keeper to end", () => (isAlive(keeper.pid ?? 0) ? undefined : true));
    assert.doesNotMatch((await client.enter("nft", ["list", "tables"])).stdout, /dns11/);
  }
  isDone = true;
  await querying;
  assert.deepEqual([queries.unanswered, queries.sent >= TIMES], [0, true]);
  const [least, most] = [Math.min(...descriptors), Math.max(...descriptors)];
  assert.ok(most - least < 8, `between ${least} and ${most} descriptors`);
  // The first instance owns the state folder.
  await first?.[Symbol.asyncDispose]();
});
