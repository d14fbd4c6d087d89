// Test of scripts/ten-minutes.sh: a new user's first ten minutes, from installation to removal, succeed.

import assert from "node:assert/strict";
import { test } from "node:test";

import { run } from "../support/program/command.ts";

test("install, start, list names, break a container, diagnose it, repair it, uninstall", async () => {
  const { code, stdout, stderr } = await run("scripts/ten-minutes.sh", [], { timeoutMs: 300_000 });
  assert.equal(code, 0, stdout + stderr);
  const steps = [...stdout.matchAll(/^(\d+)\. (.*)$/gm)].map(([, number]) => Number(number));
  assert.deepEqual(steps, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  // A user sees the cause by its name, and later that its fix has helped.
  const [, broken = ""] = stdout.split(/^7\. .*$/m);
  assert.match(broken, /why +"db" is container db on network back; web is not on back/);
  const [, repaired = ""] = stdout.split(/^8\. .*$/m);
  assert.match(repaired, /^ +\$ docker network connect back web$/m);
  assert.match(repaired, /^ +web +ok +back,shop /m);
  assert.match(stdout, /No files, rules or processes of dns11 are left\.\n$/);
});
