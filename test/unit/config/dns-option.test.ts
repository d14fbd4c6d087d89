// Proves which DNS options are supported, and that others are rejected with the reason.

import assert from "node:assert/strict";
import { test } from "node:test";

import { type DnsOption, parseDnsOption } from "../../../src/config/dns-option.ts";

const GOOD: readonly DnsOption[] = [
  { text: "ndots:0", kind: "ndots", number: 0 },
  { text: "ndots:15", kind: "ndots", number: 15 },
  { text: "rotate", kind: "rotate", number: undefined },
  { text: "use-vc", kind: "use-vc", number: undefined },
  { text: "timeout:1", kind: "timeout", number: 1 },
  { text: "timeout:30", kind: "timeout", number: 30 },
];

for (const option of GOOD) {
  test(`"${option.text}" is an option`, () => assert.deepEqual(parseDnsOption(option.text), option));
}

const BAD: Readonly<Record<string, RegExp>> = {
  ndots: /^invalid option "ndots": use ndots:N with N from 0 to 15$/,
  "ndots:": /^invalid option /,
  "ndots:16": /^invalid option /,
  "ndots:x": /^invalid option /,
  "ndots:1:2": /^invalid option /,
  "timeout:0": /use timeout:N with N from 1 to 30$/,
  "timeout:31": /^invalid option /,
  "timeout:1.5": /^invalid option /,
  "rotate:1": /use rotate, which has no value/,
  "use-vc:": /which has no value/,
  "attempts:3": /resolver library in the container applies it/,
  edns0: /resolver library in the container applies it/,
  "single-request": /docker run --dns-opt/,
  "trust-ad": /resolver library in the container applies it/,
  Rotate: /use one of ndots:N, rotate, use-vc, timeout:N$/,
  "": /^unknown option /,
  " rotate": /^unknown option /,
};

for (const [text, message] of Object.entries(BAD)) {
  test(`"${text}" is rejected`, () => assert.throws(() => parseDnsOption(text), { message }));
}
