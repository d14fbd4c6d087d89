// Proves the setting of nested containers: which values are accepted.

import assert from "node:assert/strict";
import { test } from "node:test";

import { NESTED_FILTER } from "../../../src/config/kinds.ts";
import { mergeSettings } from "../../../src/config/merge-settings.ts";

test("nested containers are chosen by name or label; nothing says by itself which they are", () => {
  assert.deepEqual(
    ["name=dind*", "label=ci"].map((text) => NESTED_FILTER.read(text)),
    [
      { kind: "name", pattern: "dind*" },
      { kind: "label", key: "ci", value: undefined },
    ],
  );
  assert.deepEqual(mergeSettings([]).nested, []);
  for (const text of ["auto", "dind", "name=", 3])
    assert.throws(
      () => NESTED_FILTER.read(text),
      /use name=PATTERN, label=KEY or label=KEY=VALUE|Error|text/,
      String(text),
    );
});
