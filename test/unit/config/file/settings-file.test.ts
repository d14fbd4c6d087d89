// Proves that every key of a settings file is read, and that each mistake is reported with file, line, column and key.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import * as fc from "fast-check";

import { BadSettings } from "../../../../src/config/bad-settings.ts";
import { readSettingsInWorker } from "../../../../src/config/file/worker.ts";
import { readSettings, readSettingsFile } from "../../../../src/config/file/settings-file.ts";
import type { SettingsLayer } from "../../../../src/config/layers.ts";
import { parseRoute } from "../../../../src/base/model/server-text.ts";
import { runs } from "../../../support/rig/runs.ts";

const folder = mkdtempSync(join(tmpdir(), "d11-settings-"));
after(() => rmSync(folder, { recursive: true }));

const WHOLE = `
version: 1
log-level: warn
strict: true
only: [label=app, network=web]
trust-image-labels: true
label-servers: host
ttl: 1m
dns: [host, 10.0.0.53:5353, /corp.example/10.1.0.53, /lan/, "[fd00::53]:5353", fe80::1%eth0]
networks:
  backend: {dns: [container:172.30.0.2]}
  idle: {}
  1234: {dns: []}
resolv-conf: /run/resolv.conf
own-project: false
forward: {order: parallel, budget: 2.5s, tcp: true, max-concurrent: 10, domain-needed: true, bogus-priv: true}
cache: {size: 1MiB, min-ttl: 1, max-ttl: 2s, max-negative-ttl: 0, negative-ttl-without-soa: 3s, max-stale: 1d}
`;

test("every key is read", () => {
  const { source, values } = read(WHOLE);
  assert.equal(source, "file");
  assert.deepEqual(values, {
    "log-level": "warn",
    strict: true,
    only: [
      { kind: "label", key: "app", value: undefined },
      { kind: "network", name: "web" },
    ],
    "trust-image-labels": true,
    "label-servers": "host",
    ttl: 60_000,
    dns: ["host", "10.0.0.53:5353", "/corp.example/10.1.0.53", "/lan/", "[fd00::53]:5353", "fe80::1%eth0"].map((text) =>
      parseRoute(text),
    ),
    networks: new Map([
      ["backend", [parseRoute("container:172.30.0.2")]],
      ["idle", []],
      ["1234", []],
    ]),
    "resolv-conf": "/run/resolv.conf",
    "own-project": false,
    "forward.order": "parallel",
    "forward.budget": 2_500,
    "forward.tcp": true,
    "forward.max-concurrent": 10,
    "cache.size": 2 ** 20,
    "cache.min-ttl": 1_000,
    "cache.max-ttl": 2_000,
    "cache.max-negative-ttl": 0,
    "cache.negative-ttl-without-soa": 3_000,
    "cache.max-stale": 86_400_000,
    "forward.domain-needed": true,
    "forward.bogus-priv": true,
  });
});

test("the position of a key, also in a group", () => {
  const { where } = read(WHOLE);
  assert.equal(where("strict"), "f:4:1: strict");
  assert.equal(where("cache.max-ttl"), "f:17:33: cache.max-ttl");
});

test("a file with only a version sets nothing", () => {
  assert.deepEqual(read("version: 1").values, {});
  assert.deepEqual(read("\uFEFF# nothing yet\r\nversion: 1\r\n").values, {});
});

test("an alias may be used", () => {
  const { values } = read("version: 1\ndns: &all [host]\nnetworks: {web: {dns: *all}}");
  assert.deepEqual(values.networks?.get("web"), values.dns);
});

