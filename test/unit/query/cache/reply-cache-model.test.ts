// Proves that a reply is cached unchanged, and that the cache behaves like a simple model: a list of objects with the
// same eviction rules.

import assert from "node:assert/strict";
import { randomBytes, randomInt } from "node:crypto";
import { test } from "node:test";

import type { CacheKey } from "../../../../src/query/cache/entry.ts";
import { type CacheOwner, ReplyCache, newCacheOwner } from "../../../../src/query/cache/reply-cache.ts";
import { errorOption } from "../../../../src/base/dns/extended-error.ts";
import { type FreshReply, type SharedReply, readFreshReply } from "../../../../src/query/wire/shared-reply.ts";
import { runs } from "../../../support/rig/runs.ts";
import { TYPE, aPointer, aQuery, aRecord, aReplyTo } from "../../../support/scripted/builders.ts";
import { HOST_SCOPE, aKey } from "../../support/key.ts";

const WHOLE = 1024 * 1024;
const SMALL = 8_000;
const STEPS = runs(4_000);
const HASH_BITS = 7;

test("a reply is cached unchanged: its records, counts, flags and extended error", () => {
  const cache = new ReplyCache(WHOLE);
  const replies = [
    aReply("none"),
    aReply("one", { records: 1 }),
    aReply("many", { records: 300 }),
    aReply("long", { records: 2, dataBytes: 30_000 }),
    aReply("authentic", { records: 1, flags: 0x20 }),
    aReply("truncated", { flags: 0x200 }),
    aReply("denied", { rcode: 3 }),
    aReply("extended", { rcode: 2, error: errorOption(22, "it is offline") }),
    aReply("x".repeat(63), { records: 1, error: errorOption(0, "") }),
  ];
  const owner = newCacheOwner();
  for (const [key, reply] of replies) assert.ok(cache.put(key, owner, reply));
  for (const [key, reply] of replies) {
    const entry = cache.find(key);
    assert.deepEqual(entry?.key, key);
    assert.deepEqual(contentOf(entry?.readReply()), contentOf(reply));
    assert.deepEqual(contentOf(entry?.copyReply()), contentOf(reply));
    assert.equal(entry?.failure, undefined);
  }
});

test("a copy does not change when other entries are read", () => {
  const cache = new ReplyCache(WHOLE);
  const [[one, first], [two, second]] = [aReply("one", { records: 3 }), aReply("two", { records: 5 })];
  cache.put(one, newCacheOwner(), first);
  cache.put(two, newCacheOwner(), second);
  const copy = cache.find(one)?.copyReply();
  assert.deepEqual(contentOf(cache.find(two)?.readReply()), contentOf(second));
  assert.deepEqual(contentOf(copy), contentOf(first));
});

test("the reason of a failure is stored beside the old reply, and removed with the next reply", () => {
  const cache = new ReplyCache(WHOLE);
  const owner = newCacheOwner();
  const [key, reply] = aReply("web", { records: 2, error: errorOption(1, "of the server's") });
  for (const failure of [errorOption(22, "silent"), errorOption(23, "unreachable, and with a longer text")]) {
    const alone = cache.put(aReply("never")[0], owner, undefined, failure);
    assert.deepEqual([alone?.hasReply, alone?.readReply(), alone?.failure], [false, undefined, failure]);
    const kept = cache.put(key, owner, reply);
    assert.ok(kept);
    kept.expiresMs = 1234.5;
    kept.isRefreshing = true;
    kept.hits = 3;
    const entry = cache.put(key, owner, undefined, failure);
    assert.deepEqual([entry?.failure, contentOf(entry?.readReply())], [failure, contentOf(reply)]);
    assert.deepEqual([entry?.expiresMs, entry?.isRefreshing, entry?.hits], [1234.5, true, 3]);
    assert.equal(cache.put(key, owner, reply)?.failure, undefined);
  }
});

