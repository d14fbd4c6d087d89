// Proves how declared names are read, in YAML and in the format of /etc/hosts, and that each mistake has its place.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as fc from "fast-check";

import { BadSettings } from "../../../src/config/bad-settings.ts";
import { DeclaredSet } from "../../../src/config/records/declared-set.ts";
import { LIMITS } from "../../../src/base/limits.ts";
import { readHostsText } from "../../../src/features/records/files.ts";
import { runs } from "../../support/rig/runs.ts";
import { declaredIn } from "../../support/scripted/declarations.ts";

function textsOf(text: string): Record<string, string[]> {
  return Object.fromEntries(
    declaredIn(text).map(({ name, records, alias, containers }) => [
      name,
      [...records.map((each) => each.text), ...(alias === undefined ? [] : [`CNAME ${alias}`]), ...containers],
    ]),
  );
}

test("an address, a list of addresses and a map of types declare a name", () => {
  const names = textsOf(`
records:
  One.Shop.Test.: 10.0.0.1
  two.shop.test: [10.0.0.1, fd00::1]
  all.shop.test: {a: 10.0.0.1, txt: [one, "v=spf1 -all"], mx: 10 mail.shop.test, caa: 0 issue "ca.example", ttl: 1m}
  www.shop.test: {cname: one.shop.test.}
  _http._tcp.shop.test: {srv: 0 5 80 web.shop.test, ptr: [a.b, c.d]}
  "*.apps.test": {container: [proxy, web]}
`);
  assert.deepEqual(names, {
    "one.shop.test": ["A 10.0.0.1"],
    "two.shop.test": ["A 10.0.0.1", "AAAA fd00::1"],
    "all.shop.test": ["A 10.0.0.1", "TXT one", "TXT v=spf1 -all", "MX 10 mail.shop.test", 'CAA 0 issue "ca.example"'],
    "www.shop.test": ["CNAME one.shop.test"],
    "_http._tcp.shop.test": ["SRV 0 5 80 web.shop.test", "PTR a.b", "PTR c.d"],
    "*.apps.test": ["proxy", "web"],
  });
});

test("data are in wire format", () => {
  const [name] = declaredIn(
    `records: {x.test: {txt: ${"a".repeat(256)}, srv: 1 2 3 Web.test, mx: 0 ., caa: 128 ISSUE ;, ttl: 90s}}`,
  );
  assert.equal(name?.ttlSeconds, 90);
  const [txt, srv, mx, caa] = name.records.map(({ data }) => Buffer.from(data));
  assert.deepEqual(txt, Buffer.from(`\xff${"a".repeat(255)}\x01a`, "latin1"));
  assert.deepEqual(srv, Buffer.from("\0\x01\0\x02\0\x03\x03Web\x04test\0", "latin1"));
  assert.deepEqual(mx, Buffer.from("\0\0\0", "latin1"));
  assert.deepEqual(caa, Buffer.from("\x80\x05issue;", "latin1"));
});

test("names are declared for everybody, a network or a project, each with its place", () => {
  const names = declaredIn(`networks:
  back: {dns: [], records: {db.test: 10.0.0.1}}
projects:
  shop:
    records:
      db.test: 10.0.0.2
records: {db.test: 10.0.0.3}`);
  assert.deepEqual(
    names.map(({ scope, where, records }) => [scope.kind, scope.name, where, records[0]?.text]),
    [
      ["everybody", "", "s.yaml:8:11", "A 10.0.0.3"],
      ["network", "back", "s.yaml:3:29", "A 10.0.0.1"],
      ["project", "shop", "s.yaml:7:7", "A 10.0.0.2"],
    ],
  );
});

