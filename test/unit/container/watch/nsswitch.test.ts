// Proves in which order programs read /etc/hosts and query, by nsswitch.conf and the C library, whatever a container writes there.

import assert from "node:assert/strict";
import { test } from "node:test";

import { lookupOrder } from "../../../../src/container/watch/nsswitch.ts";

const GLIBC = { kind: "glibc", version: "2.36" } as const;

function order(line: string | undefined, libc: Parameters<typeof lookupOrder>[1] = GLIBC): string {
  const { file, queries, origin } = lookupOrder(
    line === undefined ? undefined : `passwd: files\nhosts: ${line}\n`,
    libc,
  );
  assert.equal(origin === "", file === "first" && queries, "only what is unusual has an origin");
  return `${file}, ${queries ? "queries" : "no queries"}`;
}

test("the line of hosts, with its actions", () => {
  assert.equal(order("files dns"), "first, queries");
  assert.equal(order("files mdns4_minimal [NOTFOUND=return] dns # usual"), "first, queries");
  assert.equal(order("files myhostname resolve [!UNAVAIL=return] dns"), "first, queries");
  assert.equal(order("dns files"), "after failure, queries");
  assert.equal(order("dns [NOTFOUND=return] files"), "never, queries");
  assert.equal(order("dns [!UNAVAIL=return] files"), "never, queries");
  assert.equal(order("files"), "first, no queries");
  assert.equal(order("files [NOTFOUND=return] dns"), "first, no queries");
  assert.equal(order("dns"), "never, queries");
  assert.equal(order("db"), "never, no queries");
});

test("without a file or a line the C library decides, and musl reads none", () => {
  assert.equal(order(undefined), "first, queries");
  assert.equal(order(undefined, undefined), "first, queries");
  assert.equal(order(undefined, { kind: "glibc", version: "2.31" }), "never, queries");
  assert.equal(order("dns", { kind: "musl", version: "1.2.5" }), "first, queries");
  assert.equal(lookupOrder("passwd: files\n", { kind: "glibc", version: "2.31" }).file, "never");
});

test("a long line, or binary data, is read, and little of it is told", () => {
  const long = lookupOrder(`hosts: ${"x ".repeat(30_000)}`, GLIBC);
  assert.deepEqual([long.queries, long.origin.length < 150], [false, true]);
  assert.equal(lookupOrder(`hosts: dns ${"[".repeat(60_000)}`, GLIBC).queries, true);
  assert.equal(lookupOrder(`\0\u001B[2J${"[".repeat(60_000)}`, GLIBC).queries, true);
});
