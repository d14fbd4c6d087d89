// Attacks by volume.

import assert from "node:assert/strict";

import type { Attack, Rig } from "./rig.ts";

/** A gigabyte takes half a minute longer, but no more memory. */
const GARBAGE_BYTES = Number(process.env["GARBAGE_BYTES"] ?? 1e8);
/** Several times the capacity of the rig's cache. */
const NEW_NAMES = Number(process.env["RANDOM_NAMES"] ?? 8_000);
const MALFORMED = 4_000;
const QUESTIONS = 20_000;

async function pour(rig: Rig): Promise<void> {
  const { datagrams = 0, streamed = 0 } = await rig.run(rig.plain, "garbage", GARBAGE_BYTES);
  assert.ok(datagrams >= GARBAGE_BYTES / 1e5 && streamed >= GARBAGE_BYTES / 2, `${datagrams}, ${streamed}`);
}

async function spoil(rig: Rig): Promise<void> {
  const report = await rig.run(rig.plain, "malformedQueries", MALFORMED);
  assert.equal(report["sent"], MALFORMED);
  assert.ok((report["answered"] ?? 0) > MALFORMED / 10, JSON.stringify(report));
}

async function queryNewNames(rig: Rig): Promise<void> {
  const before = await forwardedOf(rig);
  const report = await rig.run(rig.plain, "newNames", NEW_NAMES);
  // Half of them still exceed the cache.
  assert.ok((report["answered"] ?? 0) > NEW_NAMES / 2, JSON.stringify(report));
  assert.ok((await forwardedOf(rig)) - before > NEW_NAMES / 2, "they were forwarded");
}

async function forwardedOf(rig: Rig): Promise<number> {
  return (await rig.instance.container("plain"))?.counters?.["forwarded"] ?? 0;
}

async function flood(rig: Rig): Promise<void> {
  const report = await rig.run(rig.plain, "questions", QUESTIONS);
  assert.ok((report["answered"] ?? 0) > QUESTIONS / 100, JSON.stringify(report));
}

export const FLOODS: readonly Attack[] = [
  { title: "garbage, in datagrams and over TCP", act: pour },
  { title: "malformed queries", act: spoil },
  { title: "queries for new names only", act: queryNewNames },
  { title: "queries without waiting for replies", act: flood },
];
