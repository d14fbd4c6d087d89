// Proves which DNS options dns11 takes, and that the others are refused with the reason.

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
  ndots: /lacks a number from 0 to 15: ndots:N/,
  "ndots:": /lacks a number/,
  "ndots:16": /lacks a number/,
  "ndots:x": /lacks a number/,
  "ndots:1:2": /lacks a number/,
  "timeout:0": /lacks a number from 1 to 30: timeout:N/,
  "timeout:31": /lacks a number/,
  "timeout:1.5": /lacks a number/,
  "rotate:1": /takes no number: it is "rotate"/,
  "use-vc:": /takes no number/,
  "attempts:3": /for the library in the container/,
  edns0: /for the library in the container/,
  "single-request": /docker run --dns-opt/,
  "trust-ad": /for the library in the container/,
  Rotate: /no option that dns11 knows: ndots:N, rotate, use-vc, timeout:N/,
  "": /no option that dns11 knows/,
  " rotate": /no option that dns11 knows/,
};

for (const [text, message] of Object.entries(BAD)) {
  test(`"${text}" is refused`, () => assert.throws(() => parseDnsOption(text), { message }));
}
