// Proves when the programs of a host ask systemd-resolved.

import assert from "node:assert/strict";
import { test } from "node:test";

import { asksResolved, resolvedUse } from "../../../src/features/host-names/report.ts";

test("glibc asks systemd-resolved first only if resolve stands before dns", () => {
  assert.equal(asksResolved("hosts: files dns\n"), false);
  assert.equal(asksResolved("hosts: files mymachines resolve [!UNAVAIL=return] dns\n"), true);
  assert.equal(asksResolved("passwd: files\nhosts:\tfiles resolve\n"), true);
  assert.equal(asksResolved("hosts: files dns resolve\n"), false);
  assert.equal(asksResolved("# hosts: resolve\n"), false);
  assert.equal(asksResolved(""), false);
});

test("programs ask systemd-resolved by its stub or by nss-resolve, and otherwise not", () => {
  assert.equal(resolvedUse("hosts: files dns\n", ["127.0.0.53"]), "its stub is in /etc/resolv.conf");
  assert.equal(resolvedUse("hosts: files resolve dns\n", ["10.0.0.1"]), "nss-resolve is in /etc/nsswitch.conf");
  assert.equal(resolvedUse("hosts: files dns\n", ["127.0.0.53", "10.0.0.1"]), undefined);
  assert.equal(resolvedUse("hosts: files dns\n", []), undefined);
});
