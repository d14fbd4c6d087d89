// Values with parts that mean something elsewhere, or nothing, and what a reader of such a text may say.

import assert from "node:assert/strict";

import { BadSettings, MISTAKES_SHOWN_MAX } from "../../src/config/bad-settings.ts";
import type { Random } from "./random.ts";

/** Of one mistake: what is wrong in a text is shown, the text is not. */
export const REASON_CHARS = 1_000;

const VALUES: readonly unknown[] = [
  ...[
    null,
    true,
    false,
    0,
    -1,
    1.5,
    65_536,
    2 ** 53,
    "",
    " ",
    ".",
    "..",
    "*",
    "a.b",
    "None",
    "ExternalName",
    "Headless",
  ],
  ...[
    "10.0.0.1",
    "10.0.0.256",
    "fd00::1",
    "::ffff:10.0.0.1",
    "fe80::1%eth0",
    "0.0.0.0",
    "127.0.0.1",
    "default",
    "headless",
  ],
  ...[
    "x".repeat(63),
    "x".repeat(64),
    "x.".repeat(127),
    "\u0000",
    "é",
    "_tcp",
    "svc",
    "endpoints",
    "pod",
    "cluster.local",
  ],
  ...[
    [],
    {},
    [[]],
    [null],
    { constructor: 1 },
    { addresses: ["10.0.0.9"] },
    [{ addresses: ["fd00::9"], hostname: "h" }],
  ],
  ...[
    [{ name: "x", port: 1, protocol: "TCP" }],
    [{ name: "_", port: 65_535, protocol: "SCTP" }],
    Array.from({ length: 300 }, () => "10.0.0.1"),
  ],
];

/** The value with one of its parts replaced, wherever that is. */
export function damaged(value: unknown, random: Random): unknown {
  if (typeof value !== "object" || value === null || random.once(6)) return random.pick(VALUES);
  const keys = Object.keys(value);
  const key = keys.length === 0 || random.once(20) ? "__proto__" : random.pick(keys);
  const part = damaged((value as Record<string, unknown>)[key], random);
  if (Array.isArray(value)) return value.map((each: unknown, index) => (String(index) === key ? part : each));
  // As JSON.parse makes it: an own property, also where the key is __proto__.
  return Object.fromEntries([...Object.entries(value).filter(([each]) => each !== key), [key, part]]);
}

export function refusedShortly(error: unknown, index: number): void {
  assert.ok(error instanceof BadSettings, `input ${index}: ${String(error)}`);
  assert.ok(error.lines.length > 0 && error.lines.length <= MISTAKES_SHOWN_MAX, `input ${index}`);
  for (const line of error.lines) assert.ok(line.length < REASON_CHARS, `input ${index}: ${line.length} characters`);
}
