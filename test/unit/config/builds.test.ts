// Proves the settings of builds and of nested containers: which values are accepted, and that builds need the listener.

import assert from "node:assert/strict";
import { test } from "node:test";

import { NESTED_FILTER, NETWORK_NAME } from "../../../src/config/kinds.ts";
import { mergeSettings } from "../../../src/config/merge-settings.ts";
import type { LayerValues } from "../../../src/config/settings-layer.ts";

function settingsOf(values: LayerValues): ReturnType<typeof mergeSettings> {
  return mergeSettings([{ source: "file", values, where: (key) => key }]);
}

test("builds name a network that has names, as Docker writes it", () => {
  for (const name of ["shop", "shop_default", "a.b-c", "bridge"]) assert.equal(NETWORK_NAME.read(name), name);
  for (const name of ["", "host", "none", "default", "-a", "a b", "a/b", "a".repeat(256), 7, null])
    assert.throws(() => NETWORK_NAME.read(name), Error, String(name));
  assert.throws(() => NETWORK_NAME.read("host"), /use the name of a Docker network, such as shop_default/);
});

test("builds are off by default, and need the listener", () => {
  assert.equal(settingsOf({}).builds, undefined);
  assert.equal(settingsOf({ listener: true, builds: "shop" }).builds, "shop");
  assert.throws(() => settingsOf({ builds: "shop" }), /builds: has no effect without the listener.*set listener: true/);
});

test("nested containers are chosen by name or label; nothing says by itself which they are", () => {
  assert.deepEqual(
    ["name=dind*", "label=ci"].map((text) => NESTED_FILTER.read(text)),
    [
      { kind: "name", pattern: "dind*" },
      { kind: "label", key: "ci", value: undefined },
    ],
  );
  assert.deepEqual(settingsOf({}).nested, []);
  for (const text of ["auto", "dind", "name=", 3])
    assert.throws(
      () => NESTED_FILTER.read(text),
      /use name=PATTERN, label=KEY or label=KEY=VALUE|Error|text/,
      String(text),
    );
});
