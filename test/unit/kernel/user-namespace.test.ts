// Proves how the map of a user namespace is read: whose rights root has in it.

import assert from "node:assert/strict";
import { test } from "node:test";

import { rootIn, userNamespaceOf, userOf } from "../../../src/kernel/process.ts";

test("in the machine's own user namespace, root is root; in a rootless engine's, its user", () => {
  assert.equal(rootIn("         0          0 4294967295\n"), undefined);
  assert.equal(rootIn("         0       1000          1\n         1     100000      65536\n"), 1000);
  assert.equal(rootIn("         5       1000          1\n"), undefined);
  assert.equal(rootIn(""), undefined);
});

test("a process that has exited has neither a user nor a namespace", () => {
  assert.equal(userOf(0x3fffff), undefined);
  assert.equal(userNamespaceOf(0x3fffff), undefined);
  assert.equal(userOf(process.pid), process.getuid?.());
  assert.match(userNamespaceOf("self") ?? "", /^user:\[\d+\]$/);
});
