/**
 * The dns11 of a node is replaced while pods send queries. There is no other resolver behind the node, so any gap loses queries.
 * In both kind modes, from new source ports and from a fixed one, and over TCP afterwards.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { QueryLoop, outcomesOf } from "../../support/client/query-loop.ts";
import {
  GATEWAY,
  type KindEnvironment,
  ownTables,
  startKindEnvironment,
  waitForWorkingNode,
} from "../../support/kind/kind-environment.ts";
import { startPod } from "../../support/kind/pod.ts";
import { replaceDns11 } from "../../support/program/dns11.ts";
import { pause, waitFor } from "../../support/rig/wait.ts";

/** Few enough that the sockets hold all of them for as long as a busy machine may take; each gap of 10 ms loses one. */
const PER_SECOND = 100;
/** How long clients query before and after the replacement. */
const LONGER_MS = 1_000;

let world: KindEnvironment;

before(async () => (world = await startKindEnvironment({ withKeeper: true })));
after(async () => await world[Symbol.asyncDispose]());

for (const mode of ["listener", "loopback"] as const) {
  test(`replaced, a node's pods lose no query, kind mode "${mode}"; killed, its rules are gone at once`, async () => {
    await using node = await world.node(`replaced-${mode}`, { entrypoint: "kind" });
    const options = { args: ["--kind", "auto"], settings: { "kind.mode": mode } };
    await using first = await world.serve({ "kind.mode": mode });
    await waitForWorkingNode(first, node.name);
    await using pod = await startPod(node);
    const queried = { server: GATEWAY, name: "web", perSecond: PER_SECOND };
    await using fresh = await QueryLoop.start(pod, queried);
    await using kept = await QueryLoop.start(pod, { ...queried, sourcePort: "any" });
    await pause(LONGER_MS);
    await using second = await replaceDns11(world.engine, first, options);
    await pause(LONGER_MS);
    for (const queries of [fresh, kept]) {
      const ends = await queries.stop();
      assert.ok(ends.length > PER_SECOND / 2);
      assert.deepEqual(Object.keys(outcomesOf(ends)), ["NOERROR"], `${first.log}\n---\n${second.log}`);
    }
    await waitForWorkingNode(second, node.name);
    assert.deepEqual(await world.webFrom(pod, GATEWAY), world.found);
    assert.deepEqual(await world.webFrom(node, "127.0.0.11"), world.found);
    const { keeper } = await waitFor("the keeper", async () => {
      const status = await second.status();
      return status.keeper.namespaces === status.containers.length ? status : undefined;
    });
    assert.equal(keeper.state, "watching");
    second.kill("SIGKILL");
    await waitFor("the rules to be gone", async () =>
      (await ownTables(node.netnsPath)).length === 0 ? true : undefined,
    );
  });
}
