// Proves that cached replies are listed by name with their records, bounded, of one container, and never where names are hidden;
// that damaged and huge records harm nothing; and that a change while they are listed is harmless.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { CacheEntriesReport } from "../../../src/api/cache.ts";
import { cacheEntries } from "../../../src/control/reports/cache-entries.ts";
import type { ControlPorts } from "../../../src/control/situation/ports.ts";
import { type CacheOwner, ReplyCache, newCacheOwner } from "../../../src/query/cache/reply-cache.ts";
import { readFreshReply } from "../../../src/query/wire/shared-reply.ts";
import { TYPE, aPointer, aQuery, aRecord, aReplyTo } from "../../support/scripted/builders.ts";
import { aKey } from "../support/key.ts";

const NOW_MS = 1_000;

interface Listed {
  readonly cache?: ReplyCache;
  readonly hasNames?: boolean;
  readonly isCaching?: boolean;
}

async function listed(parameters: string, parts: Listed = {}): Promise<CacheEntriesReport> {
  const { cache = filled(3), hasNames = true, isCaching = true } = parts;
  const upstreamState = { cache, isCaching, now: () => NOW_MS, forwarder: { ownerOf: () => undefined } };
  const ports = {
    containers: { facts: new Map(), attachmentOf: () => undefined },
    histories: { hasNames },
    resolver: () => ({ upstreamState }),
  } as unknown as ControlPorts;
  return await cacheEntries(ports, { query: new URLSearchParams(parameters) });
}

function filled(count: number): ReplyCache {
  const cache = new ReplyCache(1024 * 1024);
  const owner = newCacheOwner();
  for (let i = 0; i < count; i++) put(cache, owner, `n${i}`, [address(i)]);
  return cache;
}

function address(last: number): Buffer {
  return aRecord({ owner: aPointer(12), type: TYPE.A, ttl: 60, data: Buffer.from([10, 0, 0, last % 250]) });
}

function put(cache: ReplyCache, owner: CacheOwner, name: string, answers: readonly Buffer[]): void {
  const reply = readFreshReply(aReplyTo(aQuery({ name }), 0, answers));
  const entry = cache.put(aKey(name), owner, reply) ?? assert.fail("no room");
  entry.expiresMs = NOW_MS + 60_000;
}

test("entries are listed by name with their records and the rest of their time", async () => {
  const { isCaching, entries, omitted } = await listed("");
  assert.deepEqual([isCaching, omitted], [true, 0]);
  assert.deepEqual(
    entries.map(({ name, type, rcode, answers, expiresInS }) => [name, type, rcode, answers.join(), expiresInS]),
    [0, 1, 2].map((i) => [`n${i}`, "A", "NOERROR", `A 10.0.0.${i}`, 60]),
  );
  assert.ok(entries.every(({ bytes, container }) => bytes > 0 && container === null));
});

test("a pattern selects, and what is left out is counted", async () => {
  const cache = filled(700);
  assert.equal((await listed("", { cache })).entries.length, 100);
  const some = await listed("name=n1*&last=5", { cache });
  assert.deepEqual([some.entries.length, some.omitted], [5, 106]);
  await assert.rejects(listed("last=501"), { code: "BAD_QUERY" });
  await assert.rejects(listed("nam=x"), { code: "BAD_QUERY" });
});

test("nothing is listed without a cache, or where names are hidden", async () => {
  assert.deepEqual(await listed("", { isCaching: false }), { isCaching: false, entries: [], omitted: 0 });
  await assert.rejects(listed("", { hasNames: false }), { code: "NAMES_HIDDEN" });
});

test("removed entries are not listed, and rows are used again", async () => {
  const cache = filled(3);
  cache.removeNamed(aKey("n1").name);
  assert.deepEqual(
    (await listed("", { cache })).entries.map(({ name }) => name),
    ["n0", "n2"],
  );
  put(cache, newCacheOwner(), "new", []);
  assert.deepEqual(
    (await listed("", { cache })).entries.map(({ name }) => name),
    ["n0", "n2", "new"],
  );
  cache.clear();
  assert.deepEqual((await listed("", { cache })).entries, []);
});

test("an eviction while entries are listed ends nothing", async () => {
  const cache = filled(400);
  const listing = listed("last=400", { cache });
  await new Promise((resolve) => setImmediate(resolve));
  cache.clear();
  const { entries } = await listing;
  assert.ok(entries.length < 400 && entries.every(({ name }) => /^n\d+$/.test(name)));
});

test("records of any bytes are shown as far as they can be read, and those of a huge reply are not decoded", async () => {
  const cache = new ReplyCache(1024 * 1024);
  const owner = newCacheOwner();
  const svcb = aRecord({ owner: aPointer(12), type: 65_280, ttl: 1, data: Buffer.from("<script>\u001b[2J") });
  put(cache, owner, "odd\u001b", [svcb]);
  put(
    cache,
    owner,
    "huge",
    Array.from({ length: 500 }, (_, i) => address(i)),
  );
  put(
    cache,
    owner,
    "ten",
    Array.from({ length: 10 }, (_, i) => address(i)),
  );
  const { entries } = await listed("", { cache });
  assert.deepEqual(
    entries.map(({ name, answers }) => [name, answers.length]),
    [
      ["huge", 0],
      ["odd\\027", 1],
      ["ten", 8],
    ],
  );
  assert.match(entries[1]?.answers[0] ?? "", /^TYPE65280 \\# 12 [0-9a-f]+$/);
});
