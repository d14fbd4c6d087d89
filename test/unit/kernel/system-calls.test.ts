// Proves the numbers of system calls against the headers of Linux: those of x86-64, and the generic ones, which are those of
// arm64. Without the headers of x86-64 (another architecture) only the generic ones are compared.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";

import { SYSTEM_CALLS, type SystemCall, systemCallNumber } from "../../../src/kernel/system-calls.ts";

const HEADERS = {
  x64: "/usr/include/x86_64-linux-gnu/asm/unistd_64.h",
  arm64: "/usr/include/asm-generic/unistd.h",
} as const;

// Calls that were added together have one number everywhere.
const SAME_FROM = 424;

function numbersIn(path: string): ReadonlyMap<string, number> {
  const lines = readFileSync(path, "utf8").matchAll(/^#define __NR_(\w+)\s+(\d+)$/gm);
  return new Map([...lines].map(([, name = "", number]) => [name, Number(number)]));
}

for (const architecture of ["x64", "arm64"] as const) {
  const path = HEADERS[architecture];
  const skip = existsSync(path) ? false : `${path} is not installed (linux-libc-dev)`;
  test(`the numbers for ${architecture} are those of its header`, { skip }, () => {
    const numbers = numbersIn(path);
    for (const call of Object.keys(SYSTEM_CALLS) as SystemCall[]) {
      assert.equal(systemCallNumber(call, architecture), numbers.get(call), call);
    }
  });
}

test("numbers from 424 on are the same everywhere, and others are not known", () => {
  for (const [call, [x64, arm64]] of Object.entries(SYSTEM_CALLS)) if (x64 >= SAME_FROM) assert.equal(x64, arm64, call);
  assert.equal(systemCallNumber("bpf", "x64"), 321);
  assert.equal(systemCallNumber("bpf", "arm64"), 280);
  assert.equal(systemCallNumber("bpf", "s390x"), undefined);
});