const MISTAKES: readonly (readonly [records: string, mistake: RegExp])[] = [
  ["[a]", /^s\.yaml:2:10: records: invalid value \(a list\): use a map, such as /],
  ["", /^s\.yaml:2:10: records: has no value: set one/],
  ["{a.test: 10.0.0.256}", /^s\.yaml:2:\d+: records\.a\.test: invalid address "10\.0\.0\.256": use an IP address/],
  ["{a.test: 'fe80::1%eth0'}", /invalid address "fe80::1%eth0"/],
  ["{a.test: {a: fd00::1}}", /invalid address "fd00::1": use an IPv4 address/],
  ["{a.test: {}}", /a\.test: has no records: use an address/],
  ["{a.test: []}", /a\.test: invalid value \(a list\): use an address/],
  ["{a.test: 5}", /a\.test: invalid value 5: use an address/],
  ["{a.test: {cnam: b}}", /unknown record type "cnam": did you mean cname\? use a, aaaa/],
  ["{a.test: {__proto__: b}}", /__proto__: invalid key/],
  ["{a.test: {cname: b.test, txt: x}}", /a CNAME cannot stand beside other records of a name/],
  ["{a.test: {cname: [b.test, c.test]}}", /has several CNAMEs: use one/],
  ["{a.test: {cname: A.test}}", /its CNAME points to itself/],
  ["{a.test: {container: web, a: 10.0.0.1}}", /has the addresses of a container and others/],
  ["{a.test: [10.0.0.1, 10.0.0.1]}", /has the record "A 10\.0\.0\.1" twice/],
  ["{a.test: {txt: 5}}", /invalid txt 5: use a string or a list of strings/],
  ["{a.test: {srv: 1 2 web}}", /invalid SRV "1 2 web": use "PRIORITY WEIGHT PORT TARGET"/],
  ["{a.test: {srv: 1 2 70000 web}}", /invalid SRV/],
  ["{a.test: {mx: mail}}", /invalid MX "mail": use "PREFERENCE HOST"/],
  ["{a.test: {caa: 0 issue}}", /invalid CAA "0 issue": use 'FLAGS TAG VALUE'/],
  ["{a.test: {ptr: 10.0.0.1}}", /invalid name "10\.0\.0\.1": use labels/],
  ["{a.test: {ttl: 1.5s, a: 10.0.0.1}}", /invalid duration/],
  ["{'*': 10.0.0.1}", /a wildcard for every name is not possible/],
  [
    "{'*.com': 10.0.0.1}",
    /invalid name "\*\.com": it covers a whole top-level domain: use a wildcard below a longer domain/,
  ],
  ["{'a.*.test': 10.0.0.1}", /invalid name "a\.\*\.test"/],
  ["{10.0.0.1: 10.0.0.1}", /invalid name "10\.0\.0\.1": it is an address: use a name/],
  [`{${"a".repeat(64)}.test: 10.0.0.1}`, /invalid name "a{59}.*: use labels of at most 63/],
  ["{a..test: 10.0.0.1}", /invalid name "a\.\.test"/],
  [
    "{a.test: 10.0.0.1, A.test: 10.0.0.2}",
    /s\.yaml:2:29: a\.test: is declared twice for everybody, also at s\.yaml:2:11/,
  ],
  ["{a.test: {cname: b.test}, b.test: {cname: a.test}}", /its CNAMEs form a loop \(a\.test -> b\.test -> a\.test\)/],
  ["{'*.x.test': {cname: a.x.test}}", /its CNAMEs form a loop \(\*\.x\.test -> \*\.x\.test\)/],
  [
    `{${Array.from({ length: 9 }, (_, n) => `n${n}.test: {cname: n${n + 1}.test}`).join(", ")}, n9.test: 10.0.0.1}`,
    /n0\.test: has more than 8 CNAMEs in a row/,
  ],
  [
    `{a.test: [${Array.from({ length: 101 }, (_, n) => `10.0.0.${n}`).join(", ")}]}`,
    /has 101 records: use at most 100/,
  ],
];

test("each mistake is reported with its place, and says what to use", () => {
  for (const [records, mistake] of MISTAKES) {
    assert.match(mistakeIn(`records: ${records}`), mistake, records);
  }
});

function mistakeIn(text: string): string {
  try {
    declaredIn(text);
    return "no mistake";
  } catch (error) {
    return error instanceof BadSettings ? (error.lines[0] ?? "") : String(error);
  }
}

function mistakeLike(mistake: RegExp): (error: unknown) => boolean {
  return (error) => error instanceof BadSettings && mistake.test(error.lines[0] ?? "");
}

test("names cannot be declared in strict", async () => {
  const { mergeSettings } = await import("../../../src/config/merge-settings.ts");
  const { readSettings } = await import("../../../src/config/file/settings-file.ts");
  const layer = readSettings(Buffer.from("version: 1\nstrict: true\nrecords: {a.test: 10.0.0.1}"), "s.yaml");
  const what = /s\.yaml:3:1: records: has no effect with strict, because Docker has no such names: remove one of them/;
  assert.throws(() => mergeSettings([layer]), mistakeLike(what));
});

test("the format of /etc/hosts gives names addresses, and addresses their first name", () => {
  const { names, mistakes } = readHostsText(
    "# hosts\n10.0.0.1\tOne one.test # first\r\n\nfd00::1 one.test\n10.0.0.1 other\n10.0.0.2 *.wild.test\n",
    "h",
  );
  assert.deepEqual(mistakes, []);
  assert.deepEqual(
    names.map(({ name, where, records }) => [name, where, records.map(({ text }) => text).join(",")]),
    [
      ["one", "h:2:1", "A 10.0.0.1"],
      ["one.test", "h:2:1", "A 10.0.0.1,AAAA fd00::1"],
      ["1.0.0.10.in-addr.arpa", "h:2:1", "PTR One"],
      [`1.${"0.".repeat(27)}0.0.d.f.ip6.arpa`, "h:4:1", "PTR one.test"],
      ["other", "h:5:1", "A 10.0.0.1"],
      ["*.wild.test", "h:6:1", "A 10.0.0.2"],
    ],
  );
});

test("each bad line of a hosts file is reported", () => {
  const { mistakes } = readHostsText("10.0.0 a\n10.0.0.1\n10.0.0.1 a..b\nweb 10.0.0.1\n", "h");
  assert.deepEqual(
    mistakes.map((each) => each.replace(/: use .*|, and names.*/, "")),
    [
      'h:1:1: invalid address "10.0.0": a line begins with an IP address',
      'h:2:1: the address "10.0.0.1" has no name: add one, or remove the line',
      'h:3:1: invalid name "a..b"',
      'h:4:1: invalid address "web": a line begins with an IP address',
    ],
  );
});

test("an explicit reverse name replaces that of a hosts file, in any order", () => {
  const { names: derived } = readHostsText("10.0.0.1 one\n", "h");
  const explicit = declaredIn("records: {1.0.0.10.in-addr.arpa: {ptr: two}}");
  for (const order of [
    [derived, explicit],
    [explicit, derived],
  ]) {
    const set = new DeclaredSet();
    assert.deepEqual(
      order.flatMap((names) => set.add(names)),
      [],
    );
    const reverse = set.names.find(({ name }) => name === "1.0.0.10.in-addr.arpa");
    assert.equal(reverse?.records[0]?.text, "PTR two");
  }
});

test("names that contradict those of an earlier file are refused as a whole", () => {
  const set = new DeclaredSet();
  assert.deepEqual(set.add(declaredIn("records: {a.test: 10.0.0.1, b.test: {cname: c.test}}")), []);
  assert.match(set.add(declaredIn("records: {d.test: 10.0.0.1, a.test: 10.0.0.2}"))[0] ?? "", /declared twice/);
  assert.match(set.add(declaredIn("projects: {p: {records: {c.test: {cname: b.test}}}}"))[0] ?? "", /form a loop/);
  assert.deepEqual(
    set.names.map(({ name }) => name),
    ["a.test", "b.test"],
  );
});

test("a file that goes beyond the number of names that is allowed is refused, and the others stay", () => {
  const set = new DeclaredSet();
  const [one] = declaredIn("records: {a.test: 10.0.0.1}");
  assert.ok(one !== undefined);
  const most = Array.from({ length: LIMITS.declaredNames }, (_, n) => ({ ...one, name: `n${n}.test` }));
  assert.deepEqual(set.add(most), []);
  assert.deepEqual(set.add([one]), ["s.yaml:2:11: makes 100001 declared names: use at most 100000"]);
  assert.equal(set.names.length, LIMITS.declaredNames);
});

test("no text breaks the readers: they return names or mistakes with a place", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 200 }), (text) => {
      const { mistakes } = readHostsText(text, "h");
      for (const each of mistakes) assert.match(each, /^h:\d+:1: /);
    }),
  );
  fc.assert(
    fc.property(fc.string(), fc.jsonValue({ maxDepth: 2 }), (name, value) => {
      try {
        declaredIn(`records: ${JSON.stringify({ [name]: value })}`);
      } catch (error) {
        assert.ok(error instanceof BadSettings, String(error));
        for (const line of error.lines) assert.match(line, /^s\.yaml:\d+:\d+: /);
      }
    }),
    { numRuns: runs(30) },
  );
});
