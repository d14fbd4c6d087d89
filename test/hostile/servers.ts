// Attacks by nameservers: those that a container set with --dns, and those of a zone behind the host's server.

import assert from "node:assert/strict";

import { LIMITS } from "../../src/base/limits.ts";
import { dataOf, dig } from "../support/client/dig.ts";
import { page, sumOf } from "../support/program/scrape.ts";
import { waitFor } from "../support/rig/wait.ts";
import type { Attack, Rig } from "./rig.ts";
import { WORLD } from "./world.ts";

const TRUE_TARGET = (WORLD.addressOf(WORLD.target) ?? Buffer.alloc(0)).join(".");

// On a busy machine packets are lost before they reach the attacker's server.
const ROUNDS_MAX = 6;

// By a container's own server, and by the server of its zone behind the host's.
async function byBoth(rig: Rig, program: "fatalReplies" | "malformedReplies", amount: number): Promise<void> {
  for (const attacker of [rig.chooser, rig.plain]) {
    const reports: Record<string, number>[] = [];
    const served = (): number => reports.reduce((sum, report) => sum + (report["served"] ?? 0), 0);
    while (served() < amount / 2 && reports.length < ROUNDS_MAX) reports.push(await rig.run(attacker, program, amount));
    assert.ok(served() >= amount / 2, `the server was queried: ${JSON.stringify(reports)}`);
  }
}

async function truncate(rig: Rig): Promise<void> {
  const report = await rig.run(rig.chooser, "truncatedReplies", 3_000);
  const { served = 0, accepted = 0, timeWait = 0, seconds = 0 } = report;
  assert.ok(served >= 1_000, JSON.stringify(report));
  assert.ok(accepted > 0, "dns11 retried over TCP");
  const { burst, perSecond } = LIMITS.upstreamConnects;
  assert.ok(accepted <= burst + perSecond * (seconds + 1), `connections are reused: ${JSON.stringify(report)}`);
  // TIME_WAIT keeps a port for a minute.
  assert.ok(timeWait <= burst + perSecond * 60, JSON.stringify(report));
}

async function poison(rig: Rig): Promise<void> {
  const report = await rig.run(rig.plain, "forgedRecords", 120);
  assert.ok((report["served"] ?? 0) >= 100, `the false replies were sent: ${JSON.stringify(report)}`);
  assert.ok((report["believed"] ?? 0) > 0, JSON.stringify(report));
  assert.equal(report["others"], 0, JSON.stringify(report));
  for (const client of [rig.served, rig.plain]) {
    for (const transport of ["+notcp", "+tcp"]) {
      assert.deepEqual(dataOf(await dig(client, transport, WORLD.target)), [TRUE_TARGET]);
    }
  }
}

async function dead(rig: Rig): Promise<void> {
  const report = await rig.run(rig.plain, "deadZones", 400);
  assert.ok((report["served"] ?? 0) >= 100, JSON.stringify(report));
  await assertHostUp(rig);
}

async function denyEdns(rig: Rig): Promise<void> {
  const report = await rig.run(rig.plain, "deniedEdns", 50);
  assert.ok((report["plain"] ?? 0) > 0, `dns11 retried without EDNS: ${JSON.stringify(report)}`);
  assert.deepEqual(dataOf(await dig(rig.plain, `a.${WORLD.edns}`)), ["127.0.0.0"], "accepted for this container");
  assert.deepEqual(dataOf(await dig(rig.served, `b.${WORLD.edns}`)), ["127.0.0.1"], "but for no other");
}

// One container's failures, or those while one ends, must not mark the shared server down.
export async function assertHostUp(rig: Rig): Promise<void> {
  await waitFor("the host's server to count as up", async () => ((await isHostUp(rig)) ? true : undefined));
}

async function isHostUp(rig: Rig): Promise<boolean> {
  const { metrics } = await rig.instance.status();
  const { text } = await page(metrics ?? "", "/metrics");
  return sumOf(text, "dns11_upstream_up", { to: "host(127.0.0.1)" }) === 1;
}

async function forgeLoop(rig: Rig): Promise<void> {
  const report = await rig.ended("forgedLoop");
  assert.ok(
    (report["believed"] ?? 0) > 0,
    `a loop probe was forged, and accepted for this container: ${JSON.stringify(report)}`,
  );
  for (const name of [WORLD.target, "n3000000.ok.test"]) {
    assert.equal((await dig(rig.served, name)).status, "NOERROR");
    // A loop below its own name must not affect other names, not even for this container.
    assert.equal((await dig(rig.looper, name)).status, "NOERROR");
  }
}

// dns11 probes a server for a loop every 30 s.
export const LOOPS: readonly Attack[] = [
  { title: "a forged loop", begin: (rig) => rig.begin(rig.looper, "forgedLoop", 400), act: forgeLoop },
];

export const SERVERS: readonly Attack[] = [
  { title: "the reply that once crashed the process", act: async (rig) => await byBoth(rig, "fatalReplies", 200) },
  { title: "malformed replies", act: async (rig) => await byBoth(rig, "malformedReplies", 1_000) },
  { title: "thousands of truncated or damaged replies", act: truncate },
  { title: "replies with records for other names", act: poison },
  { title: "zones whose servers do not reply or fail", act: dead },
  { title: "a zone that rejects EDNS", act: denyEdns },
];
