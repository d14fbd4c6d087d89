// Proves that each entry says which Node it needs, before it loads what an older one cannot run.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { oldNodeText } from "../../../src/base/lib/node-version.ts";

const folder = mkdtempSync(join(tmpdir(), "d11-old-node-"));
const aged = join(folder, "aged.mjs");
// As an older Node: it says so, and has not what came later.
writeFileSync(
  aged,
  'Object.defineProperty(process.versions, "node", { value: "18.20.8" });\ndelete Array.prototype.toReversed;\n',
);
after(() => rmSync(folder, { recursive: true }));

for (const words of [
  ["dns11.js", "status"],
  ["docker-dns.js", "dns", "status"],
]) {
  const [program = "", ...args] = words;
  test(`${words.join(" ")} with Node 18`, () => {
    const all = ["--import", aged, `dist/cmd/${program}`, ...args];
    const { status, stdout, stderr } = spawnSync(process.execPath, all, { encoding: "utf8" });
    assert.equal(stdout, "");
    assert.match(stderr, /^dns11: Node 20 or later is needed, and \S+ is 18\.20\.8\. .*\n$/);
    assert.equal(status, 3);
  });
}

test("the oldest that works", () => {
  assert.equal(oldNodeText("20.0.0", "node"), undefined);
  assert.match(oldNodeText("19.9.0", "node") ?? "", /^Node 20 or later is needed, and node is 19\.9\.0\./);
});
