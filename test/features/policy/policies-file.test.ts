// Proves how policies are read from a settings file, and that each mistake has its place.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as fc from "fast-check";

import { EXIT } from "../../../cmd/process/exit-code.ts";
import { TYPE } from "../../../src/base/dns/record-type.ts";
import {
  addressBytes,
  type AddressBlock,
  blockText,
  isInBlock,
  readAddressBlock,
} from "../../../src/base/model/address.ts";
import { BadSettings } from "../../../src/config/bad-settings.ts";
import { readSettings } from "../../../src/config/file/settings-file.ts";
import { readRule } from "../../../src/features/policy/model/policy-rule.ts";
import { scopeText, POLICY_DEFAULTS } from "../../../src/features/policy/model/policy.ts";
import { refusedHere } from "../../support/program/refused-here.ts";

function policiesIn(text: string): ReturnType<typeof readSettings>["values"]["policies"] {
  return readSettings(Buffer.from(`version: 1\n${text}`), "f").values.policies;
}

test("commands refuse a file without policies with the code for mistakes in settings, and say why once", async () => {
  for (const args of [
    ["policy", "apply", "/nowhere"],
    ["sandbox", "--policy", "/nowhere", "--", "true"],
  ]) {
    const refusal = await refusedHere(args);
    assert.equal(refusal?.code, EXIT.usage);
    assert.match(refusal.stderr, /^dns11: "\/nowhere" cannot be read: ENOENT: [^:]+\n {2}Name a file/);
  }
});

test("every key of a policy is read, and each rule has its line", () => {
  const [agents, plain] =
    policiesIn(`policies:
  agents:
    for: [network=agents, project=shop, service=web, label=team=a=b, label=x]
    mode: enforce
    allow:
      - API.example.com.:443
      - "**.github.com"
      - 10.0.0.141:22/tcp
    deny: [gist.github.com]
    peers: names
    host: allow
    private: allow
    addresses: names
    keep: 2h
    new-names-per-minute: 5
    types: [A, TXT]
  plain: {mode: audit}
`) ?? [];
  assert.ok(agents !== undefined && plain !== undefined);
  assert.deepEqual(agents.scopes.map(scopeText), [
    "network=agents",
    "project=shop",
    "service=web",
    "label=team=a=b",
    "label=x",
  ]);
  assert.deepEqual(
    agents.allow.map(({ text, line, port, protocol }) => [text, line, port, protocol]),
    [
      ["API.example.com.:443", 7, 443, undefined],
      ["**.github.com", 8, undefined, undefined],
      ["10.0.0.141:22/tcp", 9, 22, "tcp"],
    ],
  );
  assert.equal(agents.where, "f:3:3");
  assert.equal(agents.deny[0]?.line, 10);
  const { peers, host, addresses, keepMs, newNamesPerMinute, types, mode } = agents;
  assert.deepEqual(
    { peers, host, private: agents.private, addresses, keepMs, newNamesPerMinute, types, mode },
    {
      peers: "names",
      host: "allow",
      private: "allow",
      addresses: "names",
      keepMs: 7_200_000,
      newNamesPerMinute: 5,
      types: new Set([TYPE.A, TYPE.TXT]),
      mode: "enforce",
    },
  );
  for (const [key, value] of Object.entries(POLICY_DEFAULTS)) assert.deepEqual(plain[key as keyof typeof plain], value);
});

