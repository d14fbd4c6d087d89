// Proves which servers of a container's resolv.conf are captured. The container writes the file.

import assert from "node:assert/strict";
import { test } from "node:test";

import { capturedServers } from "../../../../src/container/watch/host-upstreams.ts";

test("the first three servers, in their order, each once", () => {
  assert.deepEqual(capturedServers(["10.0.0.2", "10.0.0.1", "10.0.0.2", "fd00::1", "10.0.0.3"]), [
    "10.0.0.2",
    "10.0.0.1",
    "fd00::1",
  ]);
});

test("one address in several forms is one server, and an IPv4-mapped one is IPv4", () => {
  assert.deepEqual(capturedServers(["fd00:0::1", "FD00::1", "::ffff:10.0.0.1", "10.0.0.1"]), ["fd00::1", "10.0.0.1"]);
});

test("our own address, the unspecified one, link-local ones with a zone, and what is none are left out", () => {
  for (const text of ["127.0.0.11", "::ffff:127.0.0.11", "0.0.0.0", "::", "0::0", "fe80::1%eth0", "", "x", "1.2.3"])
    assert.deepEqual(capturedServers([text]), [], text);
});

test("a server on the container's own loopback is captured: it is queried past our rules", () => {
  assert.deepEqual(capturedServers(["127.0.0.1", "127.0.0.53"]), ["127.0.0.1", "127.0.0.53"]);
});
