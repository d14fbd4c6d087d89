// Proves that a log line, as text or JSON, stays one line without control characters, whatever a container put into it.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import type { LogFormat } from "../../../../src/base/log/choices.ts";

const LOG = fileURLToPath(new URL("../../../../src/base/log/log.js", import.meta.url));

// In a separate process, because the log writes to a descriptor shared with this one.
function written(fields: object, message = "what happened", format: LogFormat = "text"): string {
  const program = `
    const { createLog } = await import(process.argv[1]);
    createLog("info", process.argv[3]).info(...JSON.parse(process.argv[2]));
  `;
  const input = JSON.stringify([fields, message]);
  const { stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", program, LOG, input, format], {
    encoding: "utf8",
  });
  return stderr;
}

test("escape sequences, line breaks and direction marks are escaped", () => {
  const nasty = "a\u001b[2J\u009b31m\nb\u202ec\u007f";
  const line = written({ reason: nasty, culprits: [nasty], [nasty]: 1 });
  assert.match(line, /^[\x20-\x7e]+\n$/);
  const turning = "\u061c\u200e\u200f\u2028\u2029\u202a\u202e\u2066\u2067\u2068\u2069";
  assert.match(written({ reason: turning }, `${nasty}${turning}`), /^[\x20-\x7e]+\n$/);
  assert.match(line, /what happened reason="a\\u001b\[2J\\u009b31m\\nb\\u202ec\\u007f" culprits=\["a\\u001b/);
});

test("JSON is the same value in printable characters", () => {
  const nasty = "a\u001b[2J\u009b31m\nb\u202ec\u007f\u2028\u200e";
  const line = written({ reason: nasty, culprits: [nasty], [nasty]: 1 }, nasty, "json");
  assert.match(line, /^[\x20-\x7e]+\n$/);
  const { level: _, time: __, ...fields } = JSON.parse(line) as Record<string, unknown>;
  assert.deepEqual(fields, { reason: nasty, culprits: [nasty], [nasty]: 1, msg: nasty });
});

test("words are written as they are, everything else in quotes", () => {
  assert.match(
    written({ container: "web", reason: "not there", count: 3 }),
    /container=web reason="not there" count=3\n$/,
  );
});
