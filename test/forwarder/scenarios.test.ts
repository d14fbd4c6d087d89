// A forwarder's behaviour as tests of others describe it, met from outside: a client asks in a container, servers say what a
// scenario has them say, and a clock that dns11 alone sees is moved. docs/internals/scenarios.md is the score.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";

import { SCENARIOS } from "./list.ts";
import { DOCUMENT, scoreboard } from "./scoreboard.ts";
import { Stage } from "./scene.ts";

const stage = new Stage(SCENARIOS);
before(async () => await stage.start());
after(async () => await stage[Symbol.asyncDispose]());

for (const [at, scenario] of SCENARIOS.entries())
  test(`${scenario.from}: ${scenario.title}`, async () => await stage.play(scenario, at));

test("the page of scenarios has each of them", () => {
  assert.equal(readFileSync(DOCUMENT, "utf8"), scoreboard(), "write it: node dist/test/forwarder/scoreboard-main.js");
});
