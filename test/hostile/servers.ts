// Attacks by name servers: those that a container chose with --dns, and those of a zone, behind the host's server.

import assert from "node:assert/strict";

import { LIMITS } from "../../src/config/limits.ts";
import { dataOf, dig } from "../support/dig.ts";
import { page, sumOf } from "../support/scrape.ts";
import { waitFor } from "../support/wait.ts";
import type { Attack, Rig } from "./rig.ts";
import { WORLD } from "./world.ts";

const TRUE_TARGET = (WORLD.addressOf(WORLD.target) ?? Buffer.alloc(0)).join(".");

// By the server of its own, and by that of its zone behind the host's.
async function byBoth(rig: Rig, deed: "fatalReplies" | "spoiltReplies", amount: number): Promise<void> {
  for (const attacker of [rig.chooser, rig.plain]) {
    const said = await rig.deed(attacker, deed, amount);
    assert.ok((said["served"] ?? 0) >= amount / 2, `the server was asked: ${JSON.stringify(said)}`);
  }
}

async function truncate(rig: Rig): Promise<void> {
  const said = await rig.deed(rig.chooser, "truncatedReplies", 6_000);
  const { served = 0, accepted = 0, timeWait = 0, seconds = 0 } = said;
  assert.ok(served >= 2_000, JSON.stringify(said));
  assert.ok(accepted > 0, "it came by TCP");
  const { burst, perSecond } = LIMITS.upstreamConnects;
  assert.ok(accepted <= burst + perSecond * (seconds + 1), `connections are used again: ${JSON.stringify(said)}`);
  // Those of the container's own making, as a client, are none; of each connection one side waits.
  assert.ok(timeWait <= accepted, JSON.stringify(said));
}

async function poison(rig: Rig): Promise<void> {
  const said = await rig.deed(rig.plain, "liesAboutOthers", 120);
  assert.ok((said["served"] ?? 0) >= 100, `the lies were told: ${JSON.stringify(said)}`);
  for (const asker of [rig.served, rig.plain]) {
    for (const transport of ["+notcp", "+tcp"]) {
      assert.deepEqual(dataOf(await dig(asker, transport, WORLD.target)), [TRUE_TARGET]);
    }
  }
}

async function dead(rig: Rig): Promise<void> {
  const said = await rig.deed(rig.plain, "deadZones", 600);
  assert.ok((said["served"] ?? 0) >= 200, JSON.stringify(said));
  await waitFor("the host's server to count as up", async () => ((await isHostUp(rig)) ? true : undefined));
}

async function isHostUp(rig: Rig): Promise<boolean> {
  const { metrics } = await rig.instance.status();
  const { text } = await page(metrics ?? "", "/metrics");
  return sumOf(text, "dns11_upstream_up", { to: "host(127.0.0.1)" }) === 1;
}

async function forgeLoop(rig: Rig): Promise<void> {
  const said = await rig.deed(rig.plain, "forgedLoop", 200);
  assert.ok((said["probes"] ?? 0) > 0, `a probe was read: ${JSON.stringify(said)}`);
  assert.match(rig.instance.log, /leads back/, "and was believed, of this container");
  for (const name of [WORLD.target, `n${3_000_000}.ok.test`]) {
    assert.equal((await dig(rig.served, name)).status, "NOERROR");
    // What came back below a name of its own says nothing about other names, not even to itself.
    assert.equal((await dig(rig.plain, name)).status, "NOERROR");
  }
}

export const SERVERS: readonly Attack[] = [
  // Before anything else has a server looked at for a loop, which is done now and then.
  { title: "a loop that there is not", act: forgeLoop },
  { title: "the reply that once ended the process", act: async (rig) => await byBoth(rig, "fatalReplies", 400) },
  { title: "sound replies, spoilt", act: async (rig) => await byBoth(rig, "spoiltReplies", 2_000) },
  { title: "replies that are truncated or damaged, by the thousand", act: truncate },
  { title: "replies about the names of others", act: poison },
  { title: "zones whose servers are silent, or fail", act: dead },
];
