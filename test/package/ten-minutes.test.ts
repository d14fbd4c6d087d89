// Proves scripts/ten-minutes.sh: a newcomer's first ten minutes, from the package to its removal, end as they say.

import assert from "node:assert/strict";
import { test } from "node:test";

import { run } from "../support/program/command.ts";

test("install, start, see names, break a container, find out why, mend it, uninstall", async () => {
  const { code, stdout, stderr } = await run("scripts/ten-minutes.sh", [], { timeoutMs: 300_000 });
  assert.equal(code, 0, stdout + stderr);
  const steps = [...stdout.matchAll(/^(\d+)\. (.*)$/gm)].map(([, number]) => Number(number));
  assert.deepEqual(steps, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  // What somebody sees who looks at it: the culprit by its name, and that it is gone.
  const [, broken = ""] = stdout.split(/^7\. .*$/m);
  assert.match(broken, /^ +web +failed .*table ip "firewall"/m);
  const [, mended = ""] = stdout.split(/^8\. .*$/m);
  assert.match(mended, /^ +web +attached /m);
  assert.match(stdout, /No files, rules or processes of dns11 are left\.\n$/);
});
