// Proves that an error behind a guard is reported with the current client and costs only that piece of work.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { afterEach, test } from "node:test";

import { guard } from "../../../../src/base/lib/guard.ts";

const GUARD = new URL("../../../../src/base/lib/guard.js", import.meta.url).href;
const INTERNAL_ERRORS = new URL("../../../../src/run/internal-errors.js", import.meta.url).href;

afterEach(() => guard.uninstall());

test("an internal error is reported with its entry point and client, and the next piece of work runs", () => {
  const reported: unknown[] = [];
  guard.install((error, entryPoint, client) => reported.push([(error as Error).message, entryPoint, client]));
  assert.equal(
    guard.run("udp", 7, () => assert.fail("a bug")),
    false,
  );
  assert.equal(
    guard.run("tcp", 8, () => undefined),
    true,
  );
  assert.deepEqual(reported, [["a bug", "udp", 7]]);
});

test("the current client is that of the innermost work, and 0 afterwards", () => {
  const word = new Uint32Array(1);
  const seen: (number | undefined)[] = [];
  guard.install(() => seen.push(word[0]), word);
  guard.run("udp", 1, () => {
    guard.run("upstream", 2, () => seen.push(word[0]));
    seen.push(word[0]);
    guard.run("upstream", 3, () => assert.fail());
    seen.push(word[0]);
  });
  assert.deepEqual([...seen, word[0]], [2, 1, 3, 1, 0]);
});

test("deferred work is guarded too", async () => {
  const reported: unknown[] = [];
  guard.install((_, entryPoint, client) => reported.push([entryPoint, client]));
  guard.defer(9, () => assert.fail());
  await Promise.resolve();
  assert.deepEqual(reported, [["timer", 9]]);
});

test("without a handler an internal error is thrown", () => {
  assert.throws(() => guard.run("udp", 1, () => assert.fail("a bug")), /a bug/);
});

test("an uncaught error does not end a serving process, and is logged once with its stack", () => {
  const program = `
    import { guard } from "${GUARD}";
    import { InternalErrors } from "${INTERNAL_ERRORS}";
    const lines = [];
    const log = { error: (fields, text) => lines.push([text, fields.entryPoint, fields.err.message]) };
    const limitedLog = { log: (level, subject, fields, text) => lines.push([text, fields.reason]) };
    let count = 0;
    const onInternalError = () => void count++;
    new InternalErrors({ log, limitedLog, containerOf: () => undefined, onInternalError }).begin(new Uint32Array(1));
    const fail = () => { throw new TypeError("a bug"); };
    for (let i = 0; i < 3; i++) setTimeout(fail);
    Promise.reject(new RangeError("unhandled"));
    guard.run("control", 0, () => { throw new Error("behind a guard"); });
    setTimeout(() => console.log(JSON.stringify([count, lines])), 50);`;
  const { status, stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "--eval", program], {
    encoding: "utf8",
  });
  assert.deepEqual([status, stderr], [0, ""]);
  const [count, lines] = JSON.parse(stdout) as [number, string[][]];
  const first = "internal error, one task was aborted; please report it";
  assert.deepEqual(
    [count, lines],
    [
      5,
      [
        [first, "control", "behind a guard"],
        [first, "elsewhere", "unhandled"],
        [first, "elsewhere", "a bug"],
        ["internal error repeated", "a bug"],
        ["internal error repeated", "a bug"],
      ],
    ],
  );
});
