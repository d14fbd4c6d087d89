// Proves that a resolv.conf is parsed as engines from 26 on parse the host's.

import assert from "node:assert/strict";
import { test } from "node:test";

import { type ResolvConf, parseResolvConf } from "../../../../src/container/watch/resolv-conf.ts";

const NOTHING: ResolvConf = { nameservers: [], invalid: [], search: [], options: [], isNdotsSet: false };

test("a file as DHCP clients write it", () => {
  const text = "# made by dhclient\ndomain lan\nsearch lan example.org\nnameserver 192.0.2.1\nnameserver 192.0.2.2\n";
  assert.deepEqual(parseResolvConf(text), {
    ...NOTHING,
    nameservers: ["192.0.2.1", "192.0.2.2"],
    search: ["lan", "example.org"],
  });
});

for (const [what, text] of [
  ["nothing", ""],
  ["empty lines and blanks", "\n\n  \n\t\n"],
  ["comments", "# nameserver 192.0.2.1\n; nameserver 192.0.2.1\n#nameserver 192.0.2.1\n"],
  ["comments after blanks", "  # nameserver 192.0.2.1\n\t;nameserver 192.0.2.1\n"],
  ["directives without a value", "nameserver\nsearch\noptions\ndomain \n"],
  ["unknown directives", "sortlist 192.0.2.0/24\nlookup file bind\nnameservers 192.0.2.1\n"],
  ["directives in capitals", "NAMESERVER 192.0.2.1\n"],
] as const) {
  test(`${what} are ignored`, () => assert.deepEqual(parseResolvConf(text), NOTHING));
}

for (const [what, line, address] of [
  ["after blanks and before others", "\t nameserver \t 192.0.2.1 \t", "192.0.2.1"],
  ["before a carriage return", "nameserver 192.0.2.1\r", "192.0.2.1"],
  ["without a line's end", "search lan\nnameserver 192.0.2.1", "192.0.2.1"],
  ["before further words, a comment or not", "nameserver 192.0.2.1 192.0.2.2 # the first", "192.0.2.1"],
  ["of IPv6", "nameserver 2001:db8::1", "2001:db8::1"],
  ["with a zone", "nameserver fe80::1%eth0", "fe80::1%eth0"],
  ["of the stub resolver", "nameserver 127.0.0.53", "127.0.0.53"],
] as const) {
  test(`a nameserver ${what}`, () => assert.deepEqual(parseResolvConf(line).nameservers, [address]));
}

test("invalid addresses are returned separately, and the others are used", () => {
  const bad = ["dns.example", "192.0.2", "192.0.2.256", "192.0.2.1:53", "[2001:db8::1]", "192.0.2.1%eth0", "#"];
  const text = [...bad, "192.0.2.1"].map((address) => `nameserver ${address}\n`).join("");
  const { nameservers, invalid } = parseResolvConf(text);
  assert.deepEqual(nameservers, ["192.0.2.1"]);
  assert.deepEqual(invalid, bad);
});

test("the last search or domain line applies", () => {
  assert.deepEqual(parseResolvConf("search a.test b.test\ndomain c.test\n").search, ["c.test"]);
  assert.deepEqual(parseResolvConf("domain c.test\nsearch a.test # b.test\n").search, ["a.test", "#", "b.test"]);
  assert.deepEqual(parseResolvConf("search a.test\nsearch\n").search, ["a.test"]);
});

test("options of all lines apply", () => {
  const { options } = parseResolvConf("options edns0 trust-ad\nnameserver 192.0.2.1\noptions timeout:1  rotate\n");
  assert.deepEqual(options, ["edns0", "trust-ad", "timeout:1", "rotate"]);
});

for (const [options, expected] of [
  ["edns0", false],
  ["ndots:0", true],
  ["timeout:1 ndots:2", true],
  ["ndots:2\noptions edns0", true],
  ["ndots", true],
  ["ndots:many", true],
  ["ndotsy:1", false],
] as const) {
  test(`"${options.replace("\n", ", ")}" ${expected ? "sets" : "does not set"} ndots`, () => {
    assert.equal(parseResolvConf(`options ${options}\n`).isNdotsSet, expected);
  });
}