test("a new entry has nothing of the one that was evicted for it", () => {
  const cache = new ReplyCache(SMALL);
  const owner = newCacheOwner();
  for (let i = 0; i < 1000; i++) {
    const [key, reply] = aReply(`n${i}`, { records: 1 });
    const entry = cache.put(key, owner, reply, errorOption(22, "silent"));
    assert.ok(entry);
    assert.deepEqual([entry.hits, entry.isRefreshing, entry.storedMs, entry.failedUntilMs], [0, false, 0, 0]);
    entry.hits = entry.storedMs = entry.failedUntilMs = 1;
    entry.isRefreshing = true;
  }
});

test("a reply larger than the whole cache is not cached, and evicts nothing", () => {
  const cache = new ReplyCache(SMALL);
  const owner = newCacheOwner();
  const [small, reply] = aReply("small", { records: 1 });
  cache.put(small, owner, reply);
  const [large, larger] = aReply("large", { records: 1, dataBytes: SMALL });
  assert.equal(cache.put(large, owner, larger), undefined);
  assert.deepEqual(contentOf(cache.find(small)?.readReply()), contentOf(reply));
  // The old entry of that name is no longer valid either.
  assert.equal(cache.put(small, owner, larger), undefined);
  assert.deepEqual([cache.find(small), cache.size, cache.bytes, owner.bytes], [undefined, 0, 0, 0]);
});

test("entries without a reply are limited, too", () => {
  const cache = new ReplyCache(SMALL);
  const owner = newCacheOwner();
  const root = { hash: 1, name: "", bits: 0, scope: 2 };
  for (let type = 0; type < 1000; type++) {
    assert.ok(cache.put({ ...root, type }, owner, undefined, undefined));
    assert.ok(cache.find({ ...root, type }));
  }
  assert.ok(cache.size < 100 && cache.bytes <= SMALL);
  assert.equal(cache.find({ ...root, type: 0 }), undefined);
});

test("if a reply fits but the reason of a failure does not, the reply stays", () => {
  const cache = new ReplyCache(SMALL);
  const [key, reply] = aReply("web", { records: 1, dataBytes: 4_100 });
  assert.ok(cache.put(key, newCacheOwner(), reply));
  const entry = cache.put(key, newCacheOwner(), undefined, errorOption(22, "silent".repeat(30)));
  assert.deepEqual([entry?.failure, contentOf(entry?.readReply())], [undefined, contentOf(reply)]);
});

test("a cache of size 0 caches nothing", () => {
  const cache = new ReplyCache(0);
  const [key, reply] = aReply("web");
  assert.deepEqual([cache.put(key, newCacheOwner(), reply), cache.find(key), cache.size], [undefined, undefined, 0]);
  cache.clear();
});

