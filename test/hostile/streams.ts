// Attacks over TCP, and with queries that wait for replies.

import assert from "node:assert/strict";

import { LIMITS } from "../../src/base/limits.ts";
import { dataOf, dig } from "../support/client/dig.ts";
import type { Attack, Rig } from "./rig.ts";
import { WORLD } from "./world.ts";

const CONNECTIONS = 4_000;

async function stayIdle(rig: Rig): Promise<void> {
  const report = await rig.run(rig.plain, "idle", CONNECTIONS);
  assert.ok((report["refused"] ?? CONNECTIONS) < CONNECTIONS / 2, JSON.stringify(report));
  assert.ok((report["stillOpen"] ?? CONNECTIONS) < 1_000, `most were closed: ${JSON.stringify(report)}`);
  await assertServedByTcp(rig);
}

async function drip(rig: Rig): Promise<void> {
  const dripping = rig.run(rig.plain, "slowDrip", 400, LIMITS.clientStreams.each);
  dripping.catch(() => undefined);
  await assertServedByTcp(rig);
  const report = await dripping;
  assert.ok((report["dripped"] ?? 0) > 100, JSON.stringify(report));
  assert.ok((report["stillOpen"] ?? Infinity) <= LIMITS.clientStreams.each, JSON.stringify(report));
}

// Legitimate clients are still served, also in the attacker's namespace.
async function assertServedByTcp(rig: Rig): Promise<void> {
  for (const client of [rig.plain, rig.served]) {
    const reply = await dig(client, "+tcp", WORLD.kept);
    assert.deepEqual(dataOf(reply), [[...(WORLD.addressOf(WORLD.kept) ?? [])].join(".")]);
  }
}

async function leaveUnread(rig: Rig): Promise<void> {
  const report = await rig.run(rig.chooser, "unreadReplies", 40);
  assert.equal(report["opened"], 40);
  assert.ok((report["served"] ?? 0) >= 100, `long replies were requested: ${JSON.stringify(report)}`);
  assert.ok((report["accepted"] ?? Infinity) <= mostConnections(report["seconds"]), JSON.stringify(report));
}

async function hoard(rig: Rig): Promise<void> {
  const report = await rig.run(rig.chooser, "hoardedConnections", 1_500);
  assert.ok((report["hoarded"] ?? 0) > 0, JSON.stringify(report));
  assert.ok((report["accepted"] ?? Infinity) <= mostConnections(report["seconds"]), JSON.stringify(report));
}

function mostConnections(seconds = 0): number {
  return LIMITS.upstreamConnects.burst + LIMITS.upstreamConnects.perSecond * (seconds + 1);
}

async function letWait(rig: Rig): Promise<void> {
  const report = await rig.run(rig.chooser, "waitingQueries", 2_000);
  assert.ok((report["served"] ?? 0) >= 100, JSON.stringify(report));
}

export const STREAMS: readonly Attack[] = [
  { title: `${CONNECTIONS} idle connections`, act: stayIdle },
  { title: "connections that send a byte now and then", act: drip },
  { title: "the longest replies, requested on 40 connections and never read", act: leaveUnread },
  { title: "a server that accepts connections and never answers", act: hoard },
  { title: "the longest queries to a server that never answers", act: letWait },
];