// A file after its version, and the beginnings of the reported lines.
const WRONG: readonly (readonly [string, string, string])[] = [
  ["no mode", "policies:\n  a: {allow: [x.test]}", "f:3:3: policies.a: has no mode: set mode: audit"],
  ["another mode", "policies: {a: {mode: block}}", 'f:2:22: policies.a.mode: invalid value "block": use one of audit'],
  [
    "an unknown key",
    "policies: {a: {mode: audit, alow: []}}",
    'f:2:29: policies.a.alow: unknown key; did you mean "allow"',
  ],
  ["a bad name", "policies: {A: {mode: audit}}", "f:2:12: policies.A: invalid name of a policy: use at most 63"],
  ["a list for a map", "policies: [a]", "f:2:11: policies: invalid value (a list): use a map"],
  [
    "a scope",
    "policies: {a: {mode: audit, for: [net=x]}}",
    'f:2:35: policies.a.for[0]: invalid choice of containers "net=x"',
  ],
  [
    "a name with a star within",
    'policies: {a: {mode: audit, allow: ["a.*.test"]}}',
    'f:2:37: policies.a.allow[0]: invalid name "a.*.test"',
  ],
  [
    "a name beyond ASCII",
    "policies: {a: {mode: audit, deny: [bücher.test]}}",
    'f:2:36: policies.a.deny[0]: invalid name "bücher.test"',
  ],
  ["a URL", 'policies: {a: {mode: audit, allow: ["https://x.test/"]}}', "f:2:37: policies.a.allow[0]: invalid port"],
  ["a path", "policies: {a: {mode: audit, allow: [x.test/a]}}", "f:2:37: policies.a.allow[0]: invalid rule"],
  [
    "a port",
    'policies: {a: {mode: audit, allow: ["x.test:0"]}}',
    'f:2:37: policies.a.allow[0]: invalid port in "x.test:0"',
  ],
  [
    "a protocol",
    'policies: {a: {mode: audit, allow: ["x.test:1/icmp"]}}',
    "f:2:37: policies.a.allow[0]: invalid protocol",
  ],
  [
    "a prefix",
    "policies: {a: {mode: audit, allow: [10.0.0.0/33]}}",
    "f:2:37: policies.a.allow[0]: invalid prefix length",
  ],
  [
    "host bits",
    "policies: {a: {mode: audit, allow: [10.0.0.1/8]}}",
    'f:2:37: policies.a.allow[0]: "10.0.0.1/8" has bits beyond its prefix: use 10.0.0.0/8',
  ],
  ["a number for a rule", "policies: {a: {mode: audit, allow: [5]}}", "f:2:37: policies.a.allow[0]: invalid rule 5"],
  [
    "a rule for a list",
    "policies: {a: {mode: audit, allow: x.test}}",
    'f:2:36: policies.a.allow: invalid value "x.test": use a list',
  ],
  [
    "no new names",
    "policies: {a: {mode: audit, new-names-per-minute: 0}}",
    "f:2:51: policies.a.new-names-per-minute: invalid number 0",
  ],
  ["a type", "policies: {a: {mode: audit, types: [AAA]}}", "f:2:37: policies.a.types[0]: "],
];

for (const [what, text, expected] of WRONG) {
  test(`a file with ${what} is refused with its place`, () => {
    assert.throws(
      () => policiesIn(text),
      (error: unknown) => {
        assert.ok(error instanceof BadSettings);
        assert.equal(error.lines.length, 1, error.lines.join("\n"));
        assert.equal(error.lines[0]?.slice(0, expected.length), expected);
        return true;
      },
    );
  });
}

test("a rule is a name, an address or a block, with a port and a protocol", () => {
  const forms = [
    ["x.test", "x.test", undefined, undefined, undefined],
    ["*.x.test:443", "*.x.test", undefined, 443, undefined],
    ["**", "**", undefined, undefined, undefined],
    ["10.0.0.0/8", undefined, "10.0.0.0/8", undefined, undefined],
    ["10.0.0.0/8:53/udp", undefined, "10.0.0.0/8", 53, "udp"],
    ["2001:db8::/32", undefined, "2001:db8::/32", undefined, undefined],
    ["[2001:db8::1]:443/tcp", undefined, "2001:db8::1", 443, "tcp"],
    ["[2001:db8::1]", undefined, "2001:db8::1", undefined, undefined],
    ["::ffff:10.0.0.1", undefined, "10.0.0.1", undefined, undefined],
  ] as const;
  for (const [text, name, block, port, protocol] of forms) {
    const rule = readRule(text);
    const read = [
      rule.pattern?.text,
      rule.block === undefined ? undefined : blockText(rule.block),
      rule.port,
      rule.protocol,
    ];
    assert.deepEqual(read, [name, block, port, protocol], text);
  }
});

test("an address is in a block if the bits of the prefix are the same", () => {
  const bytes = fc.uint8Array({ minLength: 4, maxLength: 4 });
  fc.assert(
    fc.property(bytes, bytes, fc.integer({ min: 0, max: 32 }), (first, other, prefix) => {
      const mask = prefix === 0 ? 0 : (0xffff_ffff << (32 - prefix)) >>> 0;
      const number = (each: Uint8Array): number => Buffer.from(each).readUInt32BE();
      const block: AddressBlock = {
        bytes: Uint8Array.from(first, (b, i) => b & (mask >>> (24 - 8 * i)) & 255),
        prefix,
      };
      assert.equal(isInBlock(other, block), ((number(first) ^ number(other)) & mask) === 0);
    }),
  );
  const block = readAddressBlock("fd00::/9");
  assert.ok(block !== undefined && isInBlock(addressBytes("fd7f::1") as Uint8Array, block));
  assert.ok(!isInBlock(addressBytes("fd80::1") as Uint8Array, block));
});
