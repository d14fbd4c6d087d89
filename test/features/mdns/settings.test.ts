/** The setting of names in local: what it may be, and what it has no effect with. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { BadSettings } from "../../../src/config/bad-settings.ts";
import { mergeSettings } from "../../../src/config/merge-settings.ts";
import { MDNS, meansOf } from "../../../src/features/mdns/feature.ts";

test("names in local are not resolved unless that is set, and not in strict mode", () => {
  assert.equal(meansOf(mergeSettings([])), "off");
  const merge = (values: object): ReturnType<typeof mergeSettings> =>
    mergeSettings([{ source: "flag", values, where: (key) => `--${key}` }]);
  assert.equal(meansOf(merge({ mdns: "auto" })), "auto");
  assert.throws(
    () => merge({ mdns: "auto", strict: true }),
    (error) =>
      error instanceof BadSettings && error.lines.some((line) => line.startsWith("--mdns: has no effect with strict")),
  );
});

test("another word is refused, with those that there are", () => {
  assert.throws(() => MDNS.settings.mdns.kind.read("on"), /use one of off, auto, avahi, resolved/);
});
