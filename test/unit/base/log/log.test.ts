// Proves that a text log line stays one line without control characters, whatever a container put into it.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const LOG = fileURLToPath(new URL("../../../../src/base/log/log.js", import.meta.url));

// In a separate process, because the log writes to a descriptor shared with this one.
function written(fields: object, message = "what happened"): string {
  const program = `
    const { createLog } = await import(process.argv[1]);
    createLog("info", "text").info(...JSON.parse(process.argv[2]));
  `;
  const input = JSON.stringify([fields, message]);
  const { stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", program, LOG, input], {
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

test("words are written as they are, everything else in quotes", () => {
  assert.match(
    written({ container: "web", reason: "not there", count: 3 }),
    /container=web reason="not there" count=3\n$/,
  );
});
