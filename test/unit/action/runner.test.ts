// What the runner and a step tell each other: inputs, and output in which text from elsewhere is no command.

import assert from "node:assert/strict";
import { test } from "node:test";

import { InputError, annotation, quoted, readInputs, variable, withVariables } from "../../../src/action/runner.ts";

test("inputs have defaults, and a version may begin with v", () => {
  assert.deepEqual(readInputs({}), {
    ...{ version: "", url: "", program: "", args: [], policy: "", policyMode: "" },
  });
  const given = { INPUT_VERSION: " v0.1.0 ", INPUT_ARGS: "--ttl\n  9s  \n\n--strict\n" };
  assert.deepEqual(readInputs(given), {
    version: "0.1.0",
    url: "",
    program: "",
    args: ["--ttl", "9s", "--strict"],
    policy: "",
    policyMode: "",
  });
  const { policy, policyMode } = readInputs({ INPUT_POLICY: " p.yaml ", "INPUT_POLICY-MODE": "audit" });
  assert.deepEqual([policy, policyMode], ["p.yaml", "audit"]);
});

test("settings of the step are passed through sudo, and nothing else is", () => {
  assert.deepEqual(withVariables({ PATH: "/bin", DNS11: "x", DNS11_X: undefined }), []);
  const set = { DNS11_QUERIES_NAMES: "hidden", DNS11_DNS: "a b;c", DNS11_x: "no", "DNS11_A B": "no" };
  assert.deepEqual(withVariables(set), ["env", "DNS11_QUERIES_NAMES=hidden", "DNS11_DNS=a b;c"]);
});

test("a bad input is named", () => {
  for (const [env, message] of [
    [{ INPUT_VERSION: "1; rm -rf /" }, /version: "1; rm -rf \/" is no version; an example is 0\.1\.0/],
    [{ INPUT_PROGRAM: "dns11" }, /program: "dns11" is no absolute path/],
    [{ INPUT_PROGRAM: "/usr/bin/dns11", INPUT_VERSION: "0.1.0" }, /program excludes version and url/],
    [{ INPUT_POLICY: "p", "INPUT_POLICY-MODE": "learn" }, /policy-mode: "learn" is neither audit nor enforce/],
    [{ "INPUT_POLICY-MODE": "audit" }, /policy-mode needs policy/],
    [{ INPUT_POLICY: "p", INPUT_ARGS: "--config\n/x" }, /policy excludes another settings file/],
    [{ INPUT_POLICY: "p", INPUT_ARGS: "--config=/x" }, /policy excludes another settings file/],
    [{ INPUT_POLICY: "p", DNS11_CONFIG: "/x" }, /policy excludes another settings file/],
  ] as const) {
    assert.throws(
      () => readInputs(env),
      (error) => error instanceof InputError && message.test(error.message),
    );
  }
  assert.throws(
    () => variable({}, "GITHUB_STATE"),
    /GITHUB_STATE is not set: this program is a step of GitHub Actions/,
  );
});

test("an annotation is one command, whatever is in its texts", () => {
  assert.equal(annotation("warning", "a", "b"), "::warning title=a::b\n");
  const text = annotation("warning", "x,y:z::error::", "100%\r\n::set-env name=PATH::/tmp\u2028::stop");
  assert.equal(
    text,
    String.raw`::warning title=x%2Cy%3Az%3A%3Aerror%3A%3A::100%25\x0d\x0a::set-env name=PATH::/tmp\u2028::stop` + "\n",
  );
});

test("commands in quoted text have no effect", () => {
  const text = quoted("::error::from a container\n\u001b[31mred\r::debug::\n", "token-1");
  assert.equal(
    text,
    String.raw`::stop-commands::token-1
::error::from a container
\x1b[31mred\x0d::debug::
::token-1::` + "\n",
  );
});
