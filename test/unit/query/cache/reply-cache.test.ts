// Proves the bounds of what is kept: bytes in all, and that one container's many replies throw out its own.

import assert from "node:assert/strict";
import { test } from "node:test";

import { hashOf } from "../../../../src/model/label-table.ts";
import { type Key, type ReadKey, keyHash } from "../../../../src/query/cache/key.ts";
import { type Owner, ReplyCache, newOwner } from "../../../../src/query/cache/reply-cache.ts";
import { freshReply } from "../../../../src/query/wire/shared-reply.ts";
import { aName, aQuery, aReplyTo } from "../../../support/builders.ts";

const HOST = 2;
const OWN = 3;

test("it is bounded in bytes, and what was not asked for longest goes first", () => {
  const cache = new ReplyCache(20_000);
  const owner = newOwner();
  for (let i = 0; i < 1000; i++) put(cache, owner, `n${i}`);
  assert.ok(cache.bytes <= 20_000 && cache.size > 10);
  assert.equal(cache.find(key("n0")), undefined);
  assert.notEqual(cache.find(key("n999")), undefined);
  const kept = cache.find(key(`n${1000 - cache.size}`));
  assert.ok(kept);
  cache.touch(kept);
  put(cache, owner, "one more");
  assert.deepEqual(cache.find(kept.key)?.key, kept.key);
});

test("a container that asks for ever new names throws out its own replies", () => {
  const cache = new ReplyCache(20_000);
  const [quiet, noisy] = [newOwner(), newOwner()];
  for (let i = 0; i < 3; i++) put(cache, quiet, `quiet${i}`);
  for (let i = 0; i < 1000; i++) put(cache, noisy, `noisy${i}`);
  for (let i = 0; i < 3; i++) assert.ok(cache.find(key(`quiet${i}`)), `quiet${i}`);
  assert.equal(quiet.bytes + noisy.bytes, cache.bytes);
});

test("a container that comes late makes room for itself at the cost of who has most", () => {
  const cache = new ReplyCache(20_000);
  const [noisy, late] = [newOwner(), newOwner()];
  for (let i = 0; i < 1000; i++) put(cache, noisy, `noisy${i}`);
  for (let i = 0; i < 5; i++) put(cache, late, `late${i}`);
  for (let i = 0; i < 5; i++) assert.ok(cache.find(key(`late${i}`)), `late${i}`);
});

test("names with the same hash are never mistaken for each other, however they are looked for", () => {
  const cache = new ReplyCache(20_000);
  put(cache, newOwner(), "one");
  const { hash } = key("one");
  for (const find of [(one: Key) => cache.find(one), (one: Key) => cache.findRead(read(one))]) {
    assert.deepEqual(find(key("one"))?.key, key("one"));
    for (const other of [key("two"), key("ones"), { ...key("one"), scope: OWN }, { ...key("one"), bits: 1 }]) {
      assert.equal(find({ ...other, hash }), undefined);
    }
  }
  cache.put({ ...key("two"), hash }, newOwner(), undefined);
  assert.deepEqual([cache.find(key("one"))?.hasReply, cache.find({ ...key("two"), hash })?.hasReply], [true, false]);
});

test("when a container goes, its own replies go, and what others may want stays", () => {
  const cache = new ReplyCache(20_000);
  const [owner, heir] = [newOwner(), newOwner()];
  put(cache, owner, "shared");
  cache.put(key("own", OWN), owner, undefined);
  cache.inherit(owner, heir, (scope) => scope === HOST);
  assert.equal(cache.find(key("own", OWN)), undefined);
  assert.ok(cache.find(key("shared"))?.hasReply);
  assert.deepEqual([owner.bytes, owner.entries, heir.bytes, heir.entries], [0, 0, cache.bytes, 1]);
});

test("more than a machine has is refused with what to do", () => {
  assert.throws(() => new ReplyCache(2 ** 44), {
    name: "Fault",
    message: "The machine has no room for a cache of 16777216 MiB",
    remedy: "Choose a smaller cache.size in the settings.",
  });
});

test("cleared, it is empty, and takes new replies", () => {
  const cache = new ReplyCache(20_000);
  const owner = newOwner();
  put(cache, owner, "one");
  cache.clear();
  assert.deepEqual([cache.bytes, cache.size, owner.bytes], [0, 0, 0]);
  put(cache, owner, "one");
  assert.deepEqual([cache.size, owner.bytes], [1, cache.bytes]);
});

function put(cache: ReplyCache, owner: Owner, name: string): void {
  cache.put(key(name), owner, freshReply(aReplyTo(aQuery({ name }))));
}

function key(text: string, scope = HOST): Key {
  const labels = aName(text).subarray(0, -1);
  const type = 1;
  return { hash: keyHash(hashOf(labels), type, 0, scope), name: labels.toString("latin1"), type, bits: 0, scope };
}

/** As a question has it that was just read: in memory where another one's name was before. */
function read({ name, ...found }: Key): ReadKey {
  const bytes = Buffer.alloc(256, "x");
  return { ...found, name: bytes, length: bytes.write(name, "latin1") };
}