// A file, and the beginnings of the reported lines, in order.
const WRONG: readonly (readonly [string, string, readonly string[]])[] = [
  ["nothing in it", "", ['f:1:1: the file is empty: the first line must be "version: 1"']],
  ["a comment alone", "# soon\n", ["f:1:1: the file is empty"]],
  ["a list", "- version: 1", ["f:1:1: the file is not a map"]],
  ["a string", "version 1", ["f:1:1: the file is not a map"]],
  ["no version", "ttl: 5", ['f:1:1: the version is missing: the first line must be "version: 1"']],
  [
    "another version, whose keys are not checked",
    "version: 2\nnew: 1",
    ["f:1:10: version: unsupported version 2: use 1"],
  ],
  ["a version as a string", 'version: "1"', ['f:1:10: version: unsupported version "1": use 1']],
  ["a version without a value", "version:", ["f:1:9: version: unsupported version null"]],
  ["a tab", "version: 1\ndns:\n\t- host", ["f:3:1: tabs are not allowed for indentation"]],
  ["a key twice", "version: 1\nttl: 5\nttl: 6", ["f:3:1: ttl: duplicate key"]],
  ["a key of a group twice", "version: 1\ncache: {size: 1MiB, size: 2MiB}", ["f:2:21: size: duplicate key"]],
  ["two documents", "version: 1\n---\nversion: 1", ["f:2:1: multiple documents"]],
  ["a runner that never ends", "version: 1\ndns: [host", ["f:2:11: "]],
  ["an undefined alias", "version: 1\ndns: *all", ['f:2:6: undefined alias "*all": define it before with "&all"']],
  ["a tag", "version: 1\nttl: !time 5", ["f:2:6: unresolved tag"]],
  ["a key that is not a string", "version: 1\n? [a]\n: 5", ["f:2:3: the key must be a string"]],
  ["the key of all objects", "version: 1\nnetworks: {__proto__: {}}", ["f:2:12: __proto__: invalid key"]],
  [
    "a key that is near one",
    "version: 1\nlog-levle: warn",
    ['f:2:1: log-levle: unknown key; did you mean "log-level"?'],
  ],
  [
    "a key that is near none",
    "version: 1\nservers: []",
    ["f:2:1: servers: unknown key; dns11 man dns11.yaml prints all keys"],
  ],
  ["a key of a group", "version: 1\ncache:\n  sise: 5", ['f:3:3: cache.sise: unknown key; did you mean "size"?']],
  ["a key in a map", "version: 1\ncache: {sise: 1}", ['f:2:9: cache.sise: unknown key; did you mean "size"?']],
  [
    "a key of a network",
    "version: 1\nnetworks: {web: {dsn: []}}",
    ["f:2:18: networks.web.dsn: unknown key; did you mean"],
  ],
  [
    "search lists",
    "version: 1\ndns-search: [lan]",
    ["f:2:1: dns-search: is not supported: search lists are applied by"],
  ],
  ["a key without a value", "version: 1\nttl:\nstrict: true", ["f:2:5: ttl: has no value: set one, or remove"]],
  ["a group without a value", "version: 1\ncache:", ["f:2:7: cache: has no value"]],
  ["a list without a value", "version: 1\ndns:", ["f:2:5: dns: has no value"]],
  [
    "a number for a group",
    "version: 1\ncache: 5",
    ["f:2:8: cache: invalid value 5: use a map with the keys size, min-ttl,"],
  ],
  [
    "networks that are a list",
    "version: 1\nnetworks: [web]",
    ["f:2:11: networks: invalid value (a list): use a map, such as {NETWORK"],
  ],
  [
    "a network without a name",
    'version: 1\nnetworks: {"": {dns: []}}',
    ["f:2:16: networks.: the network name is empty"],
  ],
  [
    "a network that is a list",
    "version: 1\nnetworks: {web: [host]}",
    ["f:2:17: networks.web: invalid value (a list): use a map with the keys dns"],
  ],
  ["a string for a list", "version: 1\ndns: host", ['f:2:6: dns: invalid value "host": use a list, such as [host]']],
  ["a wrong value for a list", 'version: 1\ndns: "10.0.0.999"', ['f:2:6: dns: invalid nameserver "10.0.0.999": use']],
  ["yes for true", "version: 1\nstrict: yes", ['f:2:9: strict: invalid value "yes": use true or false']],
  ["a number for a switch", "version: 1\nown-project: 1", ["f:2:14: own-project: invalid value 1: use true or false"]],
  [
    "a level",
    "version: 1\nlog-level: loud",
    ['f:2:12: log-level: invalid value "loud": use one of debug, info, warn, error, silent'],
  ],
  [
    "an order",
    "version: 1\nforward: {order: all}",
    ['f:2:18: forward.order: invalid value "all": use one of adaptive, rotate, sequential, parallel, docker'],
  ],
  ["a filter", "version: 1\nonly: [network=a, web]", ['f:2:19: only[1]: invalid filter "web": use label=KEY']],
  ["a server", "version: 1\ndns:\n  - host\n  - 10.0.0", ['f:4:5: dns[1]: invalid nameserver "10.0.0": use']],
  ["a number for a server", "version: 1\ndns: [10.5]", ["f:2:7: dns[0]: invalid value 10.5: use a string"]],
  ["a list that holds itself", "version: 1\ndns: &a [*a]", ["f:2:10: dns[0]: invalid value (a list): use a string"]],
  ["a route", "version: 1\ndns: [/lan]", ['f:2:7: dns[0]: invalid route "/lan": use /DOMAIN/SERVER']],
  [
    "a server of a network",
    "version: 1\nnetworks: {web: {dns: [x]}}",
    ['f:2:24: networks.web.dns[0]: invalid nameserver "x"'],
  ],
  [
    "options of resolv.conf",
    "version: 1\ndns-opt: [rotate]",
    ["f:2:1: dns-opt: is not supported: options of resolv.conf are applied by"],
  ],
  [
    "a path",
    "version: 1\nresolv-conf: resolv.conf",
    ['f:2:14: resolv-conf: invalid path "resolv.conf": use an absolute path'],
  ],
  [
    "a time without a known unit",
    "version: 1\nttl: 5w",
    ['f:2:6: ttl: invalid duration "5w": use whole seconds from 0'],
  ],
  ["half a second where whole ones are meant", "version: 1\ncache: {max-stale: 0.5s}", ["f:2:20: cache.max-stale: "]],
  [
    "too long a time",
    "version: 1\nforward: {budget: 2m}",
    ['f:2:19: forward.budget: invalid duration "2m": use a time from 0.1s to 1m, such as 250ms or 30s'],
  ],
  ["infinity", "version: 1\nttl: .inf", ["f:2:6: ttl: invalid duration Infinity"]],
  [
    "too little memory",
    "version: 1\ncache: {size: 1}",
    ["f:2:15: cache.size: invalid size 1: use 0 or a size from 64KiB to"],
  ],
  [
    "a number that is too large",
    "version: 1\nforward: {max-concurrent: 1e6}",
    ["f:2:27: forward.max-concurrent: invalid number 1000000: use a whole number from 1 to"],
  ],
  [
    "several mistakes, reported in the order of the lines",
    "version: 1\nnonsense: 1\nttl: x\ncache: {sise: 1, max-stale: x}\ndns: [x, y]",
    [
      "f:2:1: nonsense:",
      "f:3:6: ttl:",
      "f:4:9: cache.sise:",
      "f:4:29: cache.max-stale:",
      "f:5:7: dns[0]:",
      "f:5:10: dns[1]:",
    ],
  ],
];

