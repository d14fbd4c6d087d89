// Proves when glibc passes by what dns11 captures on the host.

import assert from "node:assert/strict";
import { test } from "node:test";

import { asksResolved } from "../../../../src/doctor/checks/host-names-check.ts";

test("glibc asks systemd-resolved first only if resolve stands before dns", () => {
  assert.equal(asksResolved("hosts: files dns\n"), false);
  assert.equal(asksResolved("hosts: files mymachines resolve [!UNAVAIL=return] dns\n"), true);
  assert.equal(asksResolved("passwd: files\nhosts:\tfiles resolve\n"), true);
  assert.equal(asksResolved("hosts: files dns resolve\n"), false);
  assert.equal(asksResolved("# hosts: resolve\n"), false);
  assert.equal(asksResolved(""), false);
});
