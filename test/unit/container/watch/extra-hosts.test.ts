// Proves that --add-host is read as the engine reports it, and host-gateway from the hosts file, which a container writes.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { EngineFile } from "../../../../src/container/namespace/engine-host.ts";
import { extraHostsOf } from "../../../../src/container/watch/container-files.ts";

const HOSTS = `127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost
192.0.2.7\tapi
172.17.0.1\thost.docker.internal
fd17::1\thost.docker.internal # by the engine
172.20.0.2\t0123456789ab
`;

function read(texts: readonly string[], text = HOSTS): string[] | "busy" {
  const entries = extraHostsOf(texts, () => ({ kind: "read", text }));
  return entries === "busy" ? entries : entries.map(({ name, address }) => `${name} ${address}`);
}

function unread(kind: Exclude<EngineFile["kind"], "read">): ReturnType<typeof extraHostsOf> {
  return extraHostsOf(["api:192.0.2.7", "gw:host-gateway"], () => ({ kind }));
}

test("an entry is split at its first colon or equals sign; an IPv6 address may be in brackets", () => {
  const texts = ["a:192.0.2.1", "b=192.0.2.2", "c:fd00::1", "d=[fd00::2]"];
  assert.deepEqual(read(texts), ["a 192.0.2.1", "b 192.0.2.2", "c fd00::1", "d fd00::2"]);
});

test("what is no entry, or has no address, is left out", () => {
  assert.deepEqual(read(["", "a", "a:", ":192.0.2.1", "a:b", "a:192.0.2.1 b"]), []);
});

test("the hosts file is not read without host-gateway", () => {
  extraHostsOf(["api:192.0.2.7"], () => assert.fail("read"));
});

test("host-gateway has the addresses of its name in the hosts file, one of each family", () => {
  assert.deepEqual(read(["host.docker.internal:host-gateway", "api:192.0.2.7"]), [
    "host.docker.internal 172.17.0.1",
    "host.docker.internal fd17::1",
    "api 192.0.2.7",
  ]);
});

test("an address that another entry gave the name is not that of host-gateway", () => {
  const text = "192.0.2.7 api\n172.17.0.1 api\n";
  assert.deepEqual(read(["api:192.0.2.7", "api:host-gateway"], text), ["api 192.0.2.7", "api 172.17.0.1"]);
});

test("what a container adds to its hosts file is no name, and at most two addresses of a name with host-gateway", () => {
  const forged = Array.from({ length: 5_000 }, (_, i) => `10.0.${i >> 8}.${i & 255} gw evil.example\n`).join("");
  assert.deepEqual(read(["gw:host-gateway"], forged), ["gw 10.0.0.0"]);
  // Read in one pass: what is tried at each character would take seconds.
  assert.deepEqual(read(["gw:host-gateway"], `${"#".repeat(64_000)}\r1\n10.0.0.1 gw#${"#".repeat(1_000)}\n`), [
    "gw 10.0.0.1",
  ]);
  for (const text of ["\0\0gw\n\xff\xfe", "gw gw gw", "#gw", "1.2.3.4", "x".repeat(65_536)])
    assert.deepEqual(read(["gw:host-gateway"], text), [], text.slice(0, 10));
});

test("a file that is not there leaves the other entries; one that cannot be read now is read later", () => {
  assert.deepEqual(unread("absent"), [{ name: "api", address: "192.0.2.7" }]);
  assert.equal(unread("busy"), "busy");
});