for (const [what, text, beginnings] of WRONG) {
  test(`wrong: ${what}`, () => {
    const { lines } = mistakesIn(text);
    assert.equal(lines.length, beginnings.length, lines.join("\n"));
    for (const [index, beginning] of beginnings.entries()) assert.ok(lines[index]?.startsWith(beginning), lines[index]);
  });
}

test("of very many mistakes the first are listed, with the number of the others", () => {
  const text = `version: 1\ndns:\n${"- x\n".repeat(70)}`;
  const { lines, count, message } = mistakesIn(text);
  assert.deepEqual([lines.length, count], [50, 70]);
  assert.match(message, /\n\.\.\. and 20 more$/);
});

test("deep nesting and multiplying aliases are rejected", () => {
  assert.match(mistakesIn(`version: 1\ndns: ${"[".repeat(2_000)}`).message, /^f:2:\d+: nested too deeply$/);
  const names = [..."bcdefgh"].map((name, index) => `${name}: &${name} [${`*${"abcdefg"[index]},`.repeat(9)}]`);
  assert.match(mistakesIn(`version: 1\na: &a [x]\n${names.join("\n")}`).message, /too many aliases/);
});

test("invalid UTF-8 is rejected", () => {
  assert.throws(() => readSettings(Buffer.from("version: 1 # \xff", "latin1"), "f"), {
    message: "f: is not valid UTF-8",
  });
});

