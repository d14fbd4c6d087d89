// Proves the limits of the cache: bytes in all, and that a container with many replies evicts its own.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { CacheKey, LookupKey } from "../../../../src/query/cache/entry.ts";
import { type CacheOwner, ReplyCache, newCacheOwner } from "../../../../src/query/cache/reply-cache.ts";
import { readFreshReply } from "../../../../src/query/wire/shared-reply.ts";
import { aQuery, aReplyTo } from "../../../support/scripted/builders.ts";
import { HOST_SCOPE, aKey } from "../../support/key.ts";

const OWN = 3;

test("the cache is bounded in bytes, and evicts the least recently used entry first", () => {
  const cache = new ReplyCache(20_000);
  const owner = newCacheOwner();
  for (let i = 0; i < 1000; i++) put(cache, owner, `n${i}`);
  assert.ok(cache.bytes <= 20_000 && cache.size > 10);
  assert.equal(cache.find(aKey("n0")), undefined);
  assert.notEqual(cache.find(aKey("n999")), undefined);
  const kept = cache.find(aKey(`n${1000 - cache.size}`));
  assert.ok(kept);
  cache.touch(kept);
  put(cache, owner, "one more");
  assert.deepEqual(cache.find(kept.key)?.key, kept.key);
});

test("a container that queries ever new names evicts its own replies", () => {
  const cache = new ReplyCache(20_000);
  const [quiet, noisy] = [newCacheOwner(), newCacheOwner()];
  for (let i = 0; i < 3; i++) put(cache, quiet, `quiet${i}`);
  for (let i = 0; i < 1000; i++) put(cache, noisy, `noisy${i}`);
  for (let i = 0; i < 3; i++) assert.ok(cache.find(aKey(`quiet${i}`)), `quiet${i}`);
  assert.equal(quiet.bytes + noisy.bytes, cache.bytes);
});

test("a late container makes room for itself at the cost of the largest", () => {
  const cache = new ReplyCache(20_000);
  const [noisy, late] = [newCacheOwner(), newCacheOwner()];
  for (let i = 0; i < 1000; i++) put(cache, noisy, `noisy${i}`);
  for (let i = 0; i < 5; i++) put(cache, late, `late${i}`);
  for (let i = 0; i < 5; i++) assert.ok(cache.find(aKey(`late${i}`)), `late${i}`);
});

test("names with the same hash are never confused, however they are looked up", () => {
  const cache = new ReplyCache(20_000);
  put(cache, newCacheOwner(), "one");
  const { hash } = aKey("one");
  for (const find of [(one: CacheKey) => cache.find(one), (one: CacheKey) => cache.lookUp(read(one))]) {
    assert.deepEqual(find(aKey("one"))?.key, aKey("one"));
    for (const other of [aKey("two"), aKey("ones"), { ...aKey("one"), scope: OWN }, { ...aKey("one"), bits: 1 }]) {
      assert.equal(find({ ...other, hash }), undefined);
    }
  }
  cache.put({ ...aKey("two"), hash }, newCacheOwner(), undefined);
  assert.deepEqual([cache.find(aKey("one"))?.hasReply, cache.find({ ...aKey("two"), hash })?.hasReply], [true, false]);
});

test("when a container is detached, its own entries are removed, and shared ones stay", () => {
  const cache = new ReplyCache(20_000);
  const [owner, newOwner] = [newCacheOwner(), newCacheOwner()];
  put(cache, owner, "shared");
  cache.put(aKey("own", OWN), owner, undefined);
  cache.transfer(owner, newOwner, (scope) => scope === HOST_SCOPE);
  assert.equal(cache.find(aKey("own", OWN)), undefined);
  assert.ok(cache.find(aKey("shared"))?.hasReply);
  assert.deepEqual([owner.bytes, owner.entries, newOwner.bytes, newOwner.entries], [0, 0, cache.bytes, 1]);
});

test("a cache larger than the machine's memory is an error with a remedy", () => {
  assert.throws(() => new ReplyCache(2 ** 44), {
    name: "Fault",
    message: "Not enough memory for a cache of 16777216 MiB",
    remedy: "Set a smaller cache.size.",
  });
});

test("after a flush it is empty, and accepts new replies", () => {
  const cache = new ReplyCache(20_000);
  const owner = newCacheOwner();
  put(cache, owner, "one");
  cache.clear();
  assert.deepEqual([cache.bytes, cache.size, owner.bytes], [0, 0, 0]);
  put(cache, owner, "one");
  assert.deepEqual([cache.size, owner.bytes], [1, cache.bytes]);
});

function put(cache: ReplyCache, owner: CacheOwner, name: string): void {
  cache.put(aKey(name), owner, readFreshReply(aReplyTo(aQuery({ name }))));
}

/** A key as in a question that was just parsed: in a buffer that held another name before. */
function read({ name, ...found }: CacheKey): LookupKey {
  const bytes = Buffer.alloc(256, "x");
  return { ...found, name: bytes, length: bytes.write(name, "latin1") };
}
