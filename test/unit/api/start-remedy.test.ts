// Proves that whoever has installed the package is told to start its unit, and not a second dns11 beside it.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { startRemedy } from "../../../src/api/state-paths.ts";
import { makeFolder } from "../../support/rig/folder.ts";

test("with a unit and without", () => {
  const folder = makeFolder("units");
  assert.equal(startRemedy("dns11 run", [folder]), "Start it with: dns11 run");
  writeFileSync(join(folder, "dns11.service"), "");
  assert.match(startRemedy("dns11 run", ["/missing", folder]), /^Start it with: sudo systemctl start dns11\. /);
});
