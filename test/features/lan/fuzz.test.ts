// Fuzz of the setting listen: entries from fragments that mean something and bytes that do not. What is read lets nobody ask but
// blocks that are small enough, at addresses of one machine; all else is an error with a place.

import assert from "node:assert/strict";
import { test } from "node:test";

import { addressBytes } from "../../../src/base/model/address.ts";
import { BadSettings } from "../../../src/config/bad-settings.ts";
import { readSettings } from "../../../src/config/file/settings-file.ts";
import { isLinkLocal, prefixMinOf } from "../../../src/features/lan/file-schema.ts";
import { Random } from "../../fuzz/random.ts";

const SEED = 20_261_126;
const INPUTS = 1_000;
const NAMES = ["lan", "a.b", "-", "é", "x".repeat(70), "constructor", "__proto__", ""];
const VALUES = [
  ..."192.168.1.10 fd00::1 ::ffff:10.0.0.1 0.0.0.0 :: 224.0.0.1 fe80::1%eth0 fe80::1 fe80::/10 169.254.53.53 192.168.1.0/24 10.0.0.0/8".split(
    " ",
  ),
  ..."0.0.0.0/0 ::/0 ::ffff:0.0.0.0/96 ::ffff:10.0.0.0/104 128.0.0.0/1 10.0.0.1/8 fd00::/8 fc00::/7 2000::/3 2000::/7 8.0.0.0/8 1.2.3.4/33".split(
    " ",
  ),
  ..."published network=n network= host true false 1 null [] {}".split(" "),
];

/** What an entry may well have. */
const USUAL: Readonly<Record<string, readonly string[]>> = {
  address: ["192.168.1.10", "fd00::1"],
  allow: ["192.168.1.0/24", "10.0.0.0/8", "fd00::/8"],
  view: ["published", "network=n"],
  forward: ["true", "false"],
};

function value(random: Random, key: string): string {
  const one = (): string => {
    if (random.once(20)) return JSON.stringify(random.bytes(random.below(6)).toString("latin1"));
    return quoted(random.pick(random.once(4) ? VALUES : (USUAL[key] ?? VALUES)));
  };
  const isList = key === "allow" ? !random.once(6) : random.once(5);
  return isList ? `[${Array.from({ length: random.below(4) }, one).join(", ")}]` : one();
}

function quoted(text: string): string {
  return /^[[{tfn1]/.test(text) && !text.includes(".") && !text.includes("=") ? text : JSON.stringify(text);
}

test("entries of any text", () => {
  let read = 0;
  for (let index = 0; index < INPUTS; index++) {
    const random = new Random(SEED, index);
    const keys = ["address", "allow", "view", "forward", "other"].filter(
      (key) => !random.once(key === "other" ? 1.1 : 4),
    );
    const lines = keys.map((key) => `    ${key}: ${value(random, key)}`);
    const text = `version: 1\nlisten:\n  ${JSON.stringify(random.once(3) ? random.pick(NAMES) : "lan")}:\n${lines.join("\n")}\n`;
    try {
      const [entry, ...more] = readSettings(Buffer.from(text), "f").values.listen ?? [];
      assert.equal(more.length, 0, text);
      if (entry === undefined) continue;
      read++;
      assert.ok(entry.addresses.length > 0 && entry.allow.length > 0, text);
      for (const each of entry.addresses)
        assert.ok(
          addressBytes(each)?.some((byte) => byte !== 0),
          text,
        );
      for (const block of entry.allow) assert.ok(block.prefix >= prefixMinOf(block) && !isLinkLocal(block), text);
    } catch (error) {
      if (!(error instanceof BadSettings)) throw new Error(text, { cause: error });
      assert.ok(
        error.lines.every((line) => /^f:\d+:\d+: /.test(line)),
        `${text}\n${error.lines.join("\n")}`,
      );
    }
  }
  assert.ok(read > 10, `${read} were read`);
});
