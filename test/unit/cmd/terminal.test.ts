// Proves when output has colours and how wide it is, and that times are local and ages short.

import assert from "node:assert/strict";
import { test } from "node:test";

import { displayOf, ago, localTime, preciseTime } from "../../../cmd/text/terminal.ts";

const TERMINAL = { isTTY: true, columns: 100 };

function isColoured(stream: object, env: NodeJS.ProcessEnv): boolean {
  return displayOf(stream, env).paint("x", "red") !== "x";
}

test("colours are for terminals; NO_COLOR, FORCE_COLOR and TERM change that", () => {
  assert.equal(isColoured(TERMINAL, {}), true);
  assert.equal(isColoured({}, {}), false);
  assert.equal(isColoured(TERMINAL, { NO_COLOR: "1" }), false);
  assert.equal(isColoured(TERMINAL, { NO_COLOR: "" }), true);
  assert.equal(isColoured(TERMINAL, { TERM: "dumb" }), false);
  assert.equal(isColoured({}, { FORCE_COLOR: "1" }), true);
  assert.equal(isColoured({}, { FORCE_COLOR: "1", NO_COLOR: "1" }), false);
  assert.equal(isColoured(TERMINAL, { FORCE_COLOR: "0" }), false);
});

test("the width is that of the terminal, or COLUMNS; without both there is no limit", () => {
  assert.equal(displayOf(TERMINAL, {}).width, 100);
  assert.equal(displayOf(TERMINAL, { COLUMNS: "132" }).width, 132);
  assert.equal(displayOf({}, { COLUMNS: "80" }).width, 80);
  assert.equal(displayOf({}, {}).width, Number.POSITIVE_INFINITY);
  assert.equal(displayOf({}, { COLUMNS: "wide" }).width, Number.POSITIVE_INFINITY);
  assert.equal(displayOf({ isTTY: true, columns: 3 }, {}).width, 20);
});

test("times are local, with the date if they are not within a day", () => {
  const iso = new Date(2026, 0, 2, 3, 4, 5, 6).toISOString();
  assert.equal(localTime(iso, Date.parse(iso) + 1_000), "03:04:05");
  assert.equal(localTime(iso, Date.parse(iso) + 86_400_000), "2026-01-02 03:04:05");
  assert.equal(preciseTime(iso), "03:04:05.006");
});

test("an age is that of the instant, and never negative", () => {
  assert.equal(ago("2026-01-01T00:00:00Z", Date.parse("2026-01-01T00:00:08.900Z")), "8s ago");
  assert.equal(ago("2026-01-01T00:00:09Z", Date.parse("2026-01-01T00:00:08Z")), "0s ago");
});
