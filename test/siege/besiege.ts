// Besiege: the tests of a siege, for one Docker daemon. Each attack is first seen to get out without a policy; with one, nothing does.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import type { Suite } from "../support/engine/suite.ts";
import { connectTo } from "../support/rig/internet.ts";
import { ADDRESS_ATTACKS, type Attack, MACHINE_ATTACKS, NAME_ATTACKS, frameAttacks } from "./attacks.ts";
import { ALLOWED, type Attacker, DENIED, POLICY, Siege } from "./siege.ts";

const CHOSEN = process.env["DNS11_ATTACK"] ?? "";
const ATTACKS: readonly Attack[] = [...NAME_ATTACKS, ...ADDRESS_ATTACKS, ...frameAttacks(), ...MACHINE_ATTACKS].filter(
  ({ about }) => new RegExp(CHOSEN).test(about),
);

export function besiege(suite: Suite): void {
  let siege: Siege;
  let attacker: Attacker;
  before(async () => {
    siege = await Siege.begin(suite);
    for (const container of [siege.agent, siege.neighbour])
      for (const address of [DENIED.address, DENIED.address6])
        assert.equal(await connectTo(container, address, DENIED.port), "open", address);
    attacker = await siege.attacker();
  });
  after(async () => await siege[Symbol.asyncDispose]());

  async function gotOut({ act, reaches }: Attack): Promise<string[]> {
    await siege.leaks();
    await act(attacker);
    return [...(await siege.leaks()), ...((await reaches?.(attacker)) === true ? ["reached"] : [])];
  }

  test("without a policy every attack gets out", async (context) => {
    const failed: string[] = [];
    for (const attack of ATTACKS) {
      const t0 = Date.now();
      const found = await gotOut(attack);
      context.diagnostic(`${Date.now() - t0} ${attack.about}: ${found.slice(0, 3).join(", ")}`);
      if (found.length === 0) {
        failed.push(attack.about);
      }
    }
    assert.deepEqual(failed, []);
  });

  test("with a policy none does", async () => {
    await siege.setPolicy(POLICY);
    for (const attack of ATTACKS) assert.deepEqual(await gotOut(attack), [], attack.about);
    assert.equal(await connectTo(siege.agent, ALLOWED.address, 443), "open");
  });
}