test("after any sequence of operations it holds what the model holds", () => {
  const cache = new ReplyCache(SMALL);
  const owners = [newCacheOwner(), newCacheOwner(), newCacheOwner()];
  const model: { key: CacheKey; owner: CacheOwner; content: unknown; bytes: number }[] = [];
  const drop = (isGone: (one: (typeof model)[number]) => boolean): void => {
    model.splice(0, model.length, ...model.filter((one) => !isGone(one)));
  };
  for (let step = 0; step < STEPS; step++) {
    const owner = owners[randomInt(owners.length)] as CacheOwner;
    const parts = { records: randomInt(4), dataBytes: randomInt(200) };
    const [key, reply] = aReply(`n${randomInt(60)}`, parts, randomInt(2, 4));
    const known = model.findIndex((one) => one.key.name === key.name && one.key.scope === key.scope);
    const what = randomInt(1000);
    if (what < 600) {
      const charged = known === -1 ? owner : (model[known]?.owner as CacheOwner);
      if (known !== -1) model.splice(known, 1);
      const bytesBefore = cache.bytes;
      const evictedBefore = cache.counts.evictions;
      assert.ok(cache.put(key, owner, reply));
      const evicted = cache.counts.evictions - evictedBefore;
      // Other tests prove which owner is evicted; here it must be that owner's first entry.
      const gone = model.filter((one) => cache.find(one.key) === undefined);
      assert.equal(gone.length, evicted);
      for (const one of gone) {
        const older = model.slice(0, model.indexOf(one)).filter((other) => other.owner === one.owner);
        assert.ok(older.every((other) => gone.includes(other)));
      }
      drop((one) => gone.includes(one));
      const others = model.reduce((sum, { bytes }) => sum + bytes, 0);
      assert.ok(cache.bytes > others || bytesBefore === 0);
      model.push({ key, owner: charged, content: contentOf(reply), bytes: cache.bytes - others });
    } else if (what < 900) {
      const entry = cache.find(key);
      assert.equal(entry !== undefined, known !== -1);
      if (entry === undefined) continue;
      cache.touch(entry);
      model.push(...model.splice(known, 1));
    } else if (what < 980) {
      const named = model.filter((one) => one.key.name === key.name).length;
      assert.equal(cache.removeNamed(key.name), named);
      drop((one) => one.key.name === key.name);
    } else if (what < 995) {
      const newOwner = owners[0] as CacheOwner;
      if (owner === newOwner) continue;
      cache.transfer(owner, newOwner, (scope) => scope === HOST_SCOPE);
      drop((one) => one.owner === owner && one.key.scope !== HOST_SCOPE);
      // In the order of their owner, behind the entries of the new owner.
      const inherited = model.filter((one) => one.owner === owner);
      drop((one) => inherited.includes(one));
      model.push(...inherited.map((one) => ({ ...one, owner: newOwner })));
    } else {
      cache.clear();
      drop(() => true);
    }
    assert.equal(cache.size, model.length);
    assert.equal(
      cache.bytes,
      model.reduce((sum, { bytes }) => sum + bytes, 0),
    );
    assert.ok(cache.bytes <= SMALL);
    for (const one of owners) {
      const own = model.filter((entry) => entry.owner === one);
      assert.equal(one.entries, own.length);
      assert.equal(
        one.bytes,
        own.reduce((sum, { bytes }) => sum + bytes, 0),
      );
    }
    const some = model[randomInt(model.length + 1)];
    if (some !== undefined) assert.deepEqual(contentOf(cache.find(some.key)?.readReply()), some.content);
  }
});

interface ReplyParts {
  readonly records?: number;
  readonly dataBytes?: number;
  readonly rcode?: number;
  /** In addition to those of a reply. */
  readonly flags?: number;
  readonly error?: Buffer;
}

function aReply(
  name: string,
  { records = 0, dataBytes = 4, rcode = 0, flags = 0, error }: ReplyParts = {},
  scope = HOST_SCOPE,
): [CacheKey, FreshReply] {
  const all = Array.from({ length: records }, (_, i) =>
    aRecord({ owner: aPointer(12), type: TYPE.A, ttl: 60 + i, data: randomBytes(dataBytes) }),
  );
  const message = aReplyTo(aQuery({ name }), rcode, all);
  message.writeUInt16BE(message.readUInt16BE(2) | flags, 2);
  const reply = readFreshReply(message);
  assert.ok(reply);
  const { hash, ...parts } = aKey(name, scope);
  // Few, so that many share a bucket.
  const key = { ...parts, hash: hash & HASH_BITS };
  return [key, error === undefined ? reply : { ...reply, extendedError: error }];
}

function contentOf(reply: SharedReply | undefined): unknown {
  if (reply === undefined) return undefined;
  const { bytes, start, length, questionEnd, ttlOffsets, answers, authorities, additionals, rcode } = reply;
  return {
    records: bytes.toString("hex", start, start + length),
    ttlOffsets: ttlOffsets.slice(0, answers + authorities + additionals),
    error: reply.extendedError?.toString("hex"),
    flags: [reply.isTruncated, reply.isAuthentic],
    numbers: [questionEnd, answers, authorities, additionals, rcode],
  };
}
