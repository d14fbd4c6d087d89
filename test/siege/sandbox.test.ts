// Docker 28.5 under siege, with `dns11 sandbox` in place of the settings, and of "dns" in daemon.json.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { connectTo } from "../support/rig/internet.ts";
import { waitFor } from "../support/rig/wait.ts";
import { ATTACKS, STARTS, atBirth } from "./besiege.ts";
import { births } from "./births.ts";
import { DENIED, POLICY, Siege } from "./siege.ts";

let siege: Siege;

before(async () => {
  siege = await Siege.begin("forky", POLICY);
  await waitFor("an address to be refused", async () =>
    (await connectTo(siege.agent, DENIED.address, DENIED.port)) === "refused" ? true : undefined,
  );
});
after(async () => await siege[Symbol.asyncDispose]());

test("no attack gets out", async () => {
  const attacker = await siege.attacker();
  for (const { about, act, reaches } of ATTACKS) {
    await act(attacker);
    assert.deepEqual(await siege.seen(), [], about);
    assert.notEqual(await reaches?.(attacker), true, about);
  }
  assert.deepEqual(await siege.leaks(), []);
});

atBirth(() => siege);

test("nothing gets out while dns11 is replaced", async () => {
  await Promise.all([siege.replace(), births(siege, STARTS)]);
  await waitFor("it to go on", async () =>
    (await siege.leaks().catch(() => undefined)) === undefined ? undefined : true,
  );
  assert.deepEqual(await siege.leaks(), []);
});
