// The units set what Node has to know before our first line runs, so that dns11 need not start twice.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { POOL_THREADS, POOL_VARIABLE } from "../../../src/kernel/in-pool.ts";
import { V8_THREADS } from "../../../src/run/restart.ts";

for (const unit of ["dns11.service", "user/dns11.service"]) {
  test(`${unit} sets the variables that a run needs`, () => {
    const lines = readFileSync(new URL(`../../../../scripts/systemd/${unit}`, import.meta.url), "utf8").split("\n");
    assert.ok(lines.includes(`Environment=${POOL_VARIABLE}=${POOL_THREADS}`));
    assert.ok(lines.includes(`Environment=NODE_OPTIONS=${V8_THREADS}`));
  });
}
