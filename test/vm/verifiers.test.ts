/**
 * The program that answers in the kernel is accepted by the verifiers of Debian's stable releases, on both architectures, and does there
 * what the process does. Newer kernels are tried by `make vm`.
 */
import assert from "node:assert/strict";
import { test } from "node:test";

import { tryVerifier } from "./bare-machine.ts";
import { VERIFIERS } from "./machines.ts";

for (const [name, version, notAttached] of [
  ["6.1", /^6\.1\..*-amd64$/, "NO_TCX"],
  ["6.12", /^6\.12\..*-amd64$/, null],
  ["6.12-arm64", /^6\.12\..*-arm64$/, null],
] as const) {
  test(`Linux ${name} loads the program, which answers as the process; ${notAttached ?? "it is attached to lo"}`, async () => {
    const kernel = VERIFIERS.find((each) => each.name === name);
    assert.ok(kernel !== undefined);
    const outcome = await tryVerifier(kernel);
    assert.ok(!("failed" in outcome), JSON.stringify(outcome));
    assert.match(outcome.kernel, version);
    assert.ok(outcome.answered > 0);
    assert.equal(outcome.notAttached, notAttached);
  });
}
