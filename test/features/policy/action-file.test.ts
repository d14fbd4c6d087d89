// The settings file with the policies of a job: only the modes of a copy are others, and what is no such file is named.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { policyFileOf, policyPath, withMode } from "../../../src/action/start.ts";
import { InputError, readInputs } from "../../../src/action/runner.ts";
import { PROGRAM } from "../../support/program/built.ts";
import { makeFolder } from "../../support/rig/folder.ts";

const folder = makeFolder("policy-file");

/** As `dns11 policy learn` prints it, and as people write it. */
const POLICIES = `version: 1
policies:
  shop:
    for: ["project=shop"]
    # audit refuses nothing and records what enforce would refuse.
    mode: audit
    allow:
      - "api.example.com" # asked; mode: learn
  agents:
    mode:  "learn"   # for now
    allow: []
`;

function written(text: string): string {
  const path = join(folder, "policy.yaml");
  writeFileSync(path, text);
  return path;
}

test("a mode of the step is that of all policies, and nothing else changes", () => {
  const copy = policyFileOf(PROGRAM, written(POLICIES), "enforce", made("copy"));
  const expected = POLICIES.replace("mode: audit", "mode: enforce").replace('mode:  "learn"', "mode:  enforce");
  assert.equal(readFileSync(copy, "utf8"), expected);
  assert.equal(withMode("mode: audit\r\n  mode: audit\r\n", "enforce"), "mode: audit\r\n  mode: enforce\r\n");
});

test("without a mode of the step the file is used as it is", () => {
  const path = written(POLICIES);
  assert.equal(policyFileOf(PROGRAM, path, "", made("unused")), path);
});

test("a path is that of the workspace", () => {
  const path = written(POLICIES);
  const env = { INPUT_POLICY: "policy.yaml", GITHUB_WORKSPACE: folder };
  assert.equal(policyPath(env, readInputs(env)), path);
  assert.equal(policyPath({}, readInputs({})), undefined);
});

test("what is no file with policies is named", () => {
  const env = { INPUT_POLICY: "missing.yaml", GITHUB_WORKSPACE: folder };
  fails(() => policyPath(env, readInputs(env)), /^policy: "missing\.yaml" cannot be read: ENOENT/);
  for (const [text, mode, message] of [
    ["version: 1\npolicies: {ci: {mode: block}}\n", "", /is no valid settings file; its mistakes are above$/],
    ["\0".repeat(100), "", /is no valid settings file/],
    ["version: 1\n", "", /has no policies$/],
    [
      "version: 1\npolicies: {ci: {mode: audit, allow: []}}\n",
      "enforce",
      /^policy-mode: ".*" must have the mode of each policy in a line of its own \(mode: audit\), but ci has not$/,
    ],
  ] as const)
    fails(() => policyFileOf(PROGRAM, written(text), mode, made("bad")), message);
  fails(
    () => policyFileOf("/nonexistent", written(POLICIES), "", folder),
    /could not be checked: spawnSync \/nonexistent/,
  );
});

function made(name: string): string {
  const path = join(folder, name);
  mkdirSync(path, { recursive: true });
  return path;
}

function fails(act: () => unknown, message: RegExp): void {
  assert.throws(act, (error) => error instanceof InputError && message.test(error.message));
}
