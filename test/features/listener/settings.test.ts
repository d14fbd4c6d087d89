// Proves the settings: which values of builds are accepted, and that builds need the listener.

import assert from "node:assert/strict";
import { test } from "node:test";

import { NETWORK_NAME } from "../../../src/config/kinds.ts";
import { mergeSettings } from "../../../src/config/merge-settings.ts";
import type { LayerValues } from "../../../src/config/layers.ts";
import { featureValues } from "../../../src/config/setting.ts";
import { LISTENER } from "../../../src/features/listener/feature.ts";

function buildsOf(values: LayerValues): string | undefined {
  const settings = mergeSettings([{ source: "file", values, where: (key) => key }]);
  return featureValues(LISTENER.settings, settings).builds;
}

test("builds name a network that has names, as Docker writes it", () => {
  for (const name of ["shop", "shop_default", "a.b-c", "bridge"]) assert.equal(NETWORK_NAME.read(name), name);
  for (const name of ["", "host", "none", "default", "-a", "a b", "a/b", "a".repeat(256), 7, null])
    assert.throws(() => NETWORK_NAME.read(name), Error, String(name));
  assert.throws(() => NETWORK_NAME.read("host"), /use the name of a Docker network, such as shop_default/);
});

test("builds are off by default, and need the listener", () => {
  assert.equal(buildsOf({}), undefined);
  assert.equal(buildsOf({ listener: true, builds: "shop" }), "shop");
  assert.throws(() => buildsOf({ builds: "shop" }), /builds: has no effect without the listener.*set listener: true/);
});
