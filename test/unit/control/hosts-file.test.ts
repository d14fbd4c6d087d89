// Proves what is read of a hosts file, whatever a container writes into it.

import assert from "node:assert/strict";
import { test } from "node:test";

import { addressesInHosts } from "../../../src/control/explain/program-answer.ts";

const TEXT = `127.0.0.1\tlocalhost
192.0.2.5 web www.shop.test # web again
192.0.2.6	WEB
2001:db8::5 web
not-an-address web
192.0.2.7 # web
`;

function found(name: string, typeName = "A", text = TEXT): string[] {
  return addressesInHosts(text, { name, typeName });
}

test("all lines with the name count, in any letter case, for addresses of the family", () => {
  assert.deepEqual(found("web"), ["192.0.2.5", "192.0.2.6"]);
  assert.deepEqual(found("Web."), ["192.0.2.5", "192.0.2.6"]);
  assert.deepEqual(found("web", "AAAA"), ["2001:db8::5"]);
  assert.deepEqual(found("www.shop.test"), ["192.0.2.5"]);
  assert.deepEqual(found("web", "MX"), []);
  assert.deepEqual(found("again"), [], "in a comment");
});

test("a file of one endless line, of binary data, or of ever more addresses is read, and little of it is told", () => {
  assert.deepEqual(found("web", "A", "192.0.2.1 ".repeat(6_000)), []);
  assert.deepEqual(found("web", "A", `\0\u001b[2J${"x".repeat(60_000)} web`), []);
  const many = Array.from({ length: 3_000 }, (_, index) => `10.0.${index >> 8}.${index & 255} web`).join("\n");
  assert.equal(found("web", "A", many).length, 16);
});
