// Proves which endings of containers somebody has asked for: what `docker stop`, `kill`, `rm -f` and `compose down` do, and nothing else.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Endings } from "../../../../src/container/watch/endings.ts";

type Step = readonly [action: string, attributes?: Readonly<Record<string, string>>];

const kill = (signal: number): Step => ["kill", { signal: String(signal) }];
const die = (exitCode: number): Step => ["die", { exitCode: String(exitCode) }];

function endingOf(steps: readonly Step[], inspected?: number): [number | undefined, boolean] {
  const endings = new Endings();
  for (const [Action, Attributes = {}] of steps) endings.note({ Action, Actor: { ID: "c", Attributes } });
  const { exitCode, isAsked } = endings.take("c", inspected);
  assert.deepEqual(endings.take("c", undefined), { exitCode: undefined, isAsked: false }, "it is forgotten");
  return [exitCode, isAsked];
}

for (const [what, steps, wanted] of [
  ["it is stopped", [kill(15), die(143)], [143, true]],
  ["it is stopped, and ends with a code of its own", [kill(15), die(1)], [1, true]],
  ["it is stopped, and is killed because it does not end", [kill(15), kill(9), die(137)], [137, true]],
  ["it has a stop signal of its own", [kill(37), die(165)], [165, true]],
  ["it crashes", [die(1)], [1, false]],
  ["it crashes after it was told to read its settings again", [kill(1), die(1)], [1, false]],
  ["the kernel kills it, because it needs too much memory", [["oom"], die(137)], [137, false]],
  ["it was started again, and crashes", [kill(15), die(143), ["start"], die(1)], [1, false]],
] as const) {
  test(`${what}: ${wanted[1] ? "asked for" : "not asked for"}`, () => assert.deepEqual(endingOf(steps), wanted));
}

test("without an event, the exit code is that of the inspect", () => {
  assert.deepEqual(endingOf([], 3), [3, false]);
  assert.deepEqual(endingOf([], Number.NaN), [undefined, false]);
});
