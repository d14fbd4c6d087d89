// What the doctor says of the engine itself.

import assert from "node:assert/strict";
import { test } from "node:test";

import { engineFinding } from "../../../src/doctor/machine-check.ts";

for (const [version, state] of [
  ["20.10.24+dfsg1", "ok"],
  ["28.5.2+dfsg4", "ok"],
  ["29.1.0", "warning"],
  ["29.1.1", "ok"],
  ["29.10.0", "ok"],
  ["19.3.0", "problem"],
] as const) {
  test(`Docker ${version} is ${state}`, () => {
    const found = engineFinding({ version, majorVersion: Number.parseInt(version, 10), name: "host" });
    assert.equal(found.state, state, found.detail);
    if (state !== "ok") assert.match(found.remedy ?? "", /^Use Docker (?:29\.1\.1|20\.10) or later\.$/);
  });
}
