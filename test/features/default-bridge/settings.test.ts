/** The setting of the default bridge: with it, all that knows the settings knows that containers there are served, and have names. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { mergeSettings } from "../../../src/config/merge-settings.ts";
import { DEFAULT_BRIDGE } from "../../../src/features/default-bridge/feature.ts";

test("containers on the default bridge are not served unless that is set", () => {
  const setting = (values: object): string =>
    mergeSettings([{ source: "flag", values, where: (key) => `--${key}` }]).defaultBridge;
  assert.equal(setting({}), "off");
  assert.equal(setting({ "default-bridge": "off" }), "off");
  assert.equal(setting({ "default-bridge": "names" }), "names");
});

test("another word is refused, with those that there are", () => {
  assert.throws(() => DEFAULT_BRIDGE.settings["default-bridge"].kind.read("on"), /use one of off, names/);
});