for (const [what, make, reason] of [
  ["that is not there", (path: string) => path, /: cannot be read: ENOENT/],
  ["that is a folder", () => folder, /: cannot be read: it is not a regular file$/],
  ["over 1 MB", (path: string) => written(path, `version: 1 #${"x".repeat(1024 * 1024)}`), /: it is larger than 1 MB$/],
] as const) {
  test(`a file ${what} is rejected with its name`, async () => {
    const path = make(join(folder, what));
    await assert.rejects(readSettingsFile(path), (error) => {
      assert.ok(error instanceof BadSettings && error.message.startsWith(`${path}: `));
      assert.match(error.message, reason);
      return true;
    });
  });
}

test("the worker thread reads the same", async () => {
  const path = written(join(folder, "good"), WHOLE);
  const [here, inWorker] = [await readSettingsFile(path), await readSettingsInWorker(path)];
  assert.deepEqual(inWorker.values, here.values);
  assert.equal(inWorker.where("cache.max-ttl"), `${path}:17:33: cache.max-ttl`);
  const bad = written(join(folder, "bad"), `version: 1\ndns:\n${"- x\n".repeat(70)}`);
  await assert.rejects(readSettingsInWorker(bad), (error) => error instanceof BadSettings && error.count === 70);
  const nowhere = join(folder, "nowhere");
  await assert.rejects(
    readSettingsInWorker(nowhere),
    (error) => error instanceof BadSettings && error.message.startsWith(`${nowhere}: cannot be read: ENOENT`),
  );
});

test("any content is either read or rejected with lines", () => {
  const keys = fc.constantFrom(
    ...Array.from(WHOLE.matchAll(/[a-z-]+(?=:)/g), ([key]) => key),
    "<<",
    "__proto__",
    "constructor",
  );
  const leaf = fc.oneof(fc.string(), fc.double(), fc.boolean(), fc.constantFrom(null, "host", "/lan/", "5s", "1MiB"));
  const { tree } = fc.letrec((tie) => ({
    // Small ones: a mistake needs no large file, and most of the time would be the parser's.
    tree: fc.oneof(
      { depthSize: "small" },
      leaf,
      fc.array(tie("tree"), { maxLength: 3 }),
      fc.dictionary(keys, tie("tree"), { maxKeys: 3 }),
    ),
  }));
  // Flow style is JSON's, so that any tree is YAML as it stands.
  const ordered = fc.dictionary(keys, tree).map((map) => JSON.stringify({ version: 1, ...map }));
  const mutated = fc
    .tuple(
      fc.nat({ max: WHOLE.length }),
      fc.nat({ max: 9 }),
      fc.oneof(fc.string(), fc.constantFrom("\t", "\n", ": ", "&a ", "*a")),
    )
    .map(([at, cut, text]) => WHOLE.slice(0, at) + text + WHOLE.slice(at + cut));
  fc.assert(
    fc.property(
      fc.oneof(
        ordered,
        mutated,
        fc.string().map((text) => `version: 1\n${text}`),
      ),
      (text) => {
        try {
          read(text);
        } catch (error) {
          assert.ok(error instanceof BadSettings, String(error));
          assert.ok(error.lines.length > 0 && error.lines.every((line) => /^f:\d+:\d+: ./.test(line)), error.message);
        }
      },
    ),
    { numRuns: runs(200) },
  );
});

function read(text: string): SettingsLayer {
  return readSettings(Buffer.from(text), "f");
}

function mistakesIn(text: string): BadSettings {
  try {
    read(text);
  } catch (error) {
    if (error instanceof BadSettings) return error;
    throw error;
  }
  throw new assert.AssertionError({ message: "the file is good" });
}

function written(path: string, text: string): string {
  writeFileSync(path, text);
  return path;
}
