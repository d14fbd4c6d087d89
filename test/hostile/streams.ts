// Attacks over TCP, and with queries that wait for replies.

import assert from "node:assert/strict";

import { LIMITS } from "../../src/base/limits.ts";
import { dataOf, dig } from "../support/asking/dig.ts";
import type { Attack, Rig } from "./rig.ts";
import { WORLD } from "./world.ts";

const CONNECTIONS = 10_000;

async function stayIdle(rig: Rig): Promise<void> {
  const said = await rig.deed(rig.plain, "idle", CONNECTIONS);
  assert.ok((said["refused"] ?? CONNECTIONS) < CONNECTIONS / 2, JSON.stringify(said));
  assert.ok((said["stillOpen"] ?? CONNECTIONS) < 1_000, `most were closed: ${JSON.stringify(said)}`);
  await assertServedByTcp(rig);
}

async function drip(rig: Rig): Promise<void> {
  const dripping = rig.deed(rig.plain, "slowDrip", 400);
  dripping.catch(() => undefined);
  await assertServedByTcp(rig);
  const said = await dripping;
  assert.ok((said["dripped"] ?? 0) > 1_000, JSON.stringify(said));
  assert.ok((said["stillOpen"] ?? Infinity) <= LIMITS.clientStreams.each, JSON.stringify(said));
}

// Legitimate clients are still served, also in the attacker's namespace.
async function assertServedByTcp(rig: Rig): Promise<void> {
  for (const asker of [rig.plain, rig.served]) {
    const reply = await dig(asker, "+tcp", WORLD.kept);
    assert.deepEqual(dataOf(reply), [[...(WORLD.addressOf(WORLD.kept) ?? [])].join(".")]);
  }
}

async function leaveUnread(rig: Rig): Promise<void> {
  const said = await rig.deed(rig.chooser, "unreadReplies", 40);
  assert.equal(said["opened"], 40);
  assert.ok((said["served"] ?? 0) >= 100, `long replies were requested: ${JSON.stringify(said)}`);
  assert.ok((said["accepted"] ?? Infinity) <= mostConnections(said["seconds"]), JSON.stringify(said));
}

async function hoard(rig: Rig): Promise<void> {
  const said = await rig.deed(rig.chooser, "hoardedConnections", 3_000);
  assert.ok((said["accepted"] ?? 0) > 0, JSON.stringify(said));
  assert.ok((said["accepted"] ?? Infinity) <= mostConnections(said["seconds"]), JSON.stringify(said));
}

function mostConnections(seconds = 0): number {
  return LIMITS.upstreamConnects.burst + LIMITS.upstreamConnects.perSecond * (seconds + 1);
}

async function letWait(rig: Rig): Promise<void> {
  const said = await rig.deed(rig.chooser, "waitingQueries", 4_000);
  assert.ok((said["served"] ?? 0) >= 100, JSON.stringify(said));
}

export const STREAMS: readonly Attack[] = [
  { title: `${CONNECTIONS} idle connections`, act: stayIdle },
  { title: "connections that send a byte now and then", act: drip },
  { title: "the longest replies, requested on 40 connections and never read", act: leaveUnread },
  { title: "a server that accepts connections and never answers", act: hoard },
  { title: "the longest queries to a server that never answers", act: letWait },
];
