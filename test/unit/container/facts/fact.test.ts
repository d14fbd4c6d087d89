// Proves which networks have Docker's embedded DNS.

import assert from "node:assert/strict";
import { test } from "node:test";

import { isUserDefined } from "../../../../src/container/facts/fact.ts";

test("the predefined networks are not user-defined, and all others are", () => {
  for (const name of ["bridge", "host", "none", "default"]) assert.equal(isUserDefined(name), false, name);
  for (const name of ["one", "Bridge", "docker_gwbridge", "bridge2", ""]) assert.equal(isUserDefined(name), true, name);
});
