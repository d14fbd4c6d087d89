// Besiege: the tests of a siege, for one Docker daemon. Each attack is first seen to get out without a policy; with one, nothing does.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import type { Suite } from "../support/engine/suite.ts";
import { connectTo } from "../support/rig/internet.ts";
import { ADDRESS_ATTACKS, type Attack, MACHINE_ATTACKS, NAME_ATTACKS, frameAttacks } from "./attacks.ts";
import { births } from "./births.ts";
import { underLoad } from "./load.ts";
import { type Attacker, DENIED, POLICY, Siege } from "./siege.ts";

// All of them take a quarter of an hour for each Docker daemon: make siege.
export const STARTS = Number(process.env["SIEGE_STARTS"] ?? 8);
const STARTS_SEEN = 3;
const RELOADS = 10;
const REPLACEMENTS = 2;
const CHOSEN = process.env["DNS11_ATTACK"] ?? "";
export const ATTACKS: readonly Attack[] = [
  ...NAME_ATTACKS,
  ...ADDRESS_ATTACKS,
  ...frameAttacks(),
  ...MACHINE_ATTACKS,
].filter(({ about }) => new RegExp(CHOSEN).test(about));

export function atBirth(siegeOf: () => Siege): void {
  test("nothing gets out by the first instructions of containers, and what is allowed succeeds", async (context) => {
    const siege = siegeOf();
    const { count, refused } = await births(siege, STARTS);
    assert.deepEqual(await siege.leaks(), []);
    assert.deepEqual(refused, []);
    context.diagnostic(`${count} starts`);
  });
}

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

  async function seenOf({ act, reaches }: Attack): Promise<string[]> {
    await act(attacker);
    return [...(await siege.seen()), ...((await reaches?.(attacker)) === true ? ["reached"] : [])];
  }

  test("without a policy every attack gets out", async (context) => {
    await siege.leaks();
    const held: string[] = [];
    for (const attack of ATTACKS) {
      const seen = await seenOf(attack);
      const late = seen.length > 0 ? [] : await siege.leaks();
      context.diagnostic(`${attack.about}: ${[...seen, ...late].slice(0, 3).join(", ")}`);
      if (seen.length + late.length === 0) held.push(attack.about);
    }
    assert.deepEqual(held, []);
    const { refused } = await births(siege, STARTS_SEEN);
    assert.deepEqual(refused, []);
    const leaks = await siege.leaks();
    for (let each = 1; each <= STARTS_SEEN; each++)
      assert.ok(leaks.includes(`asked d11-leak-born-agents-${each}.ok.test`), leaks.join());
    assert.ok(
      leaks.some((each) => each.startsWith(`sent ${DENIED.address}:${DENIED.port}/6`)),
      leaks.join(),
    );
  });

  test("with a policy none does", async () => {
    await siege.setPolicy(POLICY);
    await siege.leaks();
    for (const attack of ATTACKS) assert.deepEqual(await seenOf(attack), [], attack.about);
    assert.deepEqual(await siege.leaks(), []);
  });

  atBirth(() => siege);

  test("nothing gets out while policies are reloaded under load, and what is allowed succeeds", async (context) => {
    const happens = async (): Promise<void> => {
      for (let round = 0; round < RELOADS; round++)
        await siege.reload(round % 2 === 0 ? POLICY.replace("allow: [", 'allow: ["more.test", ') : POLICY);
    };
    context.diagnostic(await underLoad(siege, happens));
  });

  test("nothing gets out while dns11 is replaced under load, and what is allowed succeeds", async (context) => {
    const happens = async (): Promise<void> => {
      for (let round = 0; round < REPLACEMENTS; round++) await siege.replace();
    };
    try {
      context.diagnostic(await underLoad(siege, happens));
    } catch (error) {
      throw new Error(siege.instance.log, { cause: error });
    }
  });
}
